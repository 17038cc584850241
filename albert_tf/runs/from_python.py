"""From Python values to a trained folder, by the runs of the commands: `fit` and `pretrain` of albert_tf."""

import collections.abc
import os
import tempfile
import typing

import numpy as np
import tensorflow as tf

from albert_tf.base.checkpoint_files import find_beside_checkpoint
from albert_tf.base.console import RESULTS, tell
from albert_tf.base.errors import InputError, describe
from albert_tf.base.files import names_in, read_bytes, read_text, remove, write_json, write_text
from albert_tf.base.folders import hold
from albert_tf.base.shipped_files import or_shipped
from albert_tf.config import AlbertConfig
from albert_tf.modeling.pretrained import CONFIG_FILE, find_checkpoint
from albert_tf.pretraining_data.manifest import MANIFEST_FILE, read_manifest
from albert_tf.runs.build_data import build_data
from albert_tf.runs.finetune import finetune
from albert_tf.runs.given_data import GivenData
from albert_tf.runs.given_kinds import KINDS
from albert_tf.runs.pretrain import pretrain
from albert_tf.runs.settings.data import DataSettings
from albert_tf.runs.settings.finetuning import FinetuningSettings
from albert_tf.runs.settings.pretraining import PretrainingSettings
from albert_tf.runs.trials import going_on_by_call
from albert_tf.tokenization import load_tokenizer
from albert_tf.tokenization.sentencepiece.tokenizer import MODEL_FILE
from albert_tf.tokenization.tokenizer import TOKENIZER_FILE, VOCABULARY_FILE
from albert_tf.training.progress import Tracker
from albert_tf.training.run_folder.guard import read_settings

DATA_FOLDER = "data"

