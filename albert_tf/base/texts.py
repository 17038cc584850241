"""What a model's input holds of a text: pairs that are cut, windows, and characters that are lacking.

Nothing here imports TensorFlow.
"""

import collections
import collections.abc
import typing
import unicodedata

import numpy as np

from albert_tf.base.errors import InputError, quote

# Which text of a pair keeps the odd piece where both are cut: libraries differ.

# Of ours; of the library `tokenizers`, which transformers' fast ones are of; of Google's loop over pieces.
ODD_TO_SECOND, ODD_TO_LONGER, ODD_TO_FIRST = TRUNCATIONS = ("odd_to_second", "odd_to_longer", "odd_to_first")


def check_truncation(truncation: typing.Any) -> str:
    """Returns the rule; raises InputError unless it is one of `TRUNCATIONS`."""
    if truncation not in TRUNCATIONS:
        raise InputError(f"truncation must be one of {', '.join(TRUNCATIONS)}. Received: {quote(truncation)}")
    return truncation


def kept_lengths(
    lengths: list, room: int, truncation: str, minimum: collections.abc.Callable = min, maximum=max
) -> list:
    """Returns how many pieces of one text or of two are kept where they have `room` together; the longer gives up.

    Lengths are numbers, or tensors with TensorFlow's `minimum` and `maximum`; of both cut, the rule says which text
    keeps the odd piece.
    """
    if len(lengths) == 1:
        return [minimum(lengths[0], room)]
    first, second = lengths
    is_longer = minimum(maximum(first - second, 0), 1)
    odd = {ODD_TO_SECOND: 0, ODD_TO_LONGER: is_longer, ODD_TO_FIRST: 1}[truncation]
    first = minimum(first, maximum(room - second, (room + odd) // 2))
    return [first, minimum(second, room - first)]


# Texts that are longer than a sequence, read in several windows.


def mean_over_windows(values: np.ndarray, text_indices: np.ndarray) -> np.ndarray:
    """Returns each text's mean of values [N, ...], float32 [T, ...]; `text_indices`, int [N], ascend without gaps."""
    begins = np.flatnonzero(np.diff(text_indices, prepend=-1))
    sums = np.add.reduceat(values.astype(np.float64), begins, axis=0)
    counts = np.diff(begins, append=len(values)).reshape([-1, *[1] * (values.ndim - 1)])
    return (sums / counts).astype(np.float32)


def sigmoid(logits: np.ndarray) -> np.ndarray:
    """Returns the probability of each of several labels, float32 of the shape of logits."""
    return (0.5 * (1 + np.tanh(0.5 * logits.astype(np.float64)))).astype(np.float32)


def softmax(logits: np.ndarray) -> np.ndarray:
    """Returns the probabilities of labels, float32 of the shape of logits [..., labels]."""
    exponentials = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True))
    return (exponentials / exponentials.sum(axis=-1, keepdims=True)).astype(np.float32)


# The characters that make words unknown to a vocabulary, and the remedy.

# How many texts with such words are looked at, and how many characters are named.
MOST_LOOKED_AT = 1000
_MOST_NAMED = 5


def lacking_characters(
    words: collections.abc.Iterable[str],
    are_unknown: collections.abc.Callable[[list[str]], collections.abc.Iterable[bool]],
) -> list[str]:
    """Returns the characters of unknown words that a vocabulary lacks, the most frequent first."""
    counts = collections.Counter(character for word in words for character in word)
    characters = [character for character, _ in counts.most_common()]
    return [each for each, is_unknown in zip(characters, are_unknown(characters)) if is_unknown] if counts else []


def advice(characters: collections.abc.Sequence[str], may_add_spaces: bool = True) -> str:
    """Returns the end of a sentence about unknown words, which begins with a semicolon; "" without characters.

    Characters are given by frequency, the highest first. Spaces may not be added where answers are places in the texts.
    """
    if not characters:
        return ""
    named = characters[:_MOST_NAMED]
    more = " and others" if len(characters) > _MOST_NAMED else ""
    are_symbols = may_add_spaces and not any(map(str.isalnum, named))
    remedy = (
        "put a space on each side of such a character, and the rest of the word is read"
        if are_symbols
        else "such words are read with a vocabulary that holds these characters, as build_vocab.py makes one of your "
        "text"
    )
    return f"; it lacks {' '.join(map(_shown, named))}{more}: {remedy}"


def _shown(character):
    """Returns a character, or its code point if it can't be seen by itself."""
    is_seen = character.isprintable() and not unicodedata.category(character).startswith(("M", "Z"))
    return character if is_seen else f"U+{ord(character):04X}"
