"""The formats of exports: what writes, finds and loads each; nothing here imports TensorFlow before it must."""

import abc
import os
import typing

from albert_tf.asking.backend import Export
from albert_tf.asking.cards import CARD_FILE, check_card, threads_per_batch
from albert_tf.base.errors import InputError
from albert_tf.base.files import gfile_for, read_json


class Format(abc.ABC):
    """One of `FORMATS`: a folder with a file that no other format has, a model card and a tokenizer.

    Attributes:
        weight_types: How it can store large weights; float32 first.
        reads_ids: Whether texts are encoded outside of it, by a tokenizer beside it.
        extra_folder: Of card and tokenizer in its folder.
        needs_tensorflow: Whether `load` does.
    """

    name: str
    file: str
    weight_types: tuple[str, ...] = ("float32",)
    reads_ids = True
    extra_folder = ""
    needs_tensorflow = False

    @abc.abstractmethod
    def write(self, folder: str, trained: typing.Any, weight_type: str) -> dict[str, typing.Any]:
        """Writes a `TrainedModel` into a new folder; returns the concrete functions that it consists of, by name."""

    def load(self, folder: str) -> Export:
        """Loads an export of `find_export`; InputError if it is damaged or incomplete, or for elsewhere alone."""
        raise self.refusal(folder)

    def refusal(self, folder: str) -> InputError:
        """Returns the error where an export is of no use."""
        return InputError(
            f"{os.path.join(folder, self.file)} can't be used in this way (docs/serving.md says how); name the folder "
            "that it was exported from"
        )

    def load_alone(self, folder: str) -> Export:
        """Loads an export in a process that does nothing else."""
        return self.load(folder)

    def beside(self, folder: str) -> str:
        """Returns the folder of card and tokenizer."""
        return os.path.join(folder, self.extra_folder)

    def read_card(self, folder: str) -> dict[str, typing.Any]:
        """Returns the checked model card of a folder."""
        path = os.path.join(self.beside(folder), CARD_FILE)
        if not gfile_for(path).exists(path):
            raise self.refusal(folder)
        return check_card(read_json(path, "the model card"), path)


class SavedModel(Format):
    """TensorFlow's, which takes strings."""

    name, file, weight_types, reads_ids = "saved_model", "saved_model.pb", ("float32", "bfloat16"), False
    extra_folder, needs_tensorflow = "assets.extra", True  # TensorFlow Serving leaves this folder alone

    def write(self, folder, trained, weight_type):
        from albert_tf.serving.exporting import write_saved_model

        return write_saved_model(folder, trained, weight_type)

    def load(self, folder):
        from albert_tf.serving.saved_model import SavedModelBackend

        return SavedModelBackend(folder, self.read_card(folder), self.beside(folder))

    def load_alone(self, folder):
        """TensorFlow gets the threads that its batches need."""
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(threads_per_batch(self.read_card(folder)))
        return self.load(folder)


class LiteRT(Format):
    """For phones and small machines."""

    name, file, weight_types = "litert", "model.tflite", ("float32", "float16", "int8")

    def write(self, folder, trained, weight_type):
        from albert_tf.serving.exporting import write_litert

        return write_litert(os.path.join(folder, self.file), trained, weight_type)

    def load(self, folder):
        from albert_tf.asking.litert import LiteRTBackend

        return LiteRTBackend(folder, self.read_card(folder), os.path.join(folder, self.file))


class ONNX(Format):
    """For ONNX's runtimes, which no backend asks."""

    name, file = "onnx", "model.onnx"

    def write(self, folder, trained, weight_type):
        from albert_tf.serving.exporting import write_onnx

        return write_onnx(os.path.join(folder, self.file), trained)


FORMATS: dict[str, Format] = {each.name: each for each in (SavedModel(), LiteRT(), ONNX())}


class Found(typing.NamedTuple):
    """An export: its format, and the folder of its version."""

    format: Format
    folder: str

    def load(self) -> Export:
        """Loads it; errors as of `Format.load`."""
        return self.format.load(self.folder)


def find_export(folder: str | os.PathLike) -> Found | None:
    """Returns the export in a folder, or else the newest version in it; None if there is none."""
    folder = os.fspath(folder)
    gfile = gfile_for(folder)
    names = [name.rstrip("/") for name in gfile.listdir(folder)] if gfile.isdir(folder) else []
    versions = sorted((name for name in names if name.isdecimal()), key=int, reverse=True)
    for place in (folder, *(os.path.join(folder, name) for name in versions)):
        for each in FORMATS.values():
            if gfile.exists(os.path.join(place, each.file)):
                return Found(each, place)
    return None


def need_export(folder: str | os.PathLike) -> Found:
    """Returns the export in a folder, as `find_export` finds it; raises InputError if there is none."""
    found = find_export(folder)
    if found is None:
        raise InputError(f"{folder} holds no exported model; write one with export_model.py, and name its folder")
    return found


def open_export(folder: str | os.PathLike) -> Export:
    """Loads the export that `find_export` finds; raises InputError if there is none, or it can't be loaded."""
    return need_export(folder).load()


def check_weight_type(model_format: str, weight_type: str) -> None:
    """Raises InputError if a format can't store large weights so."""
    own = FORMATS[model_format].weight_types
    if weight_type in own:
        return
    others = [f"`format={each.name}`" for each in FORMATS.values() if weight_type in each.weight_types]
    elsewhere = f", or {' or '.join(others)}, which can" if others else ""
    raise InputError(f"`format={model_format}` can't store `weights={weight_type}`; use {' or '.join(own)}{elsewhere}")
