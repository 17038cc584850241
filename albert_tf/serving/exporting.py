"""Exporting a trained model as a new version, in the layout of TensorFlow Serving.

A SavedModel takes strings, LiteRT and ONNX take ids and know nothing of TensorFlow Text.
"""

import collections.abc
import contextlib
import io
import os
import tempfile
import typing

import tensorflow as tf
from absl import logging

import albert_tf
from albert_tf.asking.answers import DEFAULT
from albert_tf.asking.cards import CARD_FILE, FAST_TOKENIZER_FILE, hashes_of
from albert_tf.base.errors import InputError, first_line, with_extra
from albert_tf.base.files import UNFINISHED, write_bytes, write_json, write_text
from albert_tf.base.folders import hold, new_folder
from albert_tf.base.startup import held_back_messages
from albert_tf.serving.compression import pack_weights
from albert_tf.serving.formats import FORMATS, check_weight_type
from albert_tf.serving.loading import TrainedModel, load_trained
from albert_tf.serving.saved_model import describe
from albert_tf.serving.signatures import make_signatures
from albert_tf.tokenization import Tokenizer
from albert_tf.tokenization.huggingface import differences, takes_special_tokens_in_text, to_tokenizers
from albert_tf.training.run_folder.model_card import license_beside

INPUT_NAMES = ("input_ids", "input_mask", "segment_ids")

_ONNX_OPSET = 18


def export_model(
    model_dir: str | os.PathLike,
    output_dir: str | os.PathLike,
    weight_type: str = "float32",
    model_format: str = "saved_model",
    tokenizer: Tokenizer | None = None,
) -> str:
    """Writes the model of a folder below a new version number; returns the path.

    A server that watches the folder finds the new version once it is complete.

    Args:
        model_dir: The folder of a run, or a published model.
        output_dir: The folder of all versions: 1, 2 and so on.
        weight_type: How the large weights are stored: "float32"; in a SavedModel "bfloat16", in which products are
            then computed, too; or with LiteRT "float16" or "int8".
        model_format: One of `FORMATS`: "saved_model", which takes strings; or "litert" or "onnx", which take ids.
        tokenizer: For a model without one; None for the folder's.

    Raises:
        InputError: There is no model that can be exported.
    """
    check_weight_type(model_format, weight_type)
    written = FORMATS[model_format]
    dtype = "mixed_bfloat16" if weight_type == "bfloat16" else "float32"
    output_dir = os.fspath(output_dir)
    with hold(output_dir):
        target = os.path.join(output_dir, str(_next_version(output_dir)))
        with new_folder(target) as folder:
            trained = load_trained(model_dir, "`model_dir`", tokenizer, dtype=dtype)
            if trained.task is not None and trained.task.encoder_settings:
                trained = trained.as_encoder()  # vectors of single texts, which whoever asks compares
            functions = written.write(folder, trained, weight_type)
            os.makedirs(beside := written.beside(folder), exist_ok=True)
            trained.tokenizer.save(beside)
            tokenizer_card = _write_fast_tokenizer(trained.tokenizer, beside) if written.reads_ids else {}
            card = {**export_card(trained, functions, weight_type), "files": hashes_of(folder), **tokenizer_card}
            write_json(os.path.join(beside, CARD_FILE), card)
        return target


def _write_fast_tokenizer(tokenizer, folder):
    """Writes the tokenizer as the `tokenizers` library reads it, if that can express it; returns the card's part."""
    try:
        content = to_tokenizers(tokenizer).to_str() if differences(tokenizer) is None else None
    except InputError:
        content = None
    if content is None:
        return {}
    write_text(os.path.join(folder, FAST_TOKENIZER_FILE), content)
    return {
        "special_tokens_in_text": takes_special_tokens_in_text(tokenizer),
        "truncation": tokenizer.vocabulary.truncation,
    }


def export_card(trained: TrainedModel, functions: dict, weight_type: str) -> dict:
    """Returns the facts that whoever serves or asks a model should know, JSON values."""
    task, doc_stride = trained.task, getattr(trained.task, "doc_stride", None)
    return {
        "albert_tf_version": albert_tf.__version__,
        "task": type(task).__name__ if task is not None else "pretraining",
        **({"answer": task.kind.answer.name} if task is not None and task.kind.answer is not None else {}),
        "labels": list(getattr(task, "labels", ())),
        **({"thresholds": list(map(float, task.thresholds))} if task is not None and len(task.thresholds) else {}),
        "signatures": {name: describe(function) for name, function in functions.items()},
        "input_fields": list(task.input_fields) if task is not None else ["text"],
        "input_columns": list(task.input_columns) if task is not None else [],
        "max_seq_length": trained.max_seq_length,
        **({} if doc_stride is None else {"doc_stride": doc_stride}),  # of windows, in which long texts are read
        **({"encoder": trained.encoder_settings} if trained.encoder_settings else {}),
        "tokenizer": trained.tokenizer.identity,
        "weights": weight_type,
        "checkpoint": os.path.basename(trained.checkpoint),
        "config": trained.config.to_dict(),
        "metrics": trained.results,
        **license_beside(trained.checkpoint),
    }


def _next_version(output_dir):
    names = tf.io.gfile.listdir(output_dir) if tf.io.gfile.isdir(output_dir) else []
    names = [name.rstrip("/") for name in names if not name.startswith(".")]
    others = [name for name in names if not name.isdecimal()]
    if others:
        raise InputError(f"`output_dir={output_dir}` holds {others[0]}, which is not a version; choose another folder")
    # One that is not whole, of an export that was killed, is written anew.
    whole = [name for name in names if not tf.io.gfile.exists(os.path.join(output_dir, name, UNFINISHED))]
    return 1 + max(map(int, whole), default=0)


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
            f"LiteRT can't express the search for names of entities (num_entities={num_entities}); use `format=onnx`"
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
            "a model that chooses the best sequence of tags, or reads characters, can't be exported to other runtimes; "
            "use `format=saved_model`, or fine-tune it with `nocharacter_ngrams` and `decoding=independent`"
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
