"""The inputs of a model in Python: a list of texts, or of tuples of texts; nothing here imports TensorFlow."""

import collections.abc
import typing

from albert_tf.base.errors import InputError, describe
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
