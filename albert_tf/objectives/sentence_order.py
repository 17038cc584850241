"""The relation of two segments: their order (ALBERT), or whether one follows the other (BERT)."""

import tensorflow as tf

from albert_tf.objectives.losses import weighted_cross_entropy
from albert_tf.objectives.objective import POOLER
from albert_tf.objectives.pretraining_loss import PretrainingLoss
from albert_tf.pretraining_data.records import LABEL_FEATURE


class SentenceOrder(PretrainingLoss):
    """Whether two consecutive segments were swapped (Lan et al. 2020, section 3.1)."""

    name = "sentence_order"
    reads = (POOLER, "sentence_order_head/")

    def prepare(self, features, seed):
        labels = tf.squeeze(features[LABEL_FEATURE], axis=1)
        return {"sentence_order_labels": labels, "example_weights": tf.ones_like(labels, tf.float32)}

    def batch_spec(self, max_seq_length):
        return {
            "sentence_order_labels": tf.TensorSpec([None], tf.int32),
            "example_weights": tf.TensorSpec([None], tf.float32),
        }

    def weight(self, batch):
        return tf.reduce_sum(batch["example_weights"])

    def compute(self, model, states, batch):
        logits = model.sentence_order_head(states.pooled_output)
        return weighted_cross_entropy(logits, batch["sentence_order_labels"], batch["example_weights"])

    def products(self, batch_spec):
        return self.config.hidden_size**2 + 2 * self.config.hidden_size


class NextSentence(SentenceOrder):
    """Whether the second segment follows the first (Devlin et al. 2019, section 3.1), from the same head."""

    name = "next_sentence"
