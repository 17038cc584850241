"""The commands that make the data of a pre-training and that train."""

from albert_tf.cli.app import command  # first: it keeps TensorFlow quiet at its start

# isort: split
import collections.abc
import dataclasses
import typing

from albert_tf.base.errors import InputError
from albert_tf.base.files import refuse_to_overwrite
from albert_tf.base.settings import setting
from albert_tf.cli.command import exit_stopped
from albert_tf.pretraining_data.show import show_shard
from albert_tf.runs.build_data import build_data
from albert_tf.runs.finetune import finetune
from albert_tf.runs.pretrain import pretrain
from albert_tf.runs.settings.classifier import ClassifierSettings
from albert_tf.runs.settings.data import DataSettings
from albert_tf.runs.settings.ner import NerSettings
from albert_tf.runs.settings.pretraining import PretrainingSettings
from albert_tf.runs.settings.race import RaceSettings
from albert_tf.runs.settings.squad import SquadSettings
from albert_tf.runs.settings.training import TrainingSettings
from albert_tf.runs.trials import Stopped


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataCommandSettings(DataSettings):
    """The shards to build, or one to look at instead."""

    command = "create_pretraining_data"

    inspect: str | None = setting(None, "Print examples and counts of this shard; build no data.")
    plot: str | None = setting(None, "With --inspect: a .png file for the lengths of examples.")
    num_inspected: int = setting(3, "With --inspect: number of examples to print.", least=0)


@command(DataCommandSettings)
def create_pretraining_data(settings):
    """The command `create_pretraining_data.py`."""
    if settings.inspect:
        if settings.plot:
            refuse_to_overwrite([settings.plot], overwrite=True)
        show_shard(settings.inspect, settings.num_inspected, settings.plot)
        if settings.plot:
            print(f"wrote {settings.plot}")
    elif settings.plot:
        raise InputError("`plot` needs `inspect`, which names the shard to plot")
    else:
        build_data(settings)


def training_command(
    train: collections.abc.Callable[[typing.Any], typing.Any], settings: type[TrainingSettings]
) -> collections.abc.Callable[[], None]:
    """Returns the command of a training; one that is stopped ends it as a signal does."""

    def main(given):
        try:
            train(given)
        except Stopped as stop:
            exit_stopped(stop.signal)

    main.__doc__ = f"The command `{settings.command}.py`."
    return command(settings)(main)


run_pretraining = training_command(pretrain, PretrainingSettings)
run_classifier = training_command(finetune, ClassifierSettings)
run_ner = training_command(finetune, NerSettings)
run_squad = training_command(finetune, SquadSettings)
run_race = training_command(finetune, RaceSettings)
