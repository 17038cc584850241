"""The seam between `Model` and what computes: a folder's own model, a SavedModel, or LiteRT."""

import abc
import collections.abc
import typing

from albert_tf.asking.answers import FILL_MASK, FIND_REPLACED, Columns
from albert_tf.asking.cards import answer_of, version_of
from albert_tf.base.texts import TextTask

# N texts, or bytes of UTF-8, under the name of each input.
Inputs = collections.abc.Mapping[str, collections.abc.Sequence[str | bytes]]
# How many inputs hold words that the vocabulary can't spell, the first of these, and the characters that it lacks.
Unknown = tuple[int, list[str], list[str]]
NONE_UNKNOWN: Unknown = (0, [], [])


class Predicted(typing.NamedTuple):
    """Predictions of inputs, how many of these are cut, and what of them the vocabulary can't spell."""

    predictions: list[typing.Any]
    num_cut: int
    unknown: Unknown


class Backend(abc.ABC):
    """Computes a model's answers.

    Attributes:
        place: The model in errors, as in "served/nsmc, an export,".
        abilities: The methods of `Model` that it has.
        results: The measures on held-out data, by name; empty where nothing was measured.
        task: Of a model that predicts: a `FinetuningTask`, or a `TextTask` without TensorFlow; else None.
        max_seq_length: Longest input in tokens.
        encoder_settings: How vectors are made, where a folder says it: "pooling" and "normalize".
    """

    place: str
    abilities: tuple[str, ...]
    results: dict[str, typing.Any]
    task: typing.Any
    max_seq_length: int
    encoder_settings: collections.abc.Mapping[str, typing.Any]

    @property
    @abc.abstractmethod
    def signatures(self) -> collections.abc.Mapping[str, typing.Any]:
        """The names of each signature's "inputs", and the "outputs" with dtype and shape."""

    @abc.abstractmethod
    def compute(self, signature: str, inputs: Inputs) -> Columns:
        """Returns the outputs of one of `signatures`, arrays with a row for each text."""

    @abc.abstractmethod
    def predict(self, examples: list[typing.Any], batch_size: int | None) -> Predicted:
        """Returns predictions of what `examples_of` of `task` returned, at least one, in order."""

    def refusal(self, ability: str) -> str:
        """Returns the sentence that says why it lacks an ability."""
        return f"{self.place} has no {ability}; it has {', '.join(self.abilities)}"


class Export(Backend):
    """A model that `export_model.py` has written.

    Attributes:
        folder: Of the version.
        card: The content of model_card.json.
        answer: How it spells predictions; None for a pre-trained model.
    """

    def __init__(self, folder: str, card: dict[str, typing.Any]):
        self.folder, self.version, self.card, self.answer = folder, version_of(folder), card, answer_of(card)
        self.place, self.results = f"{folder}, an export,", card.get("metrics", {})
        self.max_seq_length, self.encoder_settings = card["max_seq_length"], card.get("encoder", {})
        self.task = None
        if self.answer is not None:
            self.task = TextTask(tuple(card["input_fields"]), tuple(card.get("input_columns", ())))

    @property
    def signatures(self):
        return self.card["signatures"]

    @property
    def abilities(self):
        if self.answer is not None:
            return ("predict",)
        return (*(name for name in (FILL_MASK, FIND_REPLACED) if name in self.signatures), "encode", "similarity")
