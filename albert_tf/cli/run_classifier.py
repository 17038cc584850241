"""The command `run_classifier.py`."""

from albert_tf.cli.training import training_command  # first: it keeps TensorFlow quiet at its start

# isort: split
from albert_tf.runs.finetune import finetune
from albert_tf.runs.settings.classifier import ClassifierSettings

SETTINGS = ClassifierSettings
run = training_command(finetune, SETTINGS)
