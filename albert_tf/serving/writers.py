"""Models as files: a SavedModel takes strings, LiteRT and ONNX take ids and know nothing of TensorFlow Text."""

import collections.abc
import contextlib
import io
import os
import tempfile
import typing

import tensorflow as tf
from absl import logging

from albert_tf.asking.answers import DEFAULT
from albert_tf.base.errors import InputError, first_line, with_extra
from albert_tf.base.files import write_bytes
from albert_tf.base.startup import held_back_messages
from albert_tf.serving.compression import pack_weights
from albert_tf.serving.loading import TrainedModel
from albert_tf.serving.signatures import make_signatures

INPUT_NAMES = ("input_ids", "input_mask", "segment_ids")

_ONNX_OPSET = 18


def write_saved_model(folder: str, trained: TrainedModel, weight_type: str) -> dict[str, typing.Any]:
    """Writes a SavedModel; returns the functions of its signatures."""
    # Of Python's objects no more than the graphs need, for each of them is made anew at every start.
    saved = tf.Module()
    saved.weights = pack_weights(trained.model, weight_type)
    saved.resources = trained.tokenizer.resources
    functions = make_signatures(trained).trace()
    tf.saved_model.save(saved, folder, functions)
    return functions


def write_litert(path: str, trained: TrainedModel, weight_type: str) -> dict[str, typing.Any]:
    """Writes a LiteRT model; returns its only function, or raises InputError if LiteRT can't express the model."""
    if num_entities := trained.config.num_entities:
        raise InputError(
            f"LiteRT can't express the search for names of entities (num_entities={num_entities}); use "
            "`format=onnx` or saved_model"
        )
    function = trace_for_ids(trained)
    with _temporary_files_in(os.path.dirname(path)):
        content = to_litert(function, weight_type)
    write_bytes(path, content)
    return {DEFAULT: function}


def write_onnx(path: str, trained: TrainedModel) -> dict[str, typing.Any]:
    """Writes an ONNX model; returns its only function."""
    function = trace_for_ids(trained)
    write_bytes(path, to_onnx(function))
    return {DEFAULT: function}


def trace_for_ids(trained: TrainedModel) -> typing.Any:
    """Returns the concrete function of a model for `INPUT_NAMES`, int32 [B, S] each; B and S are free.

    Its outputs, by name, are those of the task; for a pre-trained model `sequence_output` and, if it has a trained
    pooler that reads the text, `pooled_output`. TensorFlow's functions hold their variables weakly: keep the model as
    long as the function. Raises InputError if the task's batches are of another shape.
    """
    task, model = trained.task, trained.model
    if task is not None and any(len(task.batch_spec(None)[name].shape) != 2 for name in INPUT_NAMES):
        raise InputError(f"a model fine-tuned for {type(task).__name__} can't be exported to other runtimes")
    if task is not None and task.reads_beside_ids:
        raise InputError(
            "a model that chooses the best sequence of tags, or reads characters, can't be exported to other runtimes, "
            "which give it only ids; use `format=saved_model`, or fine-tune it with `nocharacter_ngrams` and "
            "`decoding=independent`"
        )

    def compute(**batch):
        if task is not None:
            return task.outputs(batch, model)
        outputs = model.encoder(batch)
        return {name: outputs[name] for name in (*["pooled_output"] * trained.pools, "sequence_output")}

    specs = {name: tf.TensorSpec([None, None], tf.int32, name) for name in INPUT_NAMES}
    return tf.function(compute, autograph=False).get_concrete_function(**specs)


def to_litert(function: typing.Any, weight_type: str) -> bytes:
    """Returns a LiteRT model of `trace_for_ids`'s function; its outputs are in the order of their names.

    With "int8" products of matrices are computed in 8 bits, where that pays.
    """
    # Given the model as well, the converter of TensorFlow 2.21 leaves Keras's variables out.
    with _quiet():
        converter = tf.lite.TFLiteConverter.from_concrete_functions([function])
    if weight_type != "float32":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if weight_type == "float16":
        converter.target_spec.supported_types = [tf.float16]
    try:
        with _quiet():
            return converter.convert()
    except Exception as error:  # of a class that is no part of TensorFlow's interface
        reason = next((line for line in str(error).splitlines() if "tf." in line), first_line(error)).strip()
        raise InputError(f"LiteRT can't hold this model ({reason[:100]}); use `format=onnx` or saved_model") from error


def to_onnx(function: typing.Any) -> bytes:
    """Returns an ONNX model in float32."""
    try:
        import tf2onnx
    except ImportError as error:
        raise InputError(f"`format=onnx` needs tf2onnx; pip install {with_extra('onnx')}") from error
    specs = [tf.TensorSpec([None, None], tf.int32, name) for name in INPUT_NAMES]
    by_position = tf.function(
        lambda *values: function(**dict(zip(INPUT_NAMES, values))), input_signature=specs, autograph=False
    )
    with _quiet():
        model, _ = tf2onnx.convert.from_function(by_position, input_signature=specs, opset=_ONNX_OPSET)
    return model.SerializeToString()


@contextlib.contextmanager
def _temporary_files_in(folder):
    """Lets the converter's copy of the model lie in a folder that goes when a killed export is repeated."""
    kept, tempfile.tempdir = tempfile.tempdir, folder
    try:
        yield
    finally:
        tempfile.tempdir = kept


@contextlib.contextmanager
def _quiet() -> collections.abc.Iterator[None]:
    """Holds back what the converters say of their own progress, here and in C++."""
    verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    with held_back_messages(), contextlib.redirect_stdout(io.StringIO()):
        try:
            yield
        finally:
            logging.set_verbosity(verbosity)
