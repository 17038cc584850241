"""What `export_model.py --format=litert` writes."""

import json
import os
import typing

from albert_tf.errors import InputError

LITERT_FILE = "model.tflite"
SAVED_MODEL_FILE = "saved_model.pb"
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
    """Returns what the folder says of its model.

    Raises:
        InputError: The model is of a task that only TensorFlow answers, or files are missing.
    """
    try:
        with open(os.path.join(folder, CARD_FILE), encoding="utf-8") as file:
            card = json.load(file)
    except (OSError, ValueError) as error:
        raise InputError(f"can't read {CARD_FILE} in {folder} ({error}); export the model anew") from error
    if card["task"] not in ("Classification", "Regression"):
        raise InputError(
            f"{folder} holds a model for {card['task']}, whose answers need TensorFlow; load the folder that it was "
            "exported from, or export it with --format=saved_model"
        )
    if not os.path.exists(os.path.join(folder, FAST_TOKENIZER_FILE)):
        raise InputError(
            f"{folder} has no {FAST_TOKENIZER_FILE}: it was exported by an earlier version, or has a tokenizer that "
            "the tokenizers library can't express; export it anew, or with --format=saved_model"
        )
    return card
