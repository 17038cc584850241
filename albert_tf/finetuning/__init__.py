"""The tasks that a pre-trained model can be fine-tuned for: one file or folder each, and a line in `TASKS`."""

import albert_tf.base.quiet_tensorflow  # noqa: F401  (first)
from albert_tf.finetuning.ner.task import Entities
from albert_tf.finetuning.question_answering.task import ConditionalQuestionAnswering, QuestionAnswering
from albert_tf.finetuning.task import FinetuningTask
from albert_tf.finetuning.texts.classification import Classification
from albert_tf.finetuning.texts.multi_label import MultiLabel
from albert_tf.finetuning.texts.multiple_choice import MultipleChoice
from albert_tf.finetuning.texts.regression import Regression
from albert_tf.finetuning.texts.vectors import Vectors

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
