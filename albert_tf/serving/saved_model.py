"""Asking an exported SavedModel: raw strings in, arrays out. Needs nothing of the package's models."""

import collections.abc
import functools
import typing

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  (the graph has its operations)

from albert_tf.asking.answers import FILL_MASK, LENGTHS, PIECES, Columns, groups_of_one_length, rows_of
from albert_tf.asking.backend import NONE_UNKNOWN, Backend, Export, Inputs, Predicted, Unknown
from albert_tf.asking.cards import check_files
from albert_tf.base.errors import InputError, first_line
from albert_tf.base.files import replace_halves
from albert_tf.tokenization import Tokenizer, load_tokenizer
from albert_tf.tokenization.unknown_words import find_unknown_words
from albert_tf.tokenization.vocabulary import MASK, UNK


class TokenizerBackend(Backend):
    """A backend whose tokenizer is one of ours, so that it can be asked about tokens, too.

    Attributes:
        hidden_size: Of the states.
        is_causal: Whether tokens see only those before them.
        most_guesses: How many tokens it can name for each mask.
    """

    tokenizer: Tokenizer
    hidden_size: int
    is_causal: bool
    most_guesses: int

    def guess(self, texts: list[str], top_k: int) -> Columns:
        """Returns the columns of `FILL_MASK`, with at least `top_k` guesses for each mask."""
        return self.compute(FILL_MASK, {"text": texts})

    def encode(self, texts: list[str]) -> collections.abc.Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yields rows of some of N texts, int [T], the states of their tokens float32 [T, S, H], and the mask int32."""
        for rows in groups_of_one_length([len(text) for text in texts]):
            found = self.compute(PIECES, {"text": [texts[row] for row in rows]})
            states = found["embeddings"]
            yield rows, states, (np.arange(states.shape[1]) < found[LENGTHS][:, None]).astype(np.int32)

    def count(self, inputs: list[tuple[str, ...]]) -> tuple[int, Unknown]:
        """Returns how many inputs are longer than what is read of them, and what `find_unknown_words` does."""
        if not inputs:
            return 0, NONE_UNKNOWN
        lengths, holds_unknown = np.zeros(len(inputs), int), np.zeros(len(inputs), bool)
        for column in zip(*inputs):
            ids = self.tokenizer.encode_ids(list(column))
            lengths += ids.row_lengths().numpy()
            is_unknown = ids.flat_values.numpy() == self.tokenizer.vocabulary.id_of(UNK)
            holds_unknown[ids.value_rowids().numpy()[is_unknown]] = True
        return self._num_longer(lengths, len(inputs[0])), find_unknown_words(self.tokenizer, inputs, holds_unknown)

    def count_masked(self, texts: list[str]) -> tuple[int, Unknown]:
        """Likewise, of texts with masks, each of which is a piece."""
        if not texts:
            return 0, NONE_UNKNOWN
        parts = [tuple(text.split(MASK)) for text in texts]
        owners = np.repeat(np.arange(len(texts)), [len(each) for each in parts])
        lengths = self.tokenizer.encode_ids([part for each in parts for part in each]).row_lengths().numpy()
        return self._num_longer(np.bincount(owners, lengths + 1) - 1, 1), find_unknown_words(self.tokenizer, parts)

    def _num_longer(self, lengths, num_texts):
        room = self.max_seq_length - self.tokenizer.vocabulary.num_special(num_texts)
        return int(np.count_nonzero(lengths > room))


def string_tensors(inputs: Inputs) -> dict[str, tf.Tensor]:
    """Returns inputs as a graph takes them, string [N] each; half characters are replaced."""
    return {
        name: tf.constant(
            [text if isinstance(text, bytes) else replace_halves(text).encode() for text in texts],
            tf.string,
            [len(texts)],
        )
        for name, texts in inputs.items()
    }


_TEXTS_AT_ONCE = 64


class SavedModelBackend(TokenizerBackend, Export):
    """A SavedModel export.

    Args:
        folder: Of a version.
        card: As `Format.read_card` returns it.
        extra_folder: Of its tokenizer.

    Raises:
        InputError: It is damaged, or its card is that of another.
    """

    def __init__(self, folder: str, card: dict[str, typing.Any], extra_folder: str):
        super().__init__(folder, card)
        check_files(card, folder)
        try:
            self._loaded = tf.saved_model.load(folder)  # kept, for its signatures hold no reference to it
        except (OSError, ValueError, tf.errors.OpError) as error:
            raise InputError(f"{folder} can't be loaded ({first_line(error)}); export the model anew") from error
        found = {name: describe(function) for name, function in self._loaded.signatures.items()}
        if _unordered(found) != _unordered(self.signatures):
            raise InputError(f"{folder}: the card has other signatures than the graph; export the model anew")
        if self.answer is not None and not {*self.answer.needs} <= self._outputs_of(self.answer.signature):
            raise InputError(
                f'{folder}: the card\'s "answer", {self.answer.name}, is not what it gives; export it anew'
            )
        self._extra_folder, self.hidden_size = extra_folder, card["config"]["hidden_size"]
        self.is_causal = card["config"].get("is_causal", False)

    def _outputs_of(self, signature):
        return self.signatures.get(signature, {"outputs": {}})["outputs"].keys()

    @functools.cached_property
    def tokenizer(self):
        return load_tokenizer(self._extra_folder)  # a server needs none

    @property
    def most_guesses(self):
        return self.signatures[FILL_MASK]["outputs"]["guesses"][1][-1]

    def compute(self, signature, inputs):
        values = self._loaded.signatures[signature](**string_tensors(inputs))
        return {name: values[name].numpy() for name in self.signatures[signature]["outputs"]}

    def predict(self, examples, batch_size):
        signature, size = self.answer.signature, batch_size or _TEXTS_AT_ONCE
        names, rows = self.signatures[signature]["inputs"], []
        for begin in range(0, len(examples), size):
            rows += rows_of(self.compute(signature, dict(zip(names, zip(*examples[begin : begin + size])))))
        num_cut, unknown = self.count(examples)
        reads_windows = self.answer.reads_windows or "doc_stride" in self.card
        return Predicted(list(map(self.answer.prediction, rows)), 0 if reads_windows else num_cut, unknown)


def describe(function: typing.Any) -> dict[str, typing.Any]:
    """Returns the names of a concrete function's "inputs", and the "outputs" with dtype and shape."""
    by_position, by_name = function.structured_input_signature
    return {
        "inputs": [spec.name for spec in (*by_position, *by_name.values())],
        "outputs": {
            name: [spec.dtype.name, spec.shape.as_list()] for name, spec in sorted(function.structured_outputs.items())
        },
    }


def _unordered(signatures):
    """Returns signatures with their inputs sorted, as graphs that were loaded have them."""
    return {name: {**signature, "inputs": sorted(signature["inputs"])} for name, signature in signatures.items()}
