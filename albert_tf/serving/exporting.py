"""Writing a trained model as a SavedModel that takes raw strings, in the layout of TensorFlow Serving."""

import os
import tempfile

import tensorflow as tf

import albert_tf
from albert_tf.errors import InputError
from albert_tf.files import write_json
from albert_tf.serving.loading import TrainedModel, load_trained
from albert_tf.serving.signatures import make_signatures
from albert_tf.tokenization import Tokenizer

# What TensorFlow Serving leaves alone beside a SavedModel.
EXTRA_FOLDER = "assets.extra"
CARD_FILE = "model_card.json"


def export_model(
    model_dir: str | os.PathLike, output_dir: str | os.PathLike, tokenizer: Tokenizer | None = None
) -> str:
    """Writes the model of a folder below a new version number; returns where.

    A server that watches the folder finds the new version once it is complete.

    Args:
        model_dir: What a command that trains has written, or a published model.
        output_dir: The folder of all versions: 1, 2 and so on.
        tokenizer: For a model without one; None for the folder's.

    Raises:
        InputError: There is no model that can be exported.
    """
    trained = load_trained(model_dir, "--model_dir", tokenizer)
    signatures = make_signatures(trained)
    functions = signatures.trace()
    version = _next_version(output_dir)
    with tempfile.TemporaryDirectory() as temporary:
        tf.saved_model.save(signatures, temporary, functions)
        extra = os.path.join(temporary, EXTRA_FOLDER)
        os.makedirs(extra)
        trained.tokenizer.save(extra)
        write_json(os.path.join(extra, CARD_FILE), model_card(trained, functions))
        return _move_in(temporary, os.path.join(output_dir, str(version)))


def model_card(trained: TrainedModel, functions: dict) -> dict:
    """Returns what whoever serves or asks a model should know of it, JSON values."""
    task = trained.task
    return {
        "albert_tf_version": albert_tf.__version__,
        "task": type(task).__name__ if task is not None else "pretraining",
        "labels": list(getattr(task, "labels", ())),
        "signatures": {name: _describe(function) for name, function in functions.items()},
        "max_seq_length": trained.max_seq_length,
        "tokenizer": trained.tokenizer.identity,
        "checkpoint": os.path.basename(trained.checkpoint),
        "config": trained.config.to_dict(),
        "metrics": trained.results,
    }


def _describe(function):
    inputs, outputs = function.structured_input_signature[0], function.structured_outputs
    return {
        "inputs": [spec.name for spec in inputs],
        "outputs": {name: [spec.dtype.name, spec.shape.as_list()] for name, spec in sorted(outputs.items())},
    }


def _next_version(output_dir):
    names = tf.io.gfile.listdir(output_dir) if tf.io.gfile.exists(output_dir) else []
    names = [name.rstrip("/") for name in names if not name.startswith(".")]
    others = [name for name in names if not name.isdecimal()]
    if others:
        raise InputError(f"--output_dir={output_dir} holds {others[0]}, which is no version; choose another folder")
    return 1 + max(map(int, names), default=0)


def _move_in(source, target):
    """Copies a folder to where it belongs, under a name that no server reads until all is there."""
    unfinished = os.path.join(os.path.dirname(target), f".{os.path.basename(target)}.unfinished")
    for folder, _, files in os.walk(source):
        there = os.path.normpath(os.path.join(unfinished, os.path.relpath(folder, source)))
        tf.io.gfile.makedirs(there)
        for file in files:
            tf.io.gfile.copy(os.path.join(folder, file), os.path.join(there, file), overwrite=True)
    tf.io.gfile.rename(unfinished, target)
    return target
