"""Writing a trained model as a SavedModel that takes raw strings, in the layout of TensorFlow Serving."""

import contextlib
import os

import tensorflow as tf

import albert_tf
from albert_tf.errors import InputError
from albert_tf.exports import DEFAULT, hashes_of
from albert_tf.files import UNFINISHED, write_json, write_text
from albert_tf.finetuning import MultiLabel
from albert_tf.folder_lock import hold
from albert_tf.litert.files import CARD_FILE, FAST_TOKENIZER_FILE, LITERT_FILE
from albert_tf.serving.compression import pack_weights
from albert_tf.serving.exported import EXTRA_FOLDER, describe
from albert_tf.serving.loading import TrainedModel, load_trained
from albert_tf.serving.other_runtimes import ONNX_FILE, to_litert, to_onnx, trace_for_ids
from albert_tf.serving.signatures import make_signatures
from albert_tf.tokenization import Tokenizer
from albert_tf.tokenization.huggingface import differences, takes_special_tokens_in_text, to_tokenizers
from albert_tf.training.run_folder.start_card import license_beside
from albert_tf.whole_folders import new_folder

FORMATS = ("saved_model", "litert", "onnx")
WEIGHT_TYPES = ("float32", "bfloat16", "float16", "int8")


def export_model(
    model_dir: str | os.PathLike,
    output_dir: str | os.PathLike,
    weight_type: str = "float32",
    model_format: str = "saved_model",
    tokenizer: Tokenizer | None = None,
) -> str:
    """Writes the model of a folder below a new version number; returns where.

    A server that watches the folder finds the new version once it is complete.

    Args:
        model_dir: What a command that trains has written, or a published model.
        output_dir: The folder of all versions: 1, 2 and so on.
        weight_type: How the large weights are stored: "float32"; in a SavedModel "bfloat16", in which products are
            then computed, too; or with LiteRT "float16" or "int8".
        model_format: "saved_model", which takes strings; or "litert" or "onnx", whose graphs take ids (see
            `other_runtimes`).
        tokenizer: For a model without one; None for the folder's.

    Raises:
        InputError: There is no model that can be exported.
    """
    if model_format == "saved_model" and weight_type not in ("float32", "bfloat16"):
        raise InputError(
            f"`format=saved_model` can't store `weights={weight_type}`; use bfloat16, or `format=litert`, which can"
        )
    if model_format == "onnx" and weight_type != "float32":
        raise InputError(f"`format=onnx` works only with `weights=float32`, not {weight_type}")
    if model_format == "litert" and weight_type == "bfloat16":
        raise InputError(
            "`format=litert` can't store `weights=bfloat16`; use float16, or int8, in which it also computes"
        )
    dtype = "mixed_bfloat16" if weight_type == "bfloat16" else "float32"
    output_dir = os.fspath(output_dir)
    with hold(output_dir):
        target = os.path.join(output_dir, str(_next_version(output_dir)))
        with new_folder(target) as folder:
            trained = load_trained(model_dir, "`model_dir`", tokenizer, dtype=dtype)
            if model_format == "saved_model":
                functions = _save_model(folder, trained, weight_type)
                beside = os.path.join(folder, EXTRA_FOLDER)
                os.makedirs(beside)
            else:
                functions = {DEFAULT: _convert(folder, trained, weight_type, model_format)}
                beside = folder
            trained.tokenizer.save(beside)
            card = {**model_card(trained, functions, weight_type), "files": hashes_of(folder)}
            if os.path.exists(os.path.join(beside, FAST_TOKENIZER_FILE)):
                card["special_tokens_in_text"] = takes_special_tokens_in_text(trained.tokenizer)
                card["truncation"] = trained.tokenizer.vocabulary.truncation
            write_json(os.path.join(beside, CARD_FILE), card)
        return target


def _save_model(folder, trained, weight_type):
    # Of Python's objects no more than the graphs need, for each of them is made anew at every start.
    saved = tf.Module()
    saved.weights = pack_weights(trained.model, weight_type)
    saved.resources = trained.tokenizer.resources
    functions = make_signatures(trained).trace()
    tf.saved_model.save(saved, folder, functions)
    return functions


def _convert(folder, trained, weight_type, model_format):
    is_litert, num_entities = model_format == "litert", trained.model.config.num_entities
    if is_litert and num_entities:
        raise InputError(
            f"LiteRT can't express the search for names of entities (num_entities={num_entities}); use "
            "`format=onnx` or saved_model"
        )
    function = trace_for_ids(trained)
    with open(os.path.join(folder, LITERT_FILE if is_litert else ONNX_FILE), "wb") as file:
        file.write(to_litert(function, weight_type) if is_litert else to_onnx(function))
    with contextlib.suppress(InputError):  # of a tokenizer that can't be expressed so there is none
        if differences(trained.tokenizer) is None:
            write_text(os.path.join(folder, FAST_TOKENIZER_FILE), to_tokenizers(trained.tokenizer).to_str())
    return function


def model_card(trained: TrainedModel, functions: dict, weight_type: str) -> dict:
    """Returns what whoever serves or asks a model should know of it, JSON values."""
    task, doc_stride = trained.task, getattr(trained.task, "doc_stride", None)
    return {
        "albert_tf_version": albert_tf.__version__,
        "task": type(task).__name__ if task is not None else "pretraining",
        "labels": list(getattr(task, "labels", ())),
        **({"thresholds": task.thresholds.tolist()} if isinstance(task, MultiLabel) else {}),
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
