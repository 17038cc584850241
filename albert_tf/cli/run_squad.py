"""The command `run_squad.py`."""

from albert_tf.cli.training import run_training  # first: it keeps TensorFlow quiet at its start

# isort: split
from albert_tf.runs.finetune import finetune
from albert_tf.runs.squad_settings import SquadSettings

SETTINGS = SquadSettings


def run():
    """Runs the command."""
    run_training(finetune, SETTINGS)
