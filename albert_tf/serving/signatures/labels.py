"""Labels with probabilities, or numbers, for texts and pairs of texts."""

import tensorflow as tf

from albert_tf.exports import DEFAULT, LENGTHS
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


class LabelSetSignatures(LabelSignatures):
    """Of `MultiLabel`: inputs as for `LabelSignatures`.

    Returns, for K labels of the text with most of them, `labels` string [N, K] and `probabilities` float32 [N, K] of
    those that reach their thresholds, in the order of the task's labels, "" and 0 behind the last one of a text; and
    `lengths` int32 [N], how many labels each text has.
    """

    def _answer(self, batch):
        probabilities = self._task_outputs(batch)["probabilities"]
        is_given = probabilities >= tf.constant(self._task.thresholds, tf.float32)
        lengths = tf.reduce_sum(tf.cast(is_given, tf.int32), axis=-1)
        # Those that are given come first, each group in its order.
        most = tf.reduce_max(tf.concat([lengths, [0]], axis=0))
        order = tf.argsort(tf.cast(~is_given, tf.int32), axis=-1, stable=True)[:, :most]
        is_there = tf.sequence_mask(lengths, most)
        return {
            "labels": tf.where(is_there, tf.gather(tf.constant(self._task.labels), order), ""),
            "probabilities": tf.where(is_there, tf.gather(probabilities, order, batch_dims=1), 0.0),
            LENGTHS: lengths,
        }


class ScoreSignatures(LabelSignatures):
    """Of `Regression`: inputs as for `LabelSignatures`; returns `score` float32 [N]."""

    def _answer(self, batch):
        return {"score": self._task_outputs(batch)["scores"]}
