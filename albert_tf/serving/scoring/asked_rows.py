"""A pre-trained model as `predict_file` asks one: each row of a file is a text to score, or to label."""

import abc
import collections.abc
import typing

from albert_tf.asked_texts import read_texts
from albert_tf.serving.pretrained_model import PretrainedModel
from albert_tf.serving.scoring.choosing import check_fits
from albert_tf.serving.scoring.scorer import check_scorable
from albert_tf.serving.scoring.template import Template
from albert_tf.text_encoding import replace_halves


class AskedRows(abc.ABC):
    """What `predict_file` reads of a model; it is its own task.

    Args:
        model: The model.
    """

    input_fields = ("text",)
    input_columns = ()

    def __init__(self, model: PretrainedModel):
        self._model, self.identity = model, model.identity

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
        """Returns each text in a tuple.

        Raises:
            InputError: An input is no text, or one that can't be asked about.
        """
        texts = read_texts(inputs, reads_pairs=False)
        self._check([replace_halves(text) for (text,) in texts])
        return texts

    @abc.abstractmethod
    def predict(self, inputs: collections.abc.Sequence[str], batch_size: int) -> list[dict[str, typing.Any]]:
        """Returns an answer to each text, in order."""

    @abc.abstractmethod
    def _check(self, texts):
        """Raises InputError if a text can't be asked about."""


class ScoredRows(AskedRows):
    """Scores texts.

    Args:
        model: The model.
        method: As for `PretrainedModel.score`.

    Raises:
        InputError: There is no such method, or the model has no `score`.
    """

    def __init__(self, model: PretrainedModel, method: str | None = None):
        super().__init__(model)
        self._method = method
        model.score([], method)  # before a file is read

    def predict(self, inputs, batch_size):
        return self._model.score(inputs, self._method, batch_size)

    def _check(self, texts):
        check_scorable(self._model.tokenizer, texts)


class ChosenRows(AskedRows):
    """Labels texts.

    Args:
        model: The model.
        **options: As for `PretrainedModel.choose`: `template`, `answers`, `examples` and `compare`.

    Raises:
        InputError: As for `choose`.
    """

    def __init__(self, model: PretrainedModel, **options):
        super().__init__(model)
        model.choose([], **options)  # before a file is read
        self._options = options
        self._template = Template(*(options[name] for name in ("template", "answers", "examples")))

    def predict(self, inputs, batch_size):
        return self._model.choose(inputs, **self._options, batch_size=batch_size)

    def _check(self, texts):
        check_fits(self._model.tokenizer, texts, self._template, self._model.max_seq_length)
