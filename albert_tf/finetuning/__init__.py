"""What a pre-trained model can be fine-tuned for: one file a task, and its line in `TASKS`."""

from albert_tf.finetuning.classification import Classification
from albert_tf.finetuning.multiple_choice import MultipleChoice
from albert_tf.finetuning.regression import Regression
from albert_tf.finetuning.task import FinetuningTask

# By the names that the TPU planner takes. Each can be made from the model's config alone.
TASKS: dict[str, type[FinetuningTask]] = {"classify": Classification, "score": Regression, "race": MultipleChoice}

__all__ = ["TASKS", "Classification", "FinetuningTask", "MultipleChoice", "Regression"]
