"""The command `create_pretraining_data.py`."""

from albert_tf.cli import app  # first: it keeps TensorFlow quiet at its start

# isort: split
import dataclasses

from albert_tf.base.errors import InputError
from albert_tf.base.files import refuse_to_overwrite
from albert_tf.base.settings import setting
from albert_tf.pretraining_data.show import show_shard
from albert_tf.runs.build_data import build_data
from albert_tf.runs.settings.data import DataSettings


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataCommandSettings(DataSettings):
    """The settings of the command: what to build, or which shard to look at instead."""

    command = "create_pretraining_data"

    inspect: str | None = setting(None, "Print examples and counts of this shard; build no data.")
    plot: str | None = setting(None, "With --inspect: a .png file for the lengths of examples.")
    num_inspected: int = setting(3, "With --inspect: number of examples to print.", least=0)


SETTINGS = DataCommandSettings


def main(settings):
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


def run():
    app.run(main, SETTINGS)
