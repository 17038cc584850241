"""From Python values to a trained folder, with the defaults of the commands that fine-tune."""

import collections.abc
import dataclasses
import difflib
import numbers
import os
import tempfile
import typing

import tensorflow as tf

from albert_tf.checkpoint_files import checkpoint_folder
from albert_tf.errors import InputError, describe
from albert_tf.files import names_in, read_text, remove
from albert_tf.finetuning import runner
from albert_tf.finetuning.baselines import linear_scores
from albert_tf.finetuning.defaults import (
    choose_max_seq_length,
    default_token_dropout,
    finetuning_settings,
    with_default_dropout,
)
from albert_tf.finetuning.dev_share import Share
from albert_tf.finetuning.from_python.examples import GivenData
from albert_tf.finetuning.from_python.files import write_given
from albert_tf.finetuning.from_python.tasks import make_task
from albert_tf.folder_lock import hold
from albert_tf.modeling.pretrained import find_checkpoint, read_config
from albert_tf.tokenization import load_tokenizer
from albert_tf.training import RunSettings, TrainingRun
from albert_tf.training.devices.strategy import make_strategy
from albert_tf.training.run_folder.guard import read_settings
from albert_tf.training.trackers import Tracker
from albert_tf.verbosity import RESULTS, tell

DATA_FOLDER = "data"

# What `RunSettings` has, and `fit` settles by itself.
_OWN = ("init_checkpoint",)
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


@dataclasses.dataclass(frozen=True)
class FitOptions:
    """How to fine-tune, besides the settings of the run.

    Attributes:
        dev_fraction: Which share of the examples to put aside and evaluate on, where none are given for that; 0 for
            none. None for a tenth, and of less than 1,000 examples for 100 of them, at most a quarter.
        max_seq_length: Longest input in pieces; None for what the commands choose.
        token_dropout: Which share of the pieces of training texts to hide; None likewise.
        num_train_epochs: Passes over the examples; None likewise.
        doc_stride: Of labels and numbers of single texts: read long ones in windows; None to cut them.
        pooling: Of labels and numbers, what they are read off, as of `AlbertConfig.classifier_pooling`; None for what
            is best for the model.
        baselines: Whether to tell what a linear model scores.

    Raises:
        InputError: A value is out of range.
    """

    dev_fraction: float | None = None
    max_seq_length: int | None = None
    token_dropout: float | None = None
    num_train_epochs: float | None = None
    doc_stride: int | None = None
    pooling: str | None = None
    baselines: bool = True

    def __post_init__(self):
        if self.dev_fraction is not None and not 0 <= self.dev_fraction < 1:
            raise InputError(f"`dev_fraction` must be from 0 to less than 1. Received: {self.dev_fraction}")
        if self.token_dropout is not None and not 0 <= self.token_dropout < 1:
            raise InputError(f"`token_dropout` must be from 0 to less than 1. Received: {self.token_dropout}")
        if self.num_train_epochs is not None and not self.num_train_epochs > 0:
            raise InputError(f"`num_train_epochs` must be greater than 0. Received: {self.num_train_epochs}")


def split_settings(given: dict) -> tuple[FitOptions, dict]:
    """Returns the options among settings that a user gives, and the settings of the run.

    Raises:
        InputError: There is no setting of a name, or a value is out of range.
    """
    options = [field.name for field in dataclasses.fields(FitOptions)]
    names = [*options, *(field.name for field in dataclasses.fields(RunSettings) if field.name not in _OWN)]
    for name in given:
        if name in _OTHER_NAMES:
            raise InputError(f"`{name}` is called {_OTHER_NAMES[name]} here")
        if name not in names:
            alike = difflib.get_close_matches(name, names, 1)
            hint = f"did you mean {alike[0]}?" if alike else f"there are {', '.join(names)}"
            raise InputError(f"`{name}` is not a setting of a training; {hint}")
    for name, value in given.items():
        if name in _numbers() and (isinstance(value, bool) or not isinstance(value, numbers.Real | None)):
            raise InputError(f"`{name}` must be a number. Received: {describe(value)}")
    of_run = {name: value for name, value in given.items() if name not in options}
    return FitOptions(**{name: given[name] for name in options if name in given}), of_run


def _numbers():
    """Returns the names of the settings that are numbers."""
    hints = typing.get_type_hints(RunSettings) | typing.get_type_hints(FitOptions)
    kinds = {name: set(typing.get_args(hint) or (hint,)) - {type(None)} for name, hint in hints.items()}
    return {name for name, kind in kinds.items() if kind in ({int}, {float})}


