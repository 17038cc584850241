"""Each row of a file is a text to score, or to label."""

from albert_tf.serving.asked_rows import AskedRows
from albert_tf.serving.pretrained_model import PretrainedModel
from albert_tf.serving.scoring.choosing import check_fits
from albert_tf.serving.scoring.scorer import check_scorable
from albert_tf.serving.scoring.template import Template


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
