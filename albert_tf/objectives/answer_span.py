"""Finding the answer to a question in a text: where it begins and where it ends (original run_squad_v1.py)."""

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.modeling import AlbertForQuestionAnswering
from albert_tf.objectives.flops import TRAINING_FLOPS_PER_PRODUCT, encoder_products
from albert_tf.objectives.losses import weighted_cross_entropy
from albert_tf.objectives.objective import Objective, batch_sizes, encoder_batch_spec


class AnswerSpan(Objective):
    """The mean of the cross-entropies of an answer's first and last position.

    Where these positions are unknown, -1, an example weighs nothing. Accuracies are over the examples that hold the
    answer; where they are 0, that of [CLS], there is none.

    Args:
        config: Hyper-parameters.
    """

    metric_names = ("start_accuracy", "end_accuracy")

    def __init__(self, config: AlbertConfig):
        self.config = config
        self.loss_coefficients = {"span_loss": 1.0}

    def make_model(self, **options):
        """Returns an `AlbertForQuestionAnswering`."""
        return AlbertForQuestionAnswering(self.config, **options)

    def batch_spec(self, max_seq_length):
        return {
            **encoder_batch_spec(max_seq_length),
            "start_positions": tf.TensorSpec([None], tf.int32),
            "end_positions": tf.TensorSpec([None], tf.int32),
            "example_weights": tf.TensorSpec([None], tf.float32),
        }

    def loss_weights(self, batch):
        return {"span_loss": tf.reduce_sum(known_weights(batch))}

    def compute(self, batch, training, dropout_seed, model):
        return self.compute_spans(batch, model(batch, training=training, dropout_seed=dropout_seed))

    def compute_spans(self, batch, logits):
        """Returns the loss and the accuracy of both positions from the model's `start_logits` and `end_logits`."""
        weights = known_weights(batch)
        # A text is read in many windows, most of which hold no answer: that [CLS] is found there says little.
        holds_answer = tf.cast(batch["start_positions"] > 0, tf.float32)
        losses, accuracies = [], {}
        for name in ("start", "end"):
            found, positions = logits[f"{name}_logits"], tf.maximum(batch[f"{name}_positions"], 0)
            (loss, total), _ = weighted_cross_entropy(found, positions, weights)
            losses.append(loss)
            _, accuracies[f"{name}_accuracy"] = weighted_cross_entropy(found, positions, weights * holds_answer)
        return {"span_loss": (0.5 * sum(losses), total), **accuracies}

    def flops(self, batch_spec):
        """Returns the operations of a step: the encoder's, and S 2 H of the head; see `Objective`.

        To align questions takes S^2 2 E + S 3 E^2 more.
        """
        max_seq_length = batch_spec["input_ids"].shape[1]
        products = encoder_products(self.config, max_seq_length, max_seq_length)
        head = max_seq_length * 2 * self.config.hidden_size
        if self.config.question_alignment == "words":
            size = self.config.embedding_size
            head += max_seq_length**2 * 2 * size + max_seq_length * 3 * size**2
        return TRAINING_FLOPS_PER_PRODUCT * batch_sizes(batch_spec).examples * (products + head)


def known_weights(batch):
    """Returns the weights of the examples, float32 [B], 0 where the answer's position is unknown."""
    return batch["example_weights"] * tf.cast(batch["start_positions"] >= 0, tf.float32)
