"""The command `run_pretraining.py`."""

from albert_tf.cli.training import training_command  # first: it keeps TensorFlow quiet at its start

# isort: split
from albert_tf.runs.pretrain import pretrain
from albert_tf.runs.settings.pretraining import PretrainingSettings

SETTINGS = PretrainingSettings
run = training_command(pretrain, SETTINGS)
