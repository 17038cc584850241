"""Words that the vocabulary lacks: a model reads each as the unknown piece, whatever it says."""

import collections.abc

import numpy as np

from albert_tf.base.files import replace_halves
from albert_tf.base.texts import MOST_LOOKED_AT, advice, lacking_characters
from albert_tf.tokenization.base import Tokenizer
from albert_tf.tokenization.vocabulary import UNK

_MOST_SHOWN = 3
_MOST_CHARACTERS = 30
# Of more inputs than this share it is a warning.
_FEW = 0.01


def holds_unknown(tokenizer: Tokenizer, input_ids: np.ndarray) -> np.ndarray:
    """Returns which rows hold the unknown piece, bool [N], of ids int [N, ...]."""
    rows = np.asarray(input_ids).reshape([len(input_ids), -1])
    return (rows == tokenizer.vocabulary.id_of(UNK)).any(axis=1)


def find_unknown_words(
    tokenizer: Tokenizer, inputs: collections.abc.Sequence[tuple[str, ...]], candidates: np.ndarray | None = None
) -> tuple[int, list[str], list[str]]:
    """Returns how many inputs hold a word that the vocabulary can't spell, a few such words, and lacking characters.

    Words are shortened; characters are those of the first texts, the most frequent first. The inputs are tuples of
    texts. `candidates`, bool, says which encoded rows hold the unknown piece: where there is one row an input, only
    these are looked at, and counted; None to look at all.
    """
    if candidates is not None and not candidates.any():
        return 0, [], []
    if candidates is not None and len(candidates) == len(inputs):
        inputs = [inputs[row] for row in np.flatnonzero(candidates)]
        return len(inputs), *_words(tokenizer, [text for row in inputs[:MOST_LOOKED_AT] for text in row])
    texts = list(dict.fromkeys(text for row in inputs for text in row))  # questions share their texts
    found = [text for text, is_found in zip(texts, _are_unknown(tokenizer, texts)) if is_found]
    known = set(found)
    return sum(any(text in known for text in row) for row in inputs), *_words(tokenizer, found[:MOST_LOOKED_AT])


def describe_unknown_words(
    tokenizer: Tokenizer,
    inputs: collections.abc.Sequence[tuple[str, ...]],
    where: str,
    candidates: np.ndarray | None = None,
    may_add_spaces: bool = True,
) -> str | None:
    """Returns a sentence on the words of `find_unknown_words`, None for none; `where` is as in "in train.tsv"."""
    count, words, characters = find_unknown_words(tokenizer, inputs, candidates)
    if not count:
        return None
    warning = "warning: " if count > _FEW * len(inputs) else ""
    such_as = f", such as {', '.join(words)}" if words else ""
    return (
        f"{warning}{count:,} of {len(inputs):,} examples {where} {'hold' if count > 1 else 'holds'} a word that the "
        f"vocabulary can't spell, which the model reads only as {UNK}{such_as}{advice(characters, may_add_spaces)}"
    )


def shorten(word: str) -> str:
    return word if len(word) <= _MOST_CHARACTERS else f"{word[:_MOST_CHARACTERS]}..."


def _words(tokenizer, texts):
    """Returns the first few unknown words of texts, shortened, and the characters that make all so."""
    texts = list(map(replace_halves, texts))
    unknown = tokenizer.vocabulary.id_of(UNK)
    words = [
        text[begin:end]
        for text, encoding in zip(texts, tokenizer.encode_batch(texts) if texts else ())
        for piece_id, (begin, end) in zip(encoding.ids, encoding.offsets)
        if piece_id == unknown
    ]
    named = list(dict.fromkeys(map(shorten, words)))[:_MOST_SHOWN]
    return named, lacking_characters(words, lambda characters: _are_unknown(tokenizer, characters))


def _are_unknown(tokenizer, texts):
    if not texts:
        return np.zeros(0, bool)
    ids = tokenizer.encode_ids(list(map(replace_halves, texts)))
    is_unknown = ids.flat_values.numpy() == tokenizer.vocabulary.id_of(UNK)
    return np.isin(np.arange(len(texts)), ids.value_rowids().numpy()[is_unknown])
