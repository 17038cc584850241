"""Each row of a file is a text to go on with."""

import collections.abc
import typing

from albert_tf.generation.text_generator import POSITIONS, count_stopped
from albert_tf.serving.asked_rows import AskedRows
from albert_tf.serving.pretrained_model import PretrainedModel


class GeneratedRows(AskedRows):
    """Goes on with texts.

    Args:
        model: The model.
        **settings: Of `PretrainedModel.generate`.

    Attributes:
        num_stopped_short: How many of the texts so far stopped where the model has no more positions.

    Raises:
        InputError: The model has no `generate`, or a setting is out of range.
    """

    def __init__(self, model: PretrainedModel, **settings: typing.Any):
        super().__init__(model)
        model.generate([], **settings)  # which checks both before a file is read
        self._settings, self.num_stopped_short = settings, 0

    def predict(self, inputs: collections.abc.Sequence[str], batch_size: int) -> list[dict[str, typing.Any]]:
        """Returns how each text goes on; see `PretrainedModel.generate`."""
        answers = self._model.generate(inputs, **self._settings, batch_size=batch_size)
        self.num_stopped_short += count_stopped(answers, POSITIONS)
        return answers

    def _check(self, texts):
        self._model.check_room(texts)
