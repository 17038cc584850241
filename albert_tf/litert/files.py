"""What `export_model.py --format=litert` writes."""

import os
import typing

from albert_tf.errors import InputError
from albert_tf.exports import check_card
from albert_tf.files import read_json
from albert_tf.json_types import check_types

LITERT_FILE = "model.tflite"
# Those of the other formats.
ONNX_FILE, SAVED_MODEL_FILE = "model.onnx", "saved_model.pb"
CARD_FILE = "model_card.json"
# The tokenizer once more, as the `tokenizers` library reads it.
FAST_TOKENIZER_FILE = "fast_tokenizer.json"


def find_litert(folder: str | os.PathLike) -> str | None:
    """Returns the folder of a LiteRT model: the one that is given, or the newest version in it; None if that is none.

    Args:
        folder: A local folder.
    """
    folder = os.fspath(folder)
    names = os.listdir(folder) if os.path.isdir(folder) else []
    versions = sorted((name for name in names if name.isdecimal()), key=int, reverse=True)
    for place in (folder, *(os.path.join(folder, name) for name in versions)):
        if os.path.exists(os.path.join(place, LITERT_FILE)):
            return place
        if os.path.exists(os.path.join(place, SAVED_MODEL_FILE)):
            return None
    return None


def read_card(folder: str) -> dict[str, typing.Any]:
    """Returns what the folder says of its model; InputError if it is of a task for TensorFlow alone, or lacks files."""
    path = os.path.join(folder, CARD_FILE)
    card = check_card(read_json(path, "the model card"), path)
    if card["task"] not in ("Classification", "MultiLabel", "Regression"):
        raise InputError(
            f"{folder} holds a model for {card['task']}, whose answers need TensorFlow; load the folder that it was "
            "exported from, or what export_model.py --format=saved_model writes of that one"
        )
    if not os.path.exists(os.path.join(folder, FAST_TOKENIZER_FILE)):
        raise InputError(
            f"{folder} has no {FAST_TOKENIZER_FILE}: its tokenizer is one that the tokenizers library can't express; "
            "export it with export_model.py --format=saved_model"
        )
    needed = {"special_tokens_in_text", "truncation", *["thresholds"] * (card["task"] == "MultiLabel")}
    return check_types(card, {}, path, sorted(needed))
