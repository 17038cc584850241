"""Model cards on the way from one format to another: a licence goes where the weights go."""

import os
import re

from albert_tf.checkpoint_files import find_beside_checkpoint
from albert_tf.files import gfile_for, read_bytes, read_json, read_text, write_bytes, write_text
from albert_tf.interchange import huggingface
from albert_tf.training.run_folder.model_card import for_transformers
from albert_tf.training.run_folder.start_card import CARD_FILE, with_base_model

# What the hub's cache calls the folder of a model.
_IN_CACHE = re.compile(r"/models--([^/]+)/snapshots/[^/]+$")
_HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")


def take_card(source: str, target: str, input_path: str, folder: str) -> None:
    """Writes the card that lies beside a model into the folder that it is converted to, if there is one."""
    copy = os.path.join(folder, CARD_FILE)
    if (source, target) == ("albert_tf", "huggingface"):
        card = find_beside_checkpoint(input_path, CARD_FILE)
        if card is not None:
            write_text(copy, for_transformers(read_text(card, "the model card")))
    elif source == "huggingface" and gfile_for(input_path).exists(os.path.join(input_path, CARD_FILE)):
        card = read_bytes(os.path.join(input_path, CARD_FILE), "the model card")
        hub_name = _hub_name(input_path)
        if hub_name is not None:
            card = with_base_model(card.decode("utf-8", errors="surrogateescape"), hub_name)
            card = card.encode("utf-8", errors="surrogateescape")
        write_bytes(copy, card)


def _hub_name(folder):
    """Returns what the hub calls the model of a folder, None where that is not known.

    The hub's cache tells by its path, and transformers by what it once loaded the model as.
    """
    found = _IN_CACHE.search(os.path.abspath(folder))
    if found:
        return found[1].replace("--", "/", 1)
    name = read_json(os.path.join(folder, huggingface.CONFIG_FILE), "the model config").get("_name_or_path")
    is_known = isinstance(name, str) and _HUB_NAME.fullmatch(name) and not gfile_for(name).exists(name)
    return name if is_known else None
