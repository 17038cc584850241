"""Finding the answer to a question in a text, or that there is none (original run_squad_v2.py)."""

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.modeling import AlbertForConditionalQuestionAnswering
from albert_tf.objectives.answer_span import AnswerSpan, known_weights
from albert_tf.objectives.flops import TRAINING_FLOPS_PER_PRODUCT
from albert_tf.objectives.objective import batch_sizes


class ConditionalAnswerSpan(AnswerSpan):
    """As `AnswerSpan`, but the last position is that given the first, and whether there is an answer is learnt as well.

    The cross-entropy of the latter counts half. An example without an answer has 0, the position of [CLS], as its first
    and last position.

    Args:
        config: Hyper-parameters.
    """

    metric_names = ("start_accuracy", "end_accuracy", "answerability_accuracy")

    def __init__(self, config: AlbertConfig):
        super().__init__(config)
        self.loss_coefficients = {"span_loss": 1.0, "answerability_loss": 0.5}

    def make_model(self, **options):
        """Returns an `AlbertForConditionalQuestionAnswering`."""
        return AlbertForConditionalQuestionAnswering(self.config, **options)

    def loss_weights(self, batch):
        return dict.fromkeys(self.loss_coefficients, tf.reduce_sum(known_weights(batch)))

    def compute(self, batch, training, dropout_seed, model):
        return self.compute_answers(batch, model(batch, training=training, dropout_seed=dropout_seed))

    def compute_answers(self, batch, logits):
        """Returns the losses and accuracies from the model's logits; see `compute`."""
        results = self.compute_spans(batch, logits)
        weights, total = known_weights(batch), results["span_loss"][1]
        has_none = tf.cast(tf.equal(batch["start_positions"], 0), tf.float32)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(has_none, logits["null_logits"])
        is_right = tf.cast(tf.equal(logits["null_logits"] > 0, has_none > 0), tf.float32)
        return {
            **results,
            "answerability_loss": (tf.reduce_sum(losses * weights), total),
            "answerability_accuracy": (tf.reduce_sum(is_right * weights), total),
        }

    def flops(self, batch_spec):
        """Returns the operations of a step: those of `AnswerSpan`, and of the larger head; see `Objective`.

        Of the last positions S H^2 + H^2, of whether there is an answer S H + 2 H^2 + H.
        """
        hidden_size, max_seq_length = self.config.hidden_size, batch_spec["input_ids"].shape[1]
        end = (max_seq_length + 1) * hidden_size**2
        answerability = max_seq_length * hidden_size + 2 * hidden_size**2 + hidden_size
        more = TRAINING_FLOPS_PER_PRODUCT * batch_sizes(batch_spec).examples * (end + answerability)
        return super().flops(batch_spec) + more
