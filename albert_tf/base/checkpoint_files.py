"""Checkpoints as files: finding, reading, deleting them, and the files that name the newest and the best."""

import collections.abc
import itertools
import os
import re
import tempfile

import numpy as np
import tensorflow as tf

from albert_tf.base.errors import InputError, first_line
from albert_tf.base.files import read_json, remove, write_text
from albert_tf.base.settings import check_types

CHECKPOINT_NAME = "model.ckpt"
BEST_FILE = "best_checkpoint.json"
TRIALS_FILE = "trials.json"
SETTINGS_FILE = "run_settings.json"
# How long inputs are, and how vectors are made, of models from elsewhere that say it.
ENCODER_FILE = "encoder_settings.json"
EVAL_RESULTS_FILE = "eval_results.json"
MODEL_PREFIX = "model/"
AVERAGES_PREFIX = "averages/"

_VALUE_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"
_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"

# What TensorFlow's reader raises, depending on where it meets the damage.
_READING_ERRORS = (tf.errors.OpError, ValueError, IndexError, RuntimeError)

_GLOB_CHARACTERS = set("*?[]\\")

# Variables are written in parts that hold at least so many bytes, so that little more than a part is ever in memory.
_PART_BYTES = 64 * 2**20


class DamagedCheckpointError(InputError):
    """A checkpoint can't be read to its end."""


class CheckpointReader:
    """Reads a checkpoint, given its path without extension; raises DamagedCheckpointError if it can't.

    `shapes` are by name of variable, without the suffix, which is empty in checkpoints of TensorFlow 1.
    """

    def __init__(self, path: str, suffix: str = _VALUE_SUFFIX):
        self._path = path
        self._suffix = suffix
        self._alias = _Alias(path)  # as long as the reader, which opens the data when they are asked for
        try:
            # tf.train.load_checkpoint takes the path for a folder where a file system knows folders by prefix only.
            self._reader = tf.compat.v1.train.NewCheckpointReader(self._alias.path)
        except _READING_ERRORS as error:
            raise DamagedCheckpointError(f"{path} is damaged: {first_line(error)}") from error
        self.shapes = {
            key.removesuffix(suffix): shape
            for key, shape in self._reader.get_variable_to_shape_map().items()
            if key.endswith(suffix)
        }

    def read(self, names) -> dict[str, np.ndarray]:
        """Returns values by name; raises DamagedCheckpointError where one doesn't match its checksum."""
        try:
            # The description of the objects comes last in the file, so that a file that was cut is noticed in any case.
            if self._reader.has_tensor(_OBJECT_GRAPH):
                self._reader.get_tensor(_OBJECT_GRAPH)
            return {name: self._reader.get_tensor(f"{name}{self._suffix}") for name in names}
        except _READING_ERRORS as error:
            raise DamagedCheckpointError(f"{self._path} is damaged: {first_line(error)}") from error


class _Alias:
    """A path to a checkpoint without the characters in which TensorFlow's reader sees a pattern."""

    def __init__(self, path):
        self.path = path
        if not _GLOB_CHARACTERS & set(path):
            return
        self._folder = tempfile.TemporaryDirectory()  # deleted with this object
        folder, name = os.path.split(path)
        if "://" in path:
            for file in tf.io.gfile.listdir(folder):
                if file == f"{name}.index" or file.startswith(f"{name}.data-"):
                    tf.io.gfile.copy(os.path.join(folder, file), os.path.join(self._folder.name, file))
            self.path = os.path.join(self._folder.name, name)
        else:
            os.symlink(os.path.abspath(folder), os.path.join(self._folder.name, "link"))
            self.path = os.path.join(self._folder.name, "link", name)


def find_checkpoints(folder: str) -> list[str]:
    """Returns the paths, without extension, of the checkpoints in a folder, the oldest first."""
    found = {}
    if tf.io.gfile.isdir(folder):
        for name in tf.io.gfile.listdir(folder):
            match = re.fullmatch(rf"{re.escape(CHECKPOINT_NAME)}-(\d+)\.index", name)
            if match:
                found[int(match[1])] = os.path.join(folder, name.removesuffix(".index"))
    return [found[step] for step in sorted(found)]


