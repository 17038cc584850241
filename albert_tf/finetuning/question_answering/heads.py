"""The two heads that find answers: each end by itself (run_squad_v1.py), or the end given the beginning (_v2.py)."""

from types import MappingProxyType

import numpy as np
import tensorflow as tf

from albert_tf.finetuning.question_answering.spans import Spans, best_spans
from albert_tf.finetuning.question_answering.task import QuestionTask
from albert_tf.modeling import AlbertForConditionalQuestionAnswering, AlbertForQuestionAnswering
from albert_tf.modeling.conditional_answers import IMPOSSIBLE
from albert_tf.modeling.kernels.visible_keys import HIDDEN_SCORE
from albert_tf.objectives.flops import encoder_products
from albert_tf.objectives.losses import weighted_cross_entropy
from albert_tf.objectives.objective import encoder_batch_spec

# Of features: what a teacher says of the first and of the last piece, float32 [N, S].
TAUGHT = {"start": "teacher_start_logits", "end": "teacher_end_logits"}
# Given which first piece the teacher tells the last one, int32 [N], and its logit of no answer.
_TAUGHT_START, _TAUGHT_NULL = "teacher_start_positions", "teacher_null_logits"


class QuestionAnswering(QuestionTask):
    """The mean of the cross-entropies of the first and of the last piece of the answer, each by itself.

    Where these positions are unknown, -1, an example weighs nothing. Accuracies are over the examples that hold the
    answer; where they are 0, that of [CLS], there is none. No answer is the span from [CLS] to [CLS], and "null_odds"
    are its logits less those of the best span.
    """

    head = "independent"
    metric_names = ("start_accuracy", "end_accuracy")
    loss_coefficients = MappingProxyType({"span_loss": 1.0})

    def make_model(self, **options):
        return AlbertForQuestionAnswering(self.config, **options)

    def batch_spec(self, max_seq_length):
        """Returns the encoder's inputs, both positions, and what a teacher says of each piece."""
        taught = TAUGHT.values() if self.soft_labels else ()
        return {
            **encoder_batch_spec(max_seq_length),
            "start_positions": tf.TensorSpec([None], tf.int32),
            "end_positions": tf.TensorSpec([None], tf.int32),
            "example_weights": tf.TensorSpec([None], tf.float32),
            **dict.fromkeys(taught, tf.TensorSpec([None, max_seq_length], tf.float32)),
        }

    def weights(self, batch):
        """Returns what each example counts, float32 [B], 0 where nobody says what its answer is."""
        return batch["example_weights"] if self.soft_labels else _known_weights(batch)

    def compute(self, batch, training, dropout_seed, model):
        return self.compute_spans(batch, training, model(batch, training=training, dropout_seed=dropout_seed))

    def compute_spans(self, batch, training, logits):
        """Returns the loss, mixed with that of a teacher's answers, and the accuracies of `start_` and `end_logits`."""
        weights = self.weights(batch) if training else _known_weights(batch)
        # A text is read in many windows, most of which hold no answer: that [CLS] is found there says little.
        of_answers = batch["example_weights"] * tf.cast(batch["start_positions"] > 0, tf.float32)
        sums, accuracies = [], {}
        for name, taught in TAUGHT.items():
            found, positions = logits[f"{name}_logits"], tf.maximum(batch[f"{name}_positions"], 0)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(positions, found)
            if training and self.soft_labels is not None:
                padding = (1.0 - tf.cast(batch["input_mask"], tf.float32)) * HIDDEN_SCORE
                losses = self._mixed(losses, self.soft_labels.divergence(found, batch[taught], padding), batch)
            sums.append(tf.reduce_sum(losses * weights))
            _, accuracies[f"{name}_accuracy"] = weighted_cross_entropy(found, positions, of_answers)
        return {"span_loss": (0.5 * sum(sums), tf.reduce_sum(weights)), **accuracies}

    def _mixed(self, losses, soft_losses, batch):
        return self.soft_labels.mix(losses, soft_losses, tf.cast(batch["start_positions"] >= 0, tf.float32))

    def products(self, batch_spec):
        """Returns those of the encoder, and S 2 H of the head; to align questions takes S^2 2 E + S 3 E^2 more."""
        max_seq_length = batch_spec["input_ids"].shape[1]
        head = max_seq_length * 2 * self.config.hidden_size
        if self.config.question_alignment == "words":
            size = self.config.embedding_size
            head += max_seq_length**2 * 2 * size + max_seq_length * 3 * size**2
        return encoder_products(self.config, max_seq_length, max_seq_length) + head

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


class ConditionalQuestionAnswering(QuestionAnswering):
    """As `QuestionAnswering`, but the last piece is that given the first, and whether there is an answer is learnt too.

    The cross-entropy of the latter counts half. "null_odds" are the logit that there is no answer, of the window that
    is surest of one. (Original run_squad_v2.py.)

    What a teacher says of the last piece is given the first piece of the answer too; where that is unknown, given the
    one that the teacher finds best.
    """

    head = "conditional"
    metric_names = ("start_accuracy", "end_accuracy", "answerability_accuracy")
    loss_coefficients = MappingProxyType({"span_loss": 1.0, "answerability_loss": 0.5})

    def make_model(self, **options):
        return AlbertForConditionalQuestionAnswering(self.config, **options)

    def batch_spec(self, max_seq_length):
        """Returns those of `QuestionAnswering`, and what a teacher says of no answer."""
        dtypes = {_TAUGHT_START: tf.int32, _TAUGHT_NULL: tf.float32} if self.soft_labels else {}
        taught = {name: tf.TensorSpec([None], dtype) for name, dtype in dtypes.items()}
        return {**super().batch_spec(max_seq_length), **taught}

    def compute(self, batch, training, dropout_seed, model):
        is_taught, inputs = training and self.soft_labels is not None, dict(batch)
        if is_taught:
            taught, inputs["start_positions"] = inputs.pop(_TAUGHT_NULL), inputs.pop(_TAUGHT_START)
        logits = model(inputs, training=training, dropout_seed=dropout_seed)
        results, found = self.compute_spans(batch, training, logits), logits["null_logits"]
        has_none = tf.cast(tf.equal(batch["start_positions"], 0), tf.float32)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(has_none, found)
        if is_taught:
            soft_losses = self.soft_labels.divergence_of_each(found[:, None], taught[:, None])
            losses = self._mixed(losses, soft_losses, batch)
        weights, known = self.weights(batch) if training else _known_weights(batch), _known_weights(batch)
        is_right = tf.cast(tf.equal(found > 0, has_none > 0), tf.float32)
        return {
            **results,
            "answerability_loss": (tf.reduce_sum(losses * weights), tf.reduce_sum(weights)),
            "answerability_accuracy": (tf.reduce_sum(is_right * known), tf.reduce_sum(known)),
        }

    def products(self, batch_spec):
        """Returns those of `QuestionAnswering`, and of the larger head.

        Of the last positions S H^2 + H^2, of whether there is an answer S H + 2 H^2 + H.
        """
        hidden_size, max_seq_length = self.config.hidden_size, batch_spec["input_ids"].shape[1]
        end = (max_seq_length + 1) * hidden_size**2
        answerability = max_seq_length * hidden_size + 2 * hidden_size**2 + hidden_size
        return super().products(batch_spec) + end + answerability

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


def _known_weights(batch):
    """Returns the weights of the examples, float32 [B], 0 where the answer's position is unknown."""
    return batch["example_weights"] * tf.cast(batch["start_positions"] >= 0, tf.float32)
