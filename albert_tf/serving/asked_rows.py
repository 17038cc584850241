"""A pre-trained model as `predict_file` asks one: each row of a file is a text."""

import abc
import collections.abc
import typing

from albert_tf.asked_texts import read_texts
from albert_tf.serving.pretrained_model import PretrainedModel
from albert_tf.text_encoding import replace_halves


class AskedRows(abc.ABC):
    """What `predict_file` reads of a model; it is its own task."""

    input_fields = ("text",)
    input_columns = ()

    def __init__(self, model: PretrainedModel):
        self._model = model

    @property
    def task(self) -> "AskedRows":
        """What says what a row is."""
        return self

    @property
    def num_cut(self) -> int:
        """As of the model."""
        return self._model.num_cut

    @property
    def num_unknown(self) -> int:
        """As of the model."""
        return self._model.num_unknown

    def examples_of(self, inputs: collections.abc.Sequence[typing.Any]) -> list[tuple[str, ...]]:
        """Returns each text in a tuple; raises InputError if one is no text, or can't be asked about."""
        texts = read_texts(inputs, reads_pairs=False)
        self._check([replace_halves(text) for (text,) in texts])
        return texts

    @abc.abstractmethod
    def predict(self, inputs: collections.abc.Sequence[str], batch_size: int) -> list[dict[str, typing.Any]]:
        """Returns an answer to each text, in order."""

    @abc.abstractmethod
    def _check(self, texts):
        """Raises InputError if a text can't be asked about."""
