"""A causal model as `predict_file` asks one: each row of a file is a text to go on with."""

import collections.abc
import typing

from albert_tf.asked_texts import read_texts
from albert_tf.generation.text_generator import POSITIONS, count_stopped
from albert_tf.serving.pretrained_model import PretrainedModel
from albert_tf.text_encoding import replace_halves


class GeneratedRows:
    """What `predict_file` reads of a model; it is its own task.

    Args:
        model: The model.
        **settings: Of `PretrainedModel.generate`.

    Attributes:
        num_stopped_short: How many of the texts so far stopped where the model has no more positions.

    Raises:
        InputError: The model has no `generate`, or a setting is out of range.
    """

    input_fields = ("text",)
    input_columns = ()
    num_cut = 0

    def __init__(self, model: PretrainedModel, **settings: typing.Any):
        model.generate([], **settings)  # which checks both before a file is read
        self._model, self._settings, self.identity = model, settings, model.identity
        self.num_stopped_short = 0

    @property
    def task(self) -> "GeneratedRows":
        """What says what a row is."""
        return self

    @property
    def num_unknown(self) -> int:
        """As of the model."""
        return self._model.num_unknown

    def examples_of(self, inputs: collections.abc.Sequence[typing.Any]) -> list[tuple[str, ...]]:
        """Returns each text in a tuple.

        Raises:
            InputError: An input is no text, or leaves no room for what comes after it.
        """
        texts = read_texts(inputs, reads_pairs=False)
        self._model.check_room([replace_halves(text) for (text,) in texts])
        return texts

    def predict(self, inputs: collections.abc.Sequence[str], batch_size: int) -> list[dict[str, typing.Any]]:
        """Returns how each text goes on; see `PretrainedModel.generate`."""
        answers = self._model.generate(inputs, **self._settings, batch_size=batch_size)
        self.num_stopped_short += count_stopped(answers, POSITIONS)
        return answers
