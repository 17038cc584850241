"""Words that the vocabulary lacks: a model reads each as the unknown piece, whatever it says."""

import collections.abc

import numpy as np

from albert_tf.text_encoding import replace_halves
from albert_tf.tokenization.base import Tokenizer
from albert_tf.tokenization.vocabulary import UNK

_MOST_SHOWN = 3
# Of more inputs than this share it is a warning.
_FEW = 0.01


def find_unknown_words(
    tokenizer: Tokenizer, inputs: collections.abc.Sequence[tuple[str, ...]]
) -> tuple[int, list[str]]:
    """Returns how many inputs hold a word that the vocabulary lacks, and the first few of these words.

    Args:
        tokenizer: What texts are encoded with.
        inputs: The texts of each.
    """
    texts = list(dict.fromkeys(replace_halves(text) for row in inputs for text in row))  # questions share their texts
    if not texts:
        return 0, []
    unknown = tokenizer.vocabulary.id_of(UNK)
    ids = tokenizer.encode_ids(texts)
    rows = np.unique(ids.value_rowids().numpy()[ids.flat_values.numpy() == unknown])
    if not rows.size:
        return 0, []
    found = {texts[row] for row in rows}
    shown = [texts[row] for row in rows[:_MOST_SHOWN]]
    words = [
        text[begin:end]
        for text, encoding in zip(shown, tokenizer.encode_batch(shown))
        for piece_id, (begin, end) in zip(encoding.ids, encoding.offsets)
        if piece_id == unknown
    ]
    count = sum(any(replace_halves(text) in found for text in row) for row in inputs)
    return count, list(dict.fromkeys(words))[:_MOST_SHOWN]


def describe_unknown_words(
    tokenizer: Tokenizer, inputs: collections.abc.Sequence[tuple[str, ...]], where: str
) -> str | None:
    """Returns how many inputs hold a word that the vocabulary lacks, and which words; None if none does.

    Args:
        tokenizer: What texts are encoded with.
        inputs: The texts of each.
        where: What they are of, as in "in train.tsv".
    """
    count, words = find_unknown_words(tokenizer, inputs)
    if not count:
        return None
    warning = "warning: " if count > _FEW * len(inputs) else ""
    return (
        f"{warning}{count:,} of {len(inputs):,} examples {where} {'hold' if count > 1 else 'holds'} a word that the "
        f"vocabulary can't spell, of which the model reads nothing but {UNK}, such as {', '.join(words)}"
    )
