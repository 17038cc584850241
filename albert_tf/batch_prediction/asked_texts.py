"""A pre-trained model as `predict_file` asks one: each row of a file is a text to score, to label or to go on with."""

import collections.abc
import typing

from albert_tf.asking.model import Model
from albert_tf.asking.texts import read_texts
from albert_tf.text_encoding import replace_halves


class AskedTexts:
    """A model and one of its abilities, as `predict_file` asks it; it is its own task.

    The ability is "score", "choose" or "generate", with the options of that method of `Model`.

    Raises:
        InputError: The model lacks the ability, or an option is out of range.
    """

    input_fields = ("text",)
    input_columns = ()

    def __init__(self, model: Model, ability: str, **options: typing.Any):
        self._model, self._question, self.task = model, model.question(ability, **options), self

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
        self._question.check([replace_halves(text) for (text,) in texts])
        return texts

    def predict(self, inputs: collections.abc.Sequence[str], batch_size: int) -> list[dict[str, typing.Any]]:
        """Returns an answer to each text, in order."""
        return self._model.answer(self._question, inputs, batch_size)
