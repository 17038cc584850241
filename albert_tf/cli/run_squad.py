"""The command `run_squad.py`."""

from albert_tf.cli.training import training_command  # first: it keeps TensorFlow quiet at its start

# isort: split
from albert_tf.runs.finetune import finetune
from albert_tf.runs.settings.squad import SquadSettings

SETTINGS = SquadSettings
run = training_command(finetune, SETTINGS)