def newest_checkpoint(folder: str) -> str | None:
    return next(reversed(find_checkpoints(folder)), None)


def refuse_trials(folder: str) -> None:
    """Checks that a folder without a model isn't the one around several trials, each with a model of its own."""
    path = os.path.join(folder, TRIALS_FILE)
    if tf.io.gfile.exists(path):
        best = check_types(read_json(path, "the trials"), {"best": str | None}, path).get("best")
        example = f", such as {os.path.join(folder, best)}" if best else ""
        raise InputError(f"{folder} holds several trials; name the folder of one{example}")


def find_best_checkpoint(folder: str) -> str | None:
    """Returns the checkpoint that did best on held-out data, None if none is recorded or it is gone."""
    path = os.path.join(folder, BEST_FILE)
    if not tf.io.gfile.exists(path):
        return None
    name = check_types(read_json(path, "the best checkpoint"), {"checkpoint": str}, path, ("checkpoint",))["checkpoint"]
    return next((found for found in find_checkpoints(folder) if os.path.basename(found) == name), None)


def resolve_checkpoint(path: str) -> str | None:
    """Returns the checkpoint that a path names, None if there is none.

    In a folder that is the one that did best on held-out data, or the newest if that is unknown.
    """
    if not tf.io.gfile.exists(f"{path}.index") and tf.io.gfile.isdir(path):
        path = find_best_checkpoint(path) or newest_checkpoint(path) or named_newest(path)
    return path if path and tf.io.gfile.exists(f"{path}.index") else None


def checkpoint_folder(path: str) -> str:
    """Returns the folder of the checkpoint that a path names; the path may be the folder itself."""
    is_folder = not tf.io.gfile.exists(f"{path}.index") and tf.io.gfile.isdir(path)
    return path if is_folder else os.path.dirname(path)


def find_beside_checkpoint(checkpoint: str | None, name: str) -> str | None:
    """Returns the path of a file in the folder of a checkpoint, None if it isn't there."""
    if not checkpoint:
        return None
    path = os.path.join(checkpoint_folder(checkpoint), name)
    return path if tf.io.gfile.exists(path) else None


def best_source(name: str, shapes: dict[str, list[int]]) -> str:
    """Returns the name of the best values that a checkpoint has of a variable: averages, where there are any."""
    averaged = f"{AVERAGES_PREFIX}{name}"
    return averaged if averaged in shapes else f"{MODEL_PREFIX}{name}"


def only_model(by_name: dict) -> dict:
    return {name: value for name, value in by_name.items() if name.startswith(MODEL_PREFIX)}


def write_checkpoint(path: str, values: dict[str, np.ndarray]) -> None:
    """Writes a `tf.train.Checkpoint` whose variables have these names."""
    with tf.device("CPU:0"):
        variables = {name: tf.Variable(value) for name, value in values.items()}
        tf.train.Checkpoint(**_nest(variables)).write(path)


def write_large_checkpoint(path: str, values: collections.abc.Mapping[str, np.ndarray]) -> None:
    """Writes the same as `write_checkpoint`, asking for each value once and holding only a part of them in memory."""
    # TensorFlow describes the objects by their names alone, and so numbers in place of the values will do.
    example = f"{path}_temp/example"
    write_checkpoint(example, dict.fromkeys(values, 0.0))
    description = CheckpointReader(example, suffix="").read([_OBJECT_GRAPH])[_OBJECT_GRAPH]
    delete_checkpoint(example)
    named = ((f"{name}{_VALUE_SUFFIX}", values[name]) for name in values)
    _write_in_parts(path, itertools.chain(named, [(_OBJECT_GRAPH, np.array(description, object))]))


