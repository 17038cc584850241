"""The command `run_classifier.py`."""

from albert_tf.cli.training import run_training  # first: it keeps TensorFlow quiet at its start

# isort: split
from albert_tf.runs.classifier_settings import ClassifierSettings
from albert_tf.runs.finetune import finetune

SETTINGS = ClassifierSettings


def run():
    """Runs the command."""
    run_training(finetune, SETTINGS)
