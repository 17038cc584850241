"""The tasks that a pre-trained model can be fine-tuned for: one file of `tasks` each, and a line in `TASKS`."""

import albert_tf.base.quiet_tensorflow  # noqa: F401  (first)
from albert_tf.finetuning.task import FinetuningTask
from albert_tf.finetuning.tasks.classification import Classification
from albert_tf.finetuning.tasks.entities import Entities
from albert_tf.finetuning.tasks.multi_label import MultiLabel
from albert_tf.finetuning.tasks.multiple_choice import MultipleChoice
from albert_tf.finetuning.tasks.question_answering import ConditionalQuestionAnswering, QuestionAnswering
from albert_tf.finetuning.tasks.regression import Regression
from albert_tf.finetuning.tasks.vectors import Vectors

# By name. Each can be made from the model's config alone.
TASKS: dict[str, type[FinetuningTask]] = {
    task.kind.name: task
    for task in (
        Classification,
        MultiLabel,
        Regression,
        Vectors,
        MultipleChoice,
        Entities,
        QuestionAnswering,
        ConditionalQuestionAnswering,
    )
}

__all__ = [
    "TASKS",
    "Classification",
    "ConditionalQuestionAnswering",
    "Entities",
    "FinetuningTask",
    "MultiLabel",
    "MultipleChoice",
    "QuestionAnswering",
    "Regression",
    "Vectors",
]