def write_variables(path: str, values: collections.abc.Mapping[str, np.ndarray]) -> None:
    """Writes names and values alone, as TensorFlow 1 did, also asking for each value once."""
    _write_in_parts(path, ((name, values[name]) for name in values))


def _write_in_parts(path, named_values):
    """Writes checkpoints of some of the variables each, and merges them."""
    tf.io.gfile.makedirs(f"{path}_temp")
    parts, pending, num_bytes = [], {}, 0

    def write_pending():
        parts.append(f"{path}_temp/part-{len(parts)}")
        tf.raw_ops.SaveV2(
            prefix=parts[-1],
            tensor_names=list(pending),
            shape_and_slices=[""] * len(pending),
            tensors=list(pending.values()),
        )
        pending.clear()

    with tf.device("CPU:0"):
        for name, value in named_values:
            pending[name] = _as_tensor(value)
            num_bytes += value.nbytes
            del value
            if num_bytes >= _PART_BYTES:
                write_pending()
                num_bytes = 0
        if pending:
            write_pending()
        tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=parts, destination_prefix=path, delete_old_dirs=True)


def _as_tensor(value):
    """Returns an array as a tensor, without a copy where possible; `tf.constant` makes two."""
    flags = value.flags if isinstance(value, np.ndarray) else None
    if flags is not None and value.dtype == np.float32 and value.size and flags.c_contiguous and flags.writeable:
        return tf.experimental.dlpack.from_dlpack(value.__dlpack__())
    return tf.constant(value)


def describe_unfinished(path: str) -> str | None:
    """Returns a sentence on how far the run of a folder got that was stopped before its end; None if there is none.

    One with results of an evaluation is finished: it may have stopped early, or somebody has looked at it.
    """
    settings = os.path.join(path, SETTINGS_FILE)
    if not tf.io.gfile.exists(settings) or tf.io.gfile.exists(os.path.join(path, EVAL_RESULTS_FILE)):
        return None
    planned = check_types(read_json(settings, "the settings of the run"), {"num_train_steps": int | None}, settings)
    steps = [int(checkpoint.rpartition("-")[2]) for checkpoint in find_checkpoints(path)]
    if not steps or steps[-1] >= (planned.get("num_train_steps") or 0):
        return None
    return (
        f"the training in {path} has reached step {steps[-1]:,} of {planned['num_train_steps']:,}; repeat its "
        "command to finish it"
    )


def named_newest(folder: str) -> str | None:
    """Returns the checkpoint that the file for TensorFlow's own readers names, None if it names none."""
    try:
        return tf.train.latest_checkpoint(folder)
    except ValueError:  # the file is damaged
        return None


def write_state_file(folder: str, newest: str) -> None:
    """Writes the file that `tf.train.latest_checkpoint(folder)` reads; it lists no checkpoint after `newest`."""
    found = find_checkpoints(folder)
    names = [os.path.basename(path) for path in found[: found.index(newest) + 1]]
    lines = [f'model_checkpoint_path: "{names[-1]}"', *(f'all_model_checkpoint_paths: "{name}"' for name in names)]
    write_text(os.path.join(folder, "checkpoint"), "\n".join(lines) + "\n")


def delete_checkpoint(path: str) -> None:
    """Deletes a whole or half checkpoint; the index first, so that half of one is never taken for a whole."""
    folder, name = os.path.split(path)
    if tf.io.gfile.exists(f"{path}.index"):
        tf.io.gfile.remove(f"{path}.index")
    for file in tf.io.gfile.listdir(folder or "."):
        if file.startswith((f"{name}.data-", f"{name}_temp")):
            remove(os.path.join(folder, file.rstrip("/")))


def _nest(named):
    """Turns {"a/b": x} into {"a": {"b": x}}, for a checkpoint joins the names of nested dictionaries."""
    nested = {}
    for name, value in named.items():
        *parents, last = name.split("/")
        level = nested
        for parent in parents:
            level = level.setdefault(parent, {})
        level[last] = value
    return nested
