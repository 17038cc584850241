"""The two heads that find answers: each end by itself (run_squad_v1.py), or the end given the beginning (_v2.py)."""

import numpy as np
import tensorflow as tf

from albert_tf.finetuning.question_answering.spans import Spans, best_spans
from albert_tf.finetuning.question_answering.task import TAUGHT, QuestionTask
from albert_tf.modeling.conditional_answers import IMPOSSIBLE
from albert_tf.objectives import AnswerSpan, ConditionalAnswerSpan

# Of features: given which first piece the teacher tells the last one, int32 [N], and its logit of no answer.
_TAUGHT_START, _TAUGHT_NULL = "teacher_start_positions", "teacher_null_logits"


class QuestionAnswering(QuestionTask, AnswerSpan):
    """The first and the last piece of the answer, each by itself; see `QuestionTask` and `AnswerSpan`.

    No answer is the span from [CLS] to [CLS], and "null_odds" are its logits less those of the best span.
    """

    head = "independent"

    def batch_spec(self, max_seq_length):
        """Returns those of `AnswerSpan`, and what a teacher says of each piece."""
        return {**super().batch_spec(max_seq_length), **self.taught_specs(max_seq_length)}

    def loss_weights(self, batch):
        if self.soft_labels is None:
            return super().loss_weights(batch)
        return {"span_loss": tf.reduce_sum(batch["example_weights"])}

    def compute(self, batch, training, dropout_seed, model):
        """Returns what `AnswerSpan` does, its loss mixed with that of the teacher's answers."""
        logits = model(batch, training=training, dropout_seed=dropout_seed)
        results = self.compute_spans(batch, logits)
        if not training or self.soft_labels is None:
            return results
        return {**results, "span_loss": (self.taught_span_loss(batch, logits), tf.reduce_sum(batch["example_weights"]))}

    def soft_features(self, examples, features, teacher):
        """Returns the teacher's logits of the first and the last piece, float32 [N, S]."""
        logits = teacher.compute(teacher.task.outputs, features)
        return {taught: logits[f"{name}_logits"] for name, taught in TAUGHT.items()}

    def outputs(self, batch, model):
        """Returns `start_logits` and `end_logits` float32 [B, S]."""
        logits = model(batch, training=False)
        return {name: logits[name] for name in ("start_logits", "end_logits")}

    def _find_spans(self, features, outputs, row, is_allowed):
        first = features["context_positions"][row]
        text = slice(first, first + len(is_allowed))
        start_logits, end_logits = outputs["start_logits"][row, text], outputs["end_logits"][row, text]
        return best_spans(start_logits, end_logits, is_allowed, self.span_options.n_best_size)

    def _null_scores(self, outputs):
        return outputs["start_logits"][:, 0] + outputs["end_logits"][:, 0]

    def null_odds(self, null_score, best_score):
        return null_score - best_score


class ConditionalQuestionAnswering(QuestionTask, ConditionalAnswerSpan):
    """The last piece of the answer given the first, and whether there is one; see `ConditionalAnswerSpan`.

    "null_odds" are the logit that there is no answer, of the window that is surest of one. (Original run_squad_v2.py.)

    What a teacher says of the last piece is given the first piece of the answer too; where that is unknown, given the
    one that the teacher finds best.
    """

    head = "conditional"

    def batch_spec(self, max_seq_length):
        """Returns those of `AnswerSpan`, and what a teacher says of each piece and of no answer."""
        taught = self.taught_specs(max_seq_length)
        if taught:
            taught[_TAUGHT_START] = tf.TensorSpec([None], tf.int32)
            taught[_TAUGHT_NULL] = tf.TensorSpec([None], tf.float32)
        return {**super().batch_spec(max_seq_length), **taught}

    def loss_weights(self, batch):
        if self.soft_labels is None:
            return super().loss_weights(batch)
        return dict.fromkeys(self.loss_coefficients, tf.reduce_sum(batch["example_weights"]))

    def compute(self, batch, training, dropout_seed, model):
        """Returns what `ConditionalAnswerSpan` does, its losses mixed with the teacher's."""
        if not training or self.soft_labels is None:
            return super().compute(batch, training, dropout_seed, model)
        inputs = dict(batch)
        taught, inputs["start_positions"] = inputs.pop(_TAUGHT_NULL), inputs.pop(_TAUGHT_START)
        logits = model(inputs, training=training, dropout_seed=dropout_seed)
        starts = batch["start_positions"]
        has_label, has_none = tf.cast(starts >= 0, tf.float32), tf.cast(tf.equal(starts, 0), tf.float32)
        found, weights = logits["null_logits"], batch["example_weights"]
        losses = tf.nn.sigmoid_cross_entropy_with_logits(has_none, found)
        soft_losses = self.soft_labels.divergence_of_each(found[:, None], taught[:, None])
        losses = self.soft_labels.mix(losses, soft_losses, has_label)
        total = tf.reduce_sum(weights)
        return {
            **self.compute_answers(batch, logits),
            "span_loss": (self.taught_span_loss(batch, logits), total),
            "answerability_loss": (tf.reduce_sum(losses * weights), total),
        }

    def soft_features(self, examples, features, teacher):
        """Returns the teacher's logits of both pieces, float32 [N, S], and of no answer."""

        def compute(batch, model):
            inputs, known = dict(batch), batch["start_positions"]
            del inputs["start_positions"]
            best = tf.argmax(model(inputs, training=False)["start_logits"], axis=-1, output_type=tf.int32)
            starts = tf.where(known >= 0, known, best)
            return {**model({**inputs, "start_positions": starts}, training=False), _TAUGHT_START: starts}

        outputs = teacher.compute(compute, features)
        logits = {taught: outputs[f"{name}_logits"] for name, taught in TAUGHT.items()}
        return {**logits, _TAUGHT_START: outputs[_TAUGHT_START], _TAUGHT_NULL: outputs["null_logits"]}

    def outputs(self, batch, model):
        """Returns what `AlbertForConditionalQuestionAnswering.search` finds."""
        options = self.span_options
        return model.search(batch, options.start_n_top, options.end_n_top, options.max_answer_length)

    def _find_spans(self, features, outputs, row, is_allowed):
        first = features["context_positions"][row]
        ends = outputs["end_positions"][row] - first
        starts = np.broadcast_to(outputs["start_positions"][row][:, None] - first, ends.shape)
        scores = outputs["start_log_probs"][row][:, None] + outputs["end_log_probs"][row]
        # Where there are too few spans, and where outputs were filled up, are positions outside the text.
        lengths = ends - starts
        is_span = (starts >= 0) & (lengths >= 0) & (lengths < is_allowed.shape[1]) & (ends < len(is_allowed))
        starts, lengths, scores = starts[is_span], lengths[is_span], scores[is_span]
        is_span = is_allowed[starts, lengths] & (scores > IMPOSSIBLE / 2)
        return Spans(starts[is_span], (starts + lengths)[is_span], scores[is_span])

    def _null_scores(self, outputs):
        return outputs["null_logits"]

    def null_odds(self, null_score, best_score):
        return null_score
