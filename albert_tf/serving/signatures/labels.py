"""Labels with probabilities, or numbers, for texts and pairs of texts."""

import tensorflow as tf

from albert_tf.exports import DEFAULT
from albert_tf.serving.signatures.base import Signatures


class LabelSignatures(Signatures):
    """Of `Classification`: `text` string [N], and `text_pair` string [N] where the task reads pairs.

    Returns `label` string [N] and its `probability` float32 [N]; of all L labels `labels` string [N, L], each row the
    same, and `probabilities` float32 [N, L].
    """

    def functions(self):
        """Returns the one function; see `Signatures`."""
        return {DEFAULT: self._of_pairs if len(self._task.input_fields) > 1 else self._of_texts}

    def _of_texts(self, text):
        return self._answer(self._inputs.encode(text))

    def _of_pairs(self, text, text_pair):
        return self._answer(self._inputs.encode(text, text_pair))

    def _answer(self, batch):
        probabilities = self._task_outputs(batch)["probabilities"]
        labels = tf.constant(self._task.labels)
        return {
            "label": tf.gather(labels, tf.argmax(probabilities, axis=-1)),
            "probability": tf.reduce_max(probabilities, axis=-1),
            "labels": tf.tile(labels[None], [tf.shape(probabilities)[0], 1]),
            "probabilities": probabilities,
        }


class ScoreSignatures(LabelSignatures):
    """Of `Regression`: inputs as for `LabelSignatures`; returns `score` float32 [N]."""

    def _answer(self, batch):
        return {"score": self._task_outputs(batch)["scores"]}
