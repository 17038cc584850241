"""Running a training as a command."""

from albert_tf.cli import app  # first: it keeps TensorFlow quiet at its start

# isort: split
import collections.abc
import typing

from albert_tf.runs.settings.training import TrainingSettings
from albert_tf.runs.trials import Stopped


def training_command(
    train: collections.abc.Callable[[typing.Any], typing.Any], settings: type[TrainingSettings]
) -> collections.abc.Callable[[], None]:
    """Returns what runs the command; a training that is stopped ends it as a signal does."""

    def main(given):
        try:
            train(given)
        except Stopped as stop:
            app.exit_stopped(stop.signal)

    return lambda: app.run(main, settings)
