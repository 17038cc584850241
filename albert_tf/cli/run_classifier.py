"""The command `run_classifier.py`."""

from albert_tf.cli.training import training_command  # first: it keeps TensorFlow quiet at its start

# isort: split
from albert_tf.runs.classifier_settings import ClassifierSettings
from albert_tf.runs.finetune import finetune

SETTINGS = ClassifierSettings
run = training_command(finetune, SETTINGS)
