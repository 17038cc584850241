"""The command `run_ner.py`."""

from albert_tf.cli.training import run_training  # first: it keeps TensorFlow quiet at its start

# isort: split
from albert_tf.runs.finetune import finetune
from albert_tf.runs.ner_settings import NerSettings

SETTINGS = NerSettings


def run():
    """Runs the command."""
    run_training(finetune, SETTINGS)
