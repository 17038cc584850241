"""Converts checkpoints from one format to another, and takes folders of other libraries as if they were ours."""

import collections.abc
import contextlib
import os
import re
import tempfile
import types
import typing
import warnings

import tensorflow as tf

from albert_tf.base.checkpoint_files import SETTINGS_FILE, find_beside_checkpoint
from albert_tf.base.console import DETAILS, WARNINGS, tell
from albert_tf.base.errors import InputError
from albert_tf.base.files import (
    empty,
    gfile_for,
    read_bytes,
    read_json,
    read_text,
    sha256_of,
    write_bytes,
    write_json,
    write_text,
)
from albert_tf.base.folders import new_folder
from albert_tf.interchange import google_tf1, huggingface, keras_hub, ours
from albert_tf.interchange.families import family_of
from albert_tf.interchange.portable_model import Caveat, ReadOptions
from albert_tf.interchange.tokenizers.files import NO_TOKENIZER, find_tokenizer
from albert_tf.interchange.tokenizers.sentencepiece import HUGGINGFACE
from albert_tf.interchange.tokenizers.wordpiece import read_pieces
from albert_tf.modeling.pretrained import CONFIG_FILE
from albert_tf.tokenization import Tokenizer
from albert_tf.tokenization.sentencepiece.tokenizer import MODEL_FILE
from albert_tf.tokenization.tokenizer import VOCABULARY_FILE
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

# In the folder of a run, the model that it began with; and the record of what that was converted from.
CONVERTED_FOLDER = "converted_model"
_SOURCE_FILE = "converted_from.json"

# Endings of the files that make up a model and its tokenizer.
_MODEL_FILES = (
    ".safetensors",
    ".safetensors.index.json",
    ".h5",
    ".model",
    "vocab.txt",
    *("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
)

# By the files that tell them.
_WEIGHTS = {
    "huggingface": (huggingface.WEIGHTS_FILE, huggingface.INDEX_FILE, *huggingface.PICKLES),
    "keras_hub": (keras_hub.WEIGHTS_FILE,),
}


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
            sentences = ours.publish(input_path, folder, weights_dtype or "float16")
        else:
            sentences = _convert(source, target, input_path, folder, options)
        num_bytes = sum(entry.stat().st_size for entry in os.scandir(folder))
    return [*sentences, f"wrote {output_dir}: {num_bytes / 1e6:.1f} MB"]


def _convert(source, target, input_path, folder, options):
    """Writes a model in another format; returns sentences on what was read and what was left."""
    model = FORMATS[source].read(input_path, options)
    can_be_causal = target == "albert_tf" or (target == "huggingface" and family_of(model.config).can_be_causal)
    if model.config.is_causal and not can_be_causal:
        raise InputError(f"`to={target}` can't express is_causal=true: its models see both sides of a piece")
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


class OurFolder(typing.NamedTuple):
    """A folder of ours with the content of another library's."""

    path: str
    why_no_task: str | None  # why the head that was there can't be asked; None where it can, or there was none


def format_of(folder: str) -> str | None:
    """Returns the format of another library's folder, a key of `conversion.FORMATS`; None for all other folders."""
    exists = gfile_for(folder).exists
    if exists(os.path.join(folder, CONFIG_FILE)) or not exists(os.path.join(folder, huggingface.CONFIG_FILE)):
        return None
    return next(
        (name for name, files in _WEIGHTS.items() if any(exists(os.path.join(folder, file)) for file in files)), None
    )


@contextlib.contextmanager
def as_ours(folder: str, needs_tokenizer: bool = True) -> collections.abc.Iterator[OurFolder]:
    """Yields a folder as it is if it is ours, or else a temporary one with another library's model.

    An InputError if the model can't be converted, or the tokenizer where one is needed.
    """
    source = format_of(folder)
    if source is None:
        yield OurFolder(folder, None)
        return
    with tempfile.TemporaryDirectory(prefix="albert_tf_") as temporary:
        path = os.path.join(temporary, "model")
        sentences = convert_checkpoint(source, "albert_tf", folder, path)
        for each in sentences:
            if isinstance(each, Caveat):
                warnings.warn(f"{folder}: {each}", stacklevel=4)
        lacking = next((each for each in sentences if each.startswith(NO_TOKENIZER)), None)
        if lacking and needs_tokenizer:
            raise InputError(f"{folder}: {lacking}")
        yield OurFolder(path, _why_no_task(sentences))


def kept_as_ours(folder: str, output_dir: str, name: str = CONVERTED_FOLDER, is_to_answer: bool = False) -> str:
    """Returns a folder of ours, or one with another library's model that is kept as `name` in the folder of a run.

    `is_to_answer` is for the teacher of a task, which needs a head that can be asked. An InputError if the model can't
    be converted, or the run keeps one that was converted from another.
    """
    source = format_of(folder)
    if source is None:
        return folder
    kept = os.path.join(output_dir, name)
    files = sorted(file for file in gfile_for(folder).listdir(folder) if file.endswith(_MODEL_FILES))
    content = {"format": source, **{file: sha256_of(os.path.join(folder, file)) for file in files}}
    if gfile_for(kept).exists(os.path.join(kept, _SOURCE_FILE)):
        if read_json(os.path.join(kept, _SOURCE_FILE), "what was converted") == content:
            return kept
        # A run that was refused, for what the config says of the head, has not begun.
        if not is_to_answer or gfile_for(output_dir).exists(os.path.join(output_dir, SETTINGS_FILE)):
            raise InputError(
                f"{kept} was converted from another model than {folder} holds now; choose another `output_dir`, or the "
                "model it began with"
            )
    if gfile_for(kept).exists(os.path.join(kept, CONFIG_FILE)):
        empty(kept)  # that run never began, or a process was killed here
    sentences = convert_checkpoint(source, "albert_tf", folder, kept)
    for sentence in sentences:
        tell(sentence, WARNINGS if isinstance(sentence, Caveat) else DETAILS)
    if is_to_answer and not gfile_for(kept).exists(os.path.join(kept, SETTINGS_FILE)):
        reason = _why_no_task(sentences) or "it has no head"
        raise InputError(
            f"`teacher={folder}` was not fine-tuned for a task that is known here: {reason}; name a model that was"
        )
    write_json(os.path.join(kept, _SOURCE_FILE), content)
    return kept


def tokenizer_of_transformers(folder: str, options: ReadOptions) -> tuple[Tokenizer, tuple[str, ...]]:
    """Returns our tokenizer of a folder of transformers, which may lack config.json, and sentences on what differs."""
    config_file = os.path.join(folder, huggingface.CONFIG_FILE)
    config = read_json(config_file, "the model config") if gfile_for(folder).exists(config_file) else {}
    num_pieces = len(read_pieces(os.path.join(folder, VOCABULARY_FILE))[0])
    found = find_tokenizer(folder, options, config.get("vocab_size", num_pieces), HUGGINGFACE)
    if found.tokenizer is None:
        raise InputError(f"{folder}: {'; '.join(found.notes)}")
    return found.tokenizer, found.notes


def _why_no_task(sentences):
    """Returns why a converted head can't be asked; None where it can, or there is none."""
    return next((sentence.partition(ours.NO_TASK)[2] for sentence in sentences if ours.NO_TASK in sentence), None)
