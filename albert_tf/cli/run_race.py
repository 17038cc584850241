"""The command `run_race.py`."""

from albert_tf.cli.training import training_command  # first: it keeps TensorFlow quiet at its start

# isort: split
from albert_tf.runs.finetune import finetune
from albert_tf.runs.settings.race import RaceSettings

SETTINGS = RaceSettings
run = training_command(finetune, SETTINGS)
