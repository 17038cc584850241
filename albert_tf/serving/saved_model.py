"""An exported SavedModel: raw strings in, arrays out. Needs nothing of the package's models."""

import functools
import typing

import tensorflow as tf
import tensorflow_text  # noqa: F401  (the graph has its operations)

from albert_tf.asking.answers import FILL_MASK, rows_of
from albert_tf.asking.backend import Export, Predicted
from albert_tf.asking.cards import check_files
from albert_tf.errors import InputError, first_line
from albert_tf.serving.tokenizer_backend import TokenizerBackend, string_tensors
from albert_tf.tokenization import load_tokenizer

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
                f'{folder}: the card\'s "answer" is {self.answer.name}, which the graph does not give; export it anew'
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
