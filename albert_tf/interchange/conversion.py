"""Converts checkpoints from one format to another."""

import os
import re
import types

import tensorflow as tf

from albert_tf.base.checkpoint_files import find_beside_checkpoint
from albert_tf.base.errors import InputError
from albert_tf.base.files import gfile_for, read_bytes, read_json, read_text, write_bytes, write_text
from albert_tf.base.folders import new_folder
from albert_tf.interchange import google_tf1, huggingface, keras_hub, ours
from albert_tf.interchange.families import family_of
from albert_tf.interchange.portable_model import ReadOptions
from albert_tf.interchange.publishing import publish
from albert_tf.tokenization.sentencepiece.tokenizer import MODEL_FILE
from albert_tf.training.run_folder.model_card import CARD_FILE, for_transformers, with_base_model

# Each reads a path into a `PortableModel` and writes one into a folder.
FORMATS: dict[str, types.ModuleType] = {
    "albert_tf": ours,
    "google": google_tf1,
    "huggingface": huggingface,
    "keras_hub": keras_hub,
}
# A model's folder in the hub's cache.
_IN_CACHE = re.compile(r"/models--([^/]+)/snapshots/[^/]+$")
_HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")


def convert_checkpoint(
    source: str,
    target: str,
    input_path: str,
    output_dir: str,
    options: ReadOptions | None = None,
    weights_dtype: str | None = None,
) -> list[str]:
    """Writes a model of one format in another, or of our own format as a folder for others to start from.

    Args:
        source: The format that is read, a key of `FORMATS`.
        target: The one that is written.
        input_path: The folder or checkpoint to read.
        output_dir: The folder to write, all at the end; must not be there, or be empty.
        options: For what the files don't say.
        weights_dtype: "float16" (None) or "float32" of a model that stays in our format; others have float32.

    Returns:
        Sentences on what was read, what was left and why, and what was written.

    Raises:
        InputError: The model is damaged, contradicts itself, or is none that albert_tf or the other format has; a
            setting is wrong; or the folder holds something.
    """
    for name, value in (("from", source), ("to", target)):
        if value not in FORMATS:
            raise InputError(f"`{name}` must be one of {', '.join(FORMATS)}. Received: {value}")
    options = options or ReadOptions()
    stays_ours = source == target == "albert_tf"
    if stays_ours:  # its own files say all
        for name, value in vars(options).items():
            if value is not None:
                raise InputError(f"`{name}` has no meaning where a model of albert_tf stays one; leave it out")
    elif weights_dtype not in (None, "float32"):
        raise InputError(f"`weights_dtype={weights_dtype}` works only with `from=albert_tf` and `to=albert_tf`")
    with new_folder(output_dir) as folder:  # first, so that the place is looked at before the work
        if stays_ours:
            sentences = publish(input_path, folder, weights_dtype or "float16")
        else:
            sentences = _convert(source, target, input_path, folder, options)
        num_bytes = sum(entry.stat().st_size for entry in os.scandir(folder))
    return [*sentences, f"wrote {output_dir}: {num_bytes / 1e6:.1f} MB"]


def _convert(source, target, input_path, folder, options):
    """Writes a model in another format; returns sentences on what was read and what was left."""
    model = FORMATS[source].read(input_path, options)
    can_be_causal = target == "albert_tf" or (target == "huggingface" and family_of(model.config).can_be_causal)
    if model.config.is_causal and not can_be_causal:
        raise InputError(
            f"`to={target}` can't express is_causal=true: the models of its code see both sides of a piece"
        )
    notes = FORMATS[target].write(model, folder)
    if model.sentencepiece_file is not None:
        tf.io.gfile.copy(model.sentencepiece_file, os.path.join(folder, MODEL_FILE))
    _take_card(source, target, input_path, folder)
    return [
        f"read {input_path}: {len(model.weights)} variables, {model.num_parameters:,} parameters",
        *model.notes,
        *notes,
    ]


def _take_card(source, target, input_path, folder):
    """Writes the card of a model, which holds its licence, into the folder that the model is converted to."""
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
    """Returns a model's name on the hub, which the path in its cache tells or the config; None if neither does."""
    found = _IN_CACHE.search(os.path.abspath(folder))
    if found:
        return found[1].replace("--", "/", 1)
    name = read_json(os.path.join(folder, huggingface.CONFIG_FILE), "the model config").get("_name_or_path")
    is_known = isinstance(name, str) and _HUB_NAME.fullmatch(name) and not gfile_for(name).exists(name)
    return name if is_known else None