# What others call these.
_OTHER_NAMES_IN_FIT = {
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
    settings = kind.settings.of(given, _OTHER_NAMES_IN_FIT)
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


CORPUS_FILE = "corpus.txt"
# So many of few texts are kept to evaluate on, but not a larger share than this.
_HELD_OUT, _MOST_HELD_OUT = 20, 0.3
_OTHER_NAMES_IN_PRETRAIN = {
    "init_checkpoint": "model",
    "batch_size": "train_batch_size",
    "lr": "learning_rate",
    "steps": "num_train_steps",
    "seed": "random_seed",
    "max_length": "max_seq_length",
}


def split_settings(given: dict[str, typing.Any]) -> tuple[DataSettings, PretrainingSettings]:
    """Returns the settings of the data, and those of the training; some are both's."""
    of_data, of_training = (
        {name: given[name] for name in kind.names(in_python=True) if name in given}
        for kind in (DataSettings, PretrainingSettings)
    )
    unknown = {name: value for name, value in given.items() if name not in of_data}
    return DataSettings.of(of_data), PretrainingSettings.of({**of_training, **unknown}, _OTHER_NAMES_IN_PRETRAIN)


def pretrain_folder(
    data: typing.Any,
    config: typing.Any,
    model: str | None,
    vocabulary: str,
    output_dir: str,
    given: dict[str, typing.Any],
    strategy: tf.distribute.Strategy | None = None,
    trackers: collections.abc.Sequence[Tracker] = (),
) -> None:
    """Pre-trains a model, and evaluates it on documents that are kept for that.

    Without config it is that of `model`, or else the one in the folder of `vocabulary`, which is read where there is no
    `model`. A run that is in the folder is resumed. Raises KeyboardInterrupt if training was; the same call goes on.
    """
    of_data, settings = split_settings(given)
    folder, shards = os.path.join(output_dir, DATA_FOLDER), _shards_in(data)
    with hold(output_dir), tempfile.TemporaryDirectory(prefix="albert_tf_") as temporary:
        if model is not None:
            find_checkpoint(model, "`model`")
        elif shards is None and not tf.io.gfile.exists(os.path.join(vocabulary, TOKENIZER_FILE)):
            raise InputError(f"`vocabulary={vocabulary}` holds no {TOKENIZER_FILE}; name a folder that has one")
        tokenizer = os.path.dirname(shards[0]) if shards else model or vocabulary
        read = _read_config(config, model or vocabulary, tokenizer)
        if "max_seq_length" in of_data.given:
            read.check_max_seq_length(of_data.max_seq_length, "`max_seq_length`")
        if shards is None:
            of_data = _with_defaults(of_data, data, read).changed(**_files_of(tokenizer))
            shards = _build(data, folder, of_data, is_begun=read_settings(output_dir) is not None)
            settings = settings.changed(max_seq_length=None, max_predictions_per_seq=None, objective=None)
        settings = settings.changed(
            input_file=shards,
            init_checkpoint=model,
            output_dir=output_dir,
            do_eval=True,
            given=settings.given | {"input_file"} | ({"init_checkpoint"} if model else set()),
        )
        if config is not None or model is None:  # else it follows from the model, and the vocabulary of the data
            config_file = os.path.join(temporary, CONFIG_FILE)
            write_json(config_file, read.to_dict())
            settings = settings.changed(albert_config_file=config_file)
        with going_on_by_call(output_dir):
            pretrain(settings, strategy, trackers)


def _shards_in(data):
    """Returns the training shards of a folder; None for anything else."""
    path = os.path.join(data, MANIFEST_FILE) if isinstance(data, str | os.PathLike) else ""
    if not path or not tf.io.gfile.exists(path):
        return None
    files = read_manifest(path).get("splits", {}).get("train", {}).get("files", [])
    if not files:
        raise InputError(f"{path} names no shards to train on; build them again")
    return tuple(os.path.join(data, name) for name in files)


def _read_config(config, folder, tokenizer):
    """Returns the model's config, for as many pieces as the tokenizer in a folder has."""
    if config is None:
        config = find_beside_checkpoint(folder, CONFIG_FILE)
        if config is None:
            raise InputError(f"{folder} holds no {CONFIG_FILE}; give the model's with `config`")
    if isinstance(config, dict):
        config = AlbertConfig.from_dict(config)
    elif not isinstance(config, AlbertConfig):
        config = AlbertConfig.from_json_file(or_shipped(os.fspath(config)))
    size = len(load_tokenizer(tokenizer).vocabulary)
    if config.vocab_size != size:
        tell(
            f"the config has a vocab_size of {config.vocab_size:,}, and the vocabulary {size:,} pieces, which is taken",
            RESULTS,
        )
    return config.replace(vocab_size=size)


def _with_defaults(settings, data, config):
    """Returns the settings with what follows from the model, and from how few texts there are."""
    changes = {}
    if "max_seq_length" not in settings.given:
        changes["max_seq_length"] = min(settings.max_seq_length, config.longest_sequence)
    if "held_out_fraction" not in settings.given and isinstance(data, list | tuple) and data:
        changes["held_out_fraction"] = float(np.clip(_HELD_OUT / len(data), settings.held_out_fraction, _MOST_HELD_OUT))
    return settings.changed(**changes)


def _files_of(folder):
    vocab_file = find_beside_checkpoint(folder, VOCABULARY_FILE)
    return {"vocab_file": vocab_file} if vocab_file else {"spm_model_file": os.path.join(folder, MODEL_FILE)}


def _build(data, folder, settings, is_begun):
    """Builds shards of texts in a folder, or finds them there; returns the paths of those to train on."""
    if isinstance(data, str | os.PathLike):
        files = (os.fspath(data),)
    elif isinstance(data, list | tuple) and data and all(isinstance(text, str) for text in data):
        files = (os.path.join(folder, CORPUS_FILE),)
        # Lines are sentences, and an empty one ends a document.
        corpus = "\n\n".join("\n".join(filter(str.strip, text.splitlines())) for text in data) + "\n"
        if CORPUS_FILE in names_in(folder) and read_text(files[0], "the texts") != corpus:
            if is_begun:
                raise InputError(f"{os.path.dirname(folder)} holds a model of other texts; choose another `output_dir`")
            remove(folder)  # of a call that got no further
        write_text(files[0], corpus)
    else:
        raise InputError(f"`data` must be a list of texts, or the path of files or shards. Received: {describe(data)}")
    train = os.path.join(folder, "train.tfrecord")
    build_data(settings.changed(input_file=files, output_file=(train,), resume=True))
    return (train,)
