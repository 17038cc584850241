"""The command `run_ner.py`."""

from albert_tf.cli.training import training_command  # first: it keeps TensorFlow quiet at its start

# isort: split
from albert_tf.runs.finetune import finetune
from albert_tf.runs.settings.ner import NerSettings

SETTINGS = NerSettings
run = training_command(finetune, SETTINGS)
