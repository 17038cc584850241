"""The texts of a model's input: as Python gives them, cut to a length, and the characters that are lacking.

Nothing here imports TensorFlow.
"""

import collections
import collections.abc
import typing
import unicodedata

import numpy as np

from albert_tf.base.errors import InputError, describe, quote
from albert_tf.base.files import replace_halves

# Stands for a piece that is missing.
MASK = "[MASK]"

# Of `input_fields`: a list of texts to choose from, and not one text.
OPTIONS = "options"


class TextTask(typing.NamedTuple):
    """The task of a model that was fine-tuned for texts, or for pairs of them."""

    input_fields: tuple[str, ...]  # what one input is made of, in order, as of a `FinetuningTask`
    input_columns: tuple[str, ...] = ()  # what the training file called its columns; empty if it had none

    def examples_of(self, inputs: collections.abc.Sequence[typing.Any]) -> list[tuple[str, ...]]:
        """Returns a user's inputs as tuples of texts."""
        return read_texts(inputs, len(self.input_fields) == 2)


def read_strings(inputs: collections.abc.Iterable[str]) -> list[str]:
    """Returns texts as a list, half characters replaced; raises InputError if it is one text, or one is no string."""
    return [replace_halves(text) for (text,) in read_texts(list_inputs(inputs), reads_pairs=False)]


def list_inputs(inputs: collections.abc.Iterable[typing.Any]) -> list[typing.Any]:
    """Returns inputs as a list; raises InputError if they are one text, or nothing that holds several."""
    if is_table(inputs):
        raise InputError('that is a table; pass a column of it, such as table["text"], or two columns zipped')
    if isinstance(inputs, str | bytes | collections.abc.Mapping) or not isinstance(inputs, collections.abc.Iterable):
        raise InputError(f"pass a list of inputs, even for a single one. Received: {describe(inputs)}")
    return list(inputs)


def is_table(values: typing.Any) -> bool:
    """Whether values are a table, such as a pandas.DataFrame or a datasets.Dataset, and would give column names."""
    return hasattr(values, "column_names") or hasattr(values, "columns")


def read_texts(inputs: collections.abc.Sequence[typing.Any], reads_pairs: bool) -> list[tuple[str, ...]]:
    """Returns each input as a tuple of one string, or of two where pairs are read; raises InputError if it is none."""
    found = []
    for number, value in enumerate(inputs):
        texts = [value] if isinstance(value, str) else value
        wanted = "a tuple of two strings, as this task reads pairs" if reads_pairs else "a string"
        is_right = isinstance(texts, list | tuple) and all(isinstance(text, str) for text in texts)
        if not is_right or len(texts) != 1 + reads_pairs:
            raise InputError(f"input {number} must be {wanted}. Received: {describe(value)}")
        found.append(tuple(texts))
    return found


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
