"""Fine-tuning to give a text, or a pair of texts, a number, such as how alike two sentences are (GLUE's STS-B)."""

import numpy as np
import tensorflow as tf

from albert_tf.asking.answers import ScoreAnswer
from albert_tf.base.errors import quote
from albert_tf.config import AlbertConfig
from albert_tf.finetuning.datasets import DATASETS, DataFiles
from albert_tf.finetuning.linear_models import predict_numbers
from albert_tf.finetuning.metrics import SCORE_METRICS
from albert_tf.finetuning.soft_labels import labelled_loss
from albert_tf.finetuning.task import OF_TEXT, TaskKind
from albert_tf.finetuning.tasks.text_task import LabelledTextTask
from albert_tf.reading.rows import tell_once
from albert_tf.tokenization.base import check_switches


class Regression(LabelledTextTask):
    """The squared error of a number. Examples are `LabelledText`s whose label is one.

    A prediction is a dictionary of the "score".

    Args:
        files: The meaning of the files' columns, and the measures.
        doc_stride: Every how many tokens a window of a long text begins; None to cut such texts.
        sigmoid: Whether the number is the sigmoid of the head's output, as of cross-encoders from elsewhere.
    """

    kind = TaskKind("score", OF_TEXT, ScoreAnswer, num_outputs=1, hf_problem_type="regression")
    loss_name, label_name, label_type = "squared_error", "label_values", tf.float32
    scores_predictions = True
    predicts_numbers = True
    error_columns = ("label", "prediction", "difference")

    def __init__(
        self,
        config: AlbertConfig,
        files: DataFiles = DATASETS["sts-b"],
        doc_stride: int | None = None,
        sigmoid: bool = False,
    ):
        super().__init__(config, files, num_outputs=1, doc_stride=doc_stride)
        check_switches({"sigmoid": sigmoid})
        self._activation = tf.sigmoid if sigmoid else tf.identity

    def compute(self, batch, training, dropout_seed, model):
        scores = self._activation(model(batch, training=training, dropout_seed=dropout_seed)["logits"][:, 0])
        errors = tf.math.squared_difference(scores, batch["label_values"])

        def soft_errors(taught):
            return tf.math.squared_difference(scores, taught[:, 0])

        soft_labels = self.soft_labels if training else None
        return {"squared_error": labelled_loss(errors, soft_errors, batch, self.weights(batch), soft_labels)}

    def reason_against(self, label):
        return f"{quote(label)} is not a number" if _number(label) is None else None

    def label_values(self, examples):
        """Returns the numbers, float32 [T]."""
        return np.array([_number(example.label) or 0.0 for example in examples], np.float32)

    def taught(self, examples, predictions):
        """Returns the teacher's numbers, float32 [T, 1]."""
        scores = np.array([[prediction["score"]] for prediction in predictions], np.float32)
        _warn_of_other_scale(scores[:, 0], [_number(example.label) for example in examples])
        return scores

    def outputs(self, batch, model):
        """Returns `scores` float32 [B]."""
        return {"scores": self._activation(model(batch, training=False)["logits"][:, 0])}

    def predict(self, examples, features, outputs):
        return list(map(self.kind.answer().of_values, self.of_texts(outputs["scores"], features)))

    def written_prediction(self, prediction):
        return f"{prediction['score']:.4f}"

    def mistake(self, example, prediction):
        """Returns the number, the one found, and how much more that is."""
        difference = prediction["score"] - _number(example.label)
        return abs(difference), [example.label, self.written_prediction(prediction), f"{difference:+.4f}"]

    def score(self, examples, predictions):
        truth = np.array([_number(example.label) for example in examples])
        found = np.array([prediction["score"] for prediction in predictions])
        return {name: SCORE_METRICS[name](truth, found) for name in self._files.metrics}

    def blind_scores(self, examples):
        truth = np.array([_number(example.label) for example in examples])
        constant = np.full(len(truth), truth.mean())
        # The correlation with a constant is not defined, and as good as none.
        scores = {name: SCORE_METRICS[name](truth, constant) for name in self._files.metrics}
        return "always the mean", {"squared_error": float(truth.var()), **scores}

    def predict_linearly(self, train, dev):
        return [{"score": number} for number in predict_numbers(train, dev)]

    @classmethod
    def from_head(cls, config, labels, gives_probability):
        return cls(config, sigmoid=gives_probability)

    @classmethod
    def from_settings(cls, config, settings):
        return super().from_settings(config, settings, sigmoid=settings.get("sigmoid", False))

    def settings(self):
        return {**super().settings(), **({"sigmoid": True} if self._activation is tf.sigmoid else {})}

    def describe(self, path, examples, features):
        values = [_number(example.label) for example in examples]
        mean = sum(values) / len(values)
        return [f"{len(examples):,} examples in {path}: from {min(values):g} to {max(values):g}, on average {mean:.2f}"]


def _warn_of_other_scale(scores, labels):
    """Tells if a teacher's numbers are further from the labels than one number for all; correlations don't show it."""
    if None in labels:
        return
    errors = np.square(scores - np.array(labels)).mean()
    if errors > np.var(labels):
        tell_once(
            f"warning: the teacher's numbers, {scores.min():.2f} to {scores.max():.2f}, are further from the labels of "
            f"the same texts, {min(labels):g} to {max(labels):g}, than the mean of these is; check that it was "
            "fine-tuned on the same scale"
        )


def _number(text):
    """Returns a finite number as text, None for anything else."""
    try:
        value = float(text)
    except (TypeError, ValueError):
        return None
    return value if np.isfinite(value) else None
