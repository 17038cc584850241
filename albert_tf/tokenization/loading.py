"""Reading a tokenizer of any kind."""

import os

from albert_tf.base.files import read_json
from albert_tf.tokenization.base import KIND, TOKENIZER_FILE, Tokenizer
from albert_tf.tokenization.sentencepiece.tokenizer import SENTENCEPIECE, SentencePieceTokenizer
from albert_tf.tokenization.tokenizer import KoreanWordPieceTokenizer


def load_tokenizer(folder: str | os.PathLike, settings_file: str = TOKENIZER_FILE) -> Tokenizer:
    """Reads a tokenizer that `save` wrote, of the kind that its settings name.

    Raises:
        InputError: A file is missing, or its content can't be used.
    """
    return kind_of_tokenizer(os.path.join(folder, settings_file)).load(folder, settings_file)


def kind_of_tokenizer(path: str | os.PathLike) -> type[Tokenizer]:
    """Returns the class of the tokenizer that a tokenizer.json is of; raises InputError if it can't be read."""
    settings = read_json(path, "the tokenizer settings")
    return SentencePieceTokenizer if settings.get(KIND) == SENTENCEPIECE else KoreanWordPieceTokenizer
