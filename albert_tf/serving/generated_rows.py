"""Each row of a file is a text to go on with."""

import collections.abc
import typing

from albert_tf.serving.asked_rows import AskedRows
from albert_tf.serving.pretrained_model import PretrainedModel


class GeneratedRows(AskedRows):
    """Goes on with texts.

    Args:
        model: The model.
        **settings: Of `PretrainedModel.generate`.

    Raises:
        InputError: The model has no `generate`, or a setting is out of range.
    """

    def __init__(self, model: PretrainedModel, **settings: typing.Any):
        super().__init__(model)
        model.generate([], **settings)  # which checks both before a file is read
        self._settings = settings

    def predict(self, inputs: collections.abc.Sequence[str], batch_size: int) -> list[dict[str, typing.Any]]:
        return self._model.generate(inputs, **self._settings, batch_size=batch_size)

    def _check(self, texts):
        self._model.check_room(texts)