def fit_folder(
    data: GivenData,
    dev_data: GivenData | None,
    model: str,
    output_dir: str,
    options: FitOptions,
    settings: dict,
    strategy: tf.distribute.Strategy | None = None,
    trackers: collections.abc.Sequence[Tracker] = (),
) -> None:
    """Fine-tunes a model on examples, and evaluates it on those that are given or put aside for that.

    Args:
        data: What to train on.
        dev_data: What to evaluate on; None to put a share aside.
        model: The folder to begin from.
        output_dir: The folder of the run; one that is there already is resumed.
        options: How.
        settings: Of the run, which replace those that the commands choose.
        strategy: Where to compute; None for all GPUs, or the CPU.
        trackers: Are told what is measured; see `TrainingRun`.

    Raises:
        InputError: The examples can't be used, or the folder holds a run on others.
        KeyboardInterrupt: Training was interrupted; the same call goes on.
    """
    checkpoint = find_checkpoint(model, "`model`")
    tell(data.describe(), RESULTS)
    with hold(output_dir):
        path, dev_path = _write(data, dev_data, output_dir)
        tokenizer = load_tokenizer(checkpoint_folder(checkpoint))
        task, more_settings = make_task(
            data, path, read_config(checkpoint, "`model`"), options.doc_stride, options.pooling
        )
        task.config.check_vocabulary(tokenizer.vocabulary)
        fraction = _dev_fraction(options, len(data.texts)) if dev_data is None else 0
        train_share, dev_share = (Share(fraction, is_dev) if fraction else None for is_dev in (False, True))
        token_dropout, length = options.token_dropout, options.max_seq_length
        if token_dropout is None:
            token_dropout = default_token_dropout(task.config, task.may_hide_pieces, task.predicts_numbers)
        if length is None:
            length = _choose_length(task, path, train_share, tokenizer)
        train_file, dev_file = runner.load_file(task, path, tokenizer, length, share=train_share), None
        if dev_share or dev_path:
            dev_file = runner.load_file(task, dev_path or path, tokenizer, length, share=dev_share)
            _warn_of_texts_on_both_sides(task, train_file, dev_file)
        if task.adds_dropout:
            task.config = with_default_dropout(task.config, train_file.num_rows)
        run_settings = finetuning_settings(
            task.config,
            train_file.num_rows,
            token_dropout,
            options.num_train_epochs,
            task.highest_learning_rate,
            **{"init_checkpoint": model, "early_stopping": _PATIENCE if dev_file else 0, **settings},
        )
        tf.keras.utils.set_random_seed(run_settings.random_seed)
        with (strategy or make_strategy()).scope():
            models = task.make_models()
        run = TrainingRun(output_dir, task, models, run_settings, tokenizer, trackers=trackers)
        more_settings["dev_fraction"] = fraction or None
        if not runner.train(run, train_file, dev_file, more_settings, token_dropout=token_dropout):
            raise KeyboardInterrupt(f"interrupted; repeat the call with output_dir={output_dir!r} to continue")
        if dev_file is not None:
            linear = linear_scores(run, train_file, dev_file) if options.baselines else None
            runner.evaluate(run, dev_file, linear)
        run.write_model_card()


def _dev_fraction(options, num_examples):
    if options.dev_fraction is not None:
        return options.dev_fraction
    return 0.1 if num_examples >= 1000 else round(min(0.25, 100 / num_examples), 3)


def _warn_of_texts_on_both_sides(task, train_file, dev_file):
    """Prints how many of the texts to evaluate on are learnt, too."""
    learnt = {task.text_and_label(example)[0] for example in train_file.examples}
    count = sum(task.text_and_label(example)[0] in learnt for example in dev_file.examples)
    if count:
        tell(
            f"warning: {count:,} of the {len(dev_file.examples):,} evaluation examples have texts that are also "
            "trained on, so their scores say little; remove these texts from one of the two"
        )


def _choose_length(task, path, share, tokenizer):
    longest = task.config.longest_sequence
    if task.usual_max_seq_length is not None:
        return min(longest, task.usual_max_seq_length)
    return choose_max_seq_length(task, runner.read_file(task, path, share=share), tokenizer)


def _write(data, dev_data, output_dir):
    """Writes the examples below a folder, unless they are there; returns the paths.

    Raises:
        InputError: Others are there, which a run in the folder was begun with.
    """
    folder = os.path.join(output_dir, DATA_FOLDER)
    given = {name: each for name, each in (("train", data), ("dev", dev_data)) if each is not None}
    with tempfile.TemporaryDirectory() as temporary:
        texts = {os.path.basename(path): read_text(path, "the examples") for path in _write_all(given, temporary)}
    if read_settings(output_dir) is None:  # of a call that got no further there may be other ones
        remove(folder)
    there = {name: read_text(os.path.join(folder, name), "the examples") for name in names_in(folder)}
    if any(there[name] != texts.get(name) for name in there):
        raise InputError(f"{output_dir} holds a model that was fitted to other examples; choose another `output_dir`")
    paths = _write_all(given, folder)
    return paths[0], paths[1] if dev_data else None


def _write_all(given, folder):
    return [write_given(data, folder, name) for name, data in given.items()]
