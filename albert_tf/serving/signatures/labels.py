"""Labels with probabilities, or numbers, for texts and pairs of texts."""

import functools

import tensorflow as tf

from albert_tf.asking.answers import DEFAULT, LENGTHS, LabelsAnswer
from albert_tf.finetuning.texts.labelled_text import NUM_SPECIAL
from albert_tf.serving.signatures.base import Signatures, slices
from albert_tf.tokenization.model_inputs import cut_windows


class LabelSignatures(Signatures):
    """Of `Classification`: `text` string [N], and `text_pair` string [N] where the task reads pairs.

    Returns `label` string [N] and its `probability` float32 [N]; of all L labels `labels` string [N, L], each row the
    same, and `probabilities` float32 [N, L]. Logits of a long text are the mean of its windows'.
    """

    def functions(self):
        return {DEFAULT: self._of_texts}

    def _of_texts(self, *texts):
        if self._task.doc_stride is None:
            return self._answer(self._task_outputs(self._inputs.encode(*texts)))
        windows, rows = self._cut(self._tokenizer.encode_ids(*texts))
        outputs = self._task_outputs(self._inputs.pack(windows))
        return self._answer({name: tf.math.segment_mean(values, rows) for name, values in outputs.items()})

    def _cut(self, ids):
        """Returns the windows of texts, int32 [W, (tokens)], and the text of each, int32 [W]."""
        lengths = tf.cast(ids.row_lengths(), tf.int32)
        rows, begins, ends = cut_windows(lengths, self._max_seq_length - NUM_SPECIAL, self._task.doc_stride)
        return slices(ids, rows, begins, ends), rows

    def _answer(self, outputs):
        probabilities = outputs["probabilities"] if "probabilities" in outputs else tf.nn.softmax(outputs["logits"])
        best = tf.gather(tf.constant(self._task.labels), tf.argmax(probabilities, axis=-1))
        return {"label": best, "probability": tf.reduce_max(probabilities, axis=-1), **self._of_all(probabilities)}

    def _of_all(self, probabilities):
        labels = tf.tile(tf.constant(self._task.labels)[None], [tf.shape(probabilities)[0], 1])
        return {"labels": labels, "probabilities": probabilities}


class LabelsSignatures(LabelSignatures):
    """Of `MultiLabel`: inputs as for `LabelSignatures`.

    `serving_default` returns, for K labels of the text with most of them, `labels` string [N, K] and `probabilities`
    float32 [N, K] of those that reach their thresholds, in the order of the task's labels, "" and 0 behind the last one
    of a text; and `lengths` int32 [N], how many labels each text has. `all_labels` returns of all L labels `labels`
    string [N, L], each row the same, and `probabilities` float32 [N, L].
    """

    def functions(self):
        return {
            DEFAULT: lambda *texts: self._given(self._shared(*texts)),
            LabelsAnswer.signature: lambda *texts: self._of_all(self._shared(*texts)),
        }

    @functools.cached_property
    def _shared(self):
        """The graph of all probabilities: one in both functions, so that the model is in the export once."""
        return tf.function(self._of_texts, autograph=False)

    def _answer(self, outputs):
        return outputs["probabilities"] if "probabilities" in outputs else tf.math.sigmoid(outputs["logits"])

    def _given(self, probabilities):
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

    def _answer(self, outputs):
        return {"score": outputs["scores"]}
