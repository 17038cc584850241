"""An exported model in Python: raw strings in, arrays out. Needs nothing of the package's models."""

import collections.abc
import os
import typing

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  (the graph has its operations)

from albert_tf.errors import InputError, first_line
from albert_tf.exports import check_card, check_files, threads_per_batch, version_of
from albert_tf.files import read_json
from albert_tf.litert.files import CARD_FILE
from albert_tf.text_encoding import replace_halves

# What TensorFlow Serving leaves alone beside a SavedModel.
EXTRA_FOLDER = "assets.extra"


class ExportedModel:
    """The SavedModel that `export_model.py` has written; see `Export`.

    Args:
        folder: Its `output_dir`, of which the newest version is taken, or the folder of a version.

    Raises:
        InputError: The folder holds no export.
    """

    def __init__(self, folder: str | os.PathLike):
        self.folder = newest_version(os.fspath(folder))
        self.version = version_of(self.folder)
        self.card = read_card(self.folder)
        check_files(self.card, self.folder)
        try:
            self._loaded = tf.saved_model.load(self.folder)  # kept, for its signatures hold no reference to it
        except (OSError, ValueError, tf.errors.OpError) as error:
            raise InputError(f"{self.folder} can't be loaded ({first_line(error)}); export the model anew") from error
        found = {name: describe(function) for name, function in self._loaded.signatures.items()}
        if _unordered(found) != _unordered(self.signatures):
            raise InputError(f"{self.folder}: the card has other signatures than the graph; export the model anew")

    @property
    def signatures(self) -> dict[str, dict[str, typing.Any]]:
        """The names of each signature's "inputs", and the "outputs" with dtype and shape."""
        return self.card["signatures"]

    def answer(
        self, signature: str, inputs: collections.abc.Mapping[str, collections.abc.Sequence[str | bytes]]
    ) -> dict[str, np.ndarray]:
        strings = {
            name: tf.constant([_utf8(text) for text in texts], tf.string, [len(texts)])
            for name, texts in inputs.items()
        }
        values = self._loaded.signatures[signature](**strings)
        return {name: values[name].numpy() for name in self.signatures[signature]["outputs"]}


def describe(function: typing.Any) -> dict[str, typing.Any]:
    """Returns the names of a concrete function's "inputs", and the "outputs" with dtype and shape."""
    by_position, by_name = function.structured_input_signature
    return {
        "inputs": [spec.name for spec in (*by_position, *by_name.values())],
        "outputs": {
            name: [spec.dtype.name, spec.shape.as_list()] for name, spec in sorted(function.structured_outputs.items())
        },
    }


def _unordered(signatures):
    """Returns signatures with their inputs sorted, as graphs that were loaded have them."""
    return {name: {**signature, "inputs": sorted(signature["inputs"])} for name, signature in signatures.items()}


def load_alone(folder: str | os.PathLike) -> ExportedModel:
    """Returns an export for a process that does nothing else: TensorFlow gets the threads that its batches need."""
    folder = newest_version(os.fspath(folder))
    tf.config.threading.set_intra_op_parallelism_threads(threads_per_batch(read_card(folder)))
    return ExportedModel(folder)


def read_card(folder: str) -> dict[str, typing.Any]:
    """Returns what the folder of a version says of its model."""
    path = os.path.join(folder, EXTRA_FOLDER, CARD_FILE)
    # Beside what is no SavedModel it lies in the folder itself.
    path = path if tf.io.gfile.exists(path) else os.path.join(folder, CARD_FILE)
    return check_card(read_json(path, "the model card"), path)


def find_export(folder: str) -> str | None:
    """Returns the folder of the newest version of an export, or the folder itself if it is one; None if it is none."""
    card = os.path.join(EXTRA_FOLDER, CARD_FILE)
    if tf.io.gfile.exists(os.path.join(folder, card)):
        return folder
    names = tf.io.gfile.listdir(folder) if tf.io.gfile.isdir(folder) else []
    versions = sorted((name.rstrip("/") for name in names if name.rstrip("/").isdecimal()), key=int)
    versions = [name for name in versions if tf.io.gfile.exists(os.path.join(folder, name, card))]
    return os.path.join(folder, versions[-1]) if versions else None


def newest_version(folder: str) -> str:
    """Returns what `find_export` does."""
    found = find_export(folder)
    if found is None:
        raise InputError(f"{folder} holds no exported model; write one with export_model.py, and name its folder")
    return found


def _utf8(text):
    return text if isinstance(text, bytes) else replace_halves(text).encode()
