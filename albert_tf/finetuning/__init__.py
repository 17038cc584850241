"""What a pre-trained model can be fine-tuned for: one file a task, and its line in `TASKS`."""

from albert_tf.finetuning.classification import Classification
from albert_tf.finetuning.question_answering import ConditionalQuestionAnswering, QuestionAnswering
from albert_tf.finetuning.task import FinetuningTask

# By the names that the TPU planner takes. Each can be made from the model's config alone.
TASKS: dict[str, type[FinetuningTask]] = {
    "classify": Classification,
    "squad": QuestionAnswering,
    "squad_v2": ConditionalQuestionAnswering,
}

__all__ = ["TASKS", "Classification", "ConditionalQuestionAnswering", "FinetuningTask", "QuestionAnswering"]
