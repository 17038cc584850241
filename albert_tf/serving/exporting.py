"""Exporting a trained model as a new version, in the layout of TensorFlow Serving."""

import os

import tensorflow as tf

import albert_tf
from albert_tf.asking.cards import CARD_FILE, FAST_TOKENIZER_FILE, hashes_of
from albert_tf.base.errors import InputError
from albert_tf.base.files import UNFINISHED, write_json, write_text
from albert_tf.base.folders import hold, new_folder
from albert_tf.serving.formats import FORMATS, check_weight_type
from albert_tf.serving.loading import TrainedModel, load_trained
from albert_tf.serving.saved_model import describe
from albert_tf.tokenization import Tokenizer
from albert_tf.tokenization.huggingface import differences, takes_special_tokens_in_text, to_tokenizers
from albert_tf.training.run_folder.model_card import license_beside


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
            functions = written.write(folder, trained, weight_type)
            os.makedirs(beside := written.beside(folder), exist_ok=True)
            trained.tokenizer.save(beside)
            tokenizer_card = _write_fast_tokenizer(trained.tokenizer, beside) if written.reads_ids else {}
            card = {**model_card(trained, functions, weight_type), "files": hashes_of(folder), **tokenizer_card}
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


def model_card(trained: TrainedModel, functions: dict, weight_type: str) -> dict:
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
