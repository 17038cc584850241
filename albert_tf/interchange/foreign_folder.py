"""Folders of other libraries as if they were ours: to ask the model in them, or to begin a training with it."""

import collections.abc
import contextlib
import os
import tempfile
import typing
import warnings

from albert_tf.base.checkpoint_files import SETTINGS_FILE
from albert_tf.base.console import DETAILS, WARNINGS, tell
from albert_tf.base.errors import InputError
from albert_tf.base.files import empty, gfile_for, read_json, sha256_of, write_json
from albert_tf.interchange import huggingface, keras_hub
from albert_tf.interchange.conversion import convert_checkpoint
from albert_tf.interchange.ours import NO_TASK
from albert_tf.interchange.portable_model import Caveat, ReadOptions
from albert_tf.interchange.tokenizers.files import NO_TOKENIZER, find_tokenizer
from albert_tf.interchange.tokenizers.sentencepiece import HUGGINGFACE
from albert_tf.interchange.tokenizers.wordpiece import read_pieces
from albert_tf.modeling.pretrained import CONFIG_FILE
from albert_tf.tokenization import Tokenizer
from albert_tf.tokenization.tokenizer import VOCABULARY_FILE

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
def as_ours(folder: str, source: str, needs_tokenizer: bool = True) -> collections.abc.Iterator[OurFolder]:
    """Yields a temporary folder of ours with another library's model; `source` is what `format_of` returned.

    An InputError if the model can't be converted, or the tokenizer where one is needed.
    """
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


def kept_as_ours(
    folder: str, source: str, output_dir: str, name: str = CONVERTED_FOLDER, is_to_answer: bool = False
) -> str:
    """Returns a folder of ours with another library's model, kept as `name` in the folder of the run that needs it.

    `is_to_answer` is for the teacher of a task, which needs a head that can be asked. An InputError if the model can't
    be converted, or the run keeps one that was converted from another.
    """
    kept = os.path.join(output_dir, name)
    content = _content(folder, source)
    if gfile_for(kept).exists(os.path.join(kept, _SOURCE_FILE)):
        if read_json(os.path.join(kept, _SOURCE_FILE), "what was converted") == content:
            return kept
        # A run that was refused, for what the config says of the head, has not begun.
        if not is_to_answer or gfile_for(output_dir).exists(os.path.join(output_dir, SETTINGS_FILE)):
            raise InputError(
                f"{kept} was converted from another model than {folder} holds now; choose another `output_dir`, or "
                "name the model that the run began with"
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
    return next((sentence.partition(NO_TASK)[2] for sentence in sentences if NO_TASK in sentence), None)


def _content(folder, source):
    """Returns the format of a model, and the SHA-256 of each of its files by name."""
    gfile = gfile_for(folder)
    names = [name for name in gfile.listdir(folder) if name.endswith(_MODEL_FILES)]
    return {"format": source, **{name: sha256_of(os.path.join(folder, name)) for name in sorted(names)}}
