"""From Python values to a trained folder, by the run of the commands that fine-tune."""

import collections.abc
import os
import typing

import tensorflow as tf

from albert_tf.base.console import RESULTS, tell
from albert_tf.base.errors import InputError
from albert_tf.base.files import names_in, read_bytes, remove, write_text
from albert_tf.base.folders import hold
from albert_tf.runs.finetune import finetune
from albert_tf.runs.given_data import GivenData
from albert_tf.runs.given_kinds import KINDS
from albert_tf.runs.settings.finetuning import FinetuningSettings
from albert_tf.runs.trials import going_on_by_call
from albert_tf.training.run_folder.guard import read_settings
from albert_tf.training.trackers import Tracker

DATA_FOLDER = "data"

# What others call these.
_OTHER_NAMES = {
    "init_checkpoint": "model",
    "batch_size": "train_batch_size",
    "lr": "learning_rate",
    "epochs": "num_train_epochs",
    "seed": "random_seed",
    "eval_dataset": "dev",
    "validation_data": "dev",
    "validation_split": "dev_fraction",
    "max_length": "max_seq_length",
}
# Evaluations in succession without a better one, of the ten to twenty of a run.
_PATIENCE = 5


def fit_folder(
    data: GivenData,
    dev_data: GivenData | None,
    model: str,
    output_dir: str,
    given: dict[str, typing.Any],
    strategy: tf.distribute.Strategy | None = None,
    trackers: collections.abc.Sequence[Tracker] = (),
) -> None:
    """Fine-tunes a model on examples, and evaluates it on those that are given or put aside for that."""
    # A run that is in the folder is resumed. Raises KeyboardInterrupt if training was; the same call goes on.
    settings, fraction = settings_for(data, given), given.get("dev_fraction")
    if dev_data is not None:
        fraction = None
    elif fraction is None:
        count = len(data.texts)
        fraction = 0.1 if count >= 1000 else round(min(0.25, 100 / count), 3)
    evaluates = dev_data is not None or fraction > 0
    if evaluates and "early_stopping" not in given:
        settings = settings.changed(early_stopping=_PATIENCE)
    tell(data.describe(), RESULTS)
    with hold(output_dir):
        settings = settings.placed(_write(data, dev_data, output_dir)).changed(
            init_checkpoint=model,
            output_dir=output_dir,
            do_train=True,
            do_eval=evaluates,
            dev_fraction=fraction or None,
            # A run in the folder must have had the same.
            given=settings.given | {"init_checkpoint", "dev_fraction", "task_name", "regression", "multi_label"},
        )
        with going_on_by_call(output_dir):
            finetune(settings, strategy, trackers)


def settings_for(data: GivenData, given: dict[str, typing.Any]) -> FinetuningSettings:
    """Returns the settings that examples and a user ask for, but for those that say where things lie."""
    kind = KINDS[data.kind]
    settings = kind.settings.of(given, _OTHER_NAMES)
    if settings.dev_fraction == 1:
        raise InputError("`dev_fraction` must be less than 1")
    follow = kind.follow(data.texts, data.labels, data.label_columns)
    return settings.changed(**{name: given.get(name) or value for name, value in follow.items()})


def _write(data, dev_data, output_dir):
    """Writes the examples below a folder, unless they are there; returns the paths."""
    # InputError where others are there, which a run in the folder was begun with.
    folder = os.path.join(output_dir, DATA_FOLDER)
    given = {name: each for name, each in (("train", data), ("dev", dev_data)) if each is not None}
    files = {file: text.encode() for file, text in (_as_file(each, name) for name, each in given.items())}
    if read_settings(output_dir) is None:  # of a call that got no further there may be other ones
        remove(folder)
    there = {name: read_bytes(os.path.join(folder, name), "the examples") for name in names_in(folder)}
    if any(there[name] != files.get(name) for name in there):
        raise InputError(f"{output_dir} holds a model that was fitted to other examples; choose another `output_dir`")
    return [write_given(each, folder, name) for name, each in given.items()]


def _as_file(data, name):
    """Returns the name of a file of examples as the commands read them, with the ending of their form, and its text."""
    kind = KINDS[data.kind]
    return f"{name}.{kind.ending}", kind.write(data.texts, data.labels)


def write_given(data: GivenData, folder: str, name: str) -> str:
    """Writes examples as the commands read them, as "train" or "dev" and the ending of their form; returns the path."""
    file_name, text = _as_file(data, name)
    path = os.path.join(folder, file_name)
    write_text(path, text)
    return path
