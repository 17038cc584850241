"""A made-up objective of three models: two learn and share their embeddings, one is frozen."""

import numpy as np
import tensorflow as tf
from toy_objective import Distillation

from albert_tf.objectives.objective import encoder_batch_spec

BINS = 8


class Imitation(Distillation):
    """Learns the pooled output of a frozen teacher, by way of a helper with the same embeddings.

    Args:
        config: Of all three models.
    """

    metric_names = ("agreement", "positives", "negatives")
    vector_metrics = {"positives": BINS, "negatives": BINS}  # noqa: RUF012

    def __init__(self, config):
        super().__init__(config, config)
        self.loss_coefficients = {"distance": 1.0, "help": 0.5}

    def make_models(self, **options):
        models = {name: self.make_model(**options) for name in ("helper", "teacher", "model")}
        models["helper"].embeddings = models["model"].embeddings
        return models

    def compute(self, batch, training, dropout_seed, model, helper, teacher):
        inputs = {name: batch[name] for name in encoder_batch_spec(1)}
        learnt, helped, taught = (each(inputs)["pooled_output"] for each in (model, helper, teacher))
        weights, total = batch["example_weights"], tf.reduce_sum(batch["example_weights"])

        def loss(values):
            return tf.reduce_sum(weights * tf.reduce_mean(tf.square(values - tf.stop_gradient(taught)), axis=-1)), total

        ids = tf.cast(batch["input_ids"], tf.float32)
        scores, is_positive = ids[:, 0] / 15.0 - 1.0, tf.cast(ids[:, 1] + ids[:, 0] > 30.0, tf.float32)
        bins = tf.one_hot(tf.cast(tf.clip_by_value((scores + 1) / 2, 0, 0.999) * BINS, tf.int32), BINS)
        counts = {
            name: (tf.reduce_sum(bins * (chosen * weights)[:, None], axis=0), tf.zeros([BINS]))
            for name, chosen in (("positives", is_positive), ("negatives", 1 - is_positive))
        }
        agrees = tf.cast(tf.equal(scores > 0, is_positive > 0), tf.float32)
        return {
            "distance": loss(learnt),
            "help": loss(helped),
            "agreement": (tf.reduce_sum(weights * agrees), total),
            **counts,
        }

    def metrics_of_vectors(self, vectors):
        """Returns the area under the curve: how often a positive is scored above a negative; a tie counts half."""
        positives, negatives = vectors["positives"][0], vectors["negatives"][0]
        below = np.cumsum(negatives) - negatives
        area = (positives * (below + negatives / 2)).sum() / max(positives.sum() * negatives.sum(), 1)
        return {"auc": float(area), "counted": float(positives.sum() + negatives.sum())}
