"""An objective of two models: one that learns, and a teacher that does not."""

import tensorflow as tf

from albert_tf.modeling import AlbertEncoder
from albert_tf.objectives import Objective
from albert_tf.objectives.objective import encoder_batch_spec


class Distillation(Objective):
    """Learns the pooled output of a larger model, twice as eagerly where it says so.

    Args:
        config: Of the model that learns.
        teacher_config: Of the other.
        coefficient: Of the loss.
    """

    frozen_models = {"teacher": ""}  # noqa: RUF012

    def __init__(self, config, teacher_config, coefficient=1.0):
        self.config, self._teacher_config = config, teacher_config
        self.loss_coefficients = {"distance": coefficient, "length": 0.5}

    def make_model(self, **options):
        return AlbertEncoder(self.config, **options)

    def make_models(self, **options):
        return {"model": self.make_model(**options), "teacher": AlbertEncoder(self._teacher_config, **options)}

    def batch_spec(self, max_seq_length):
        return {**encoder_batch_spec(max_seq_length), "example_weights": tf.TensorSpec([None], tf.float32)}

    def loss_weights(self, batch):
        return dict.fromkeys(self.loss_coefficients, tf.reduce_sum(batch["example_weights"]))

    def compute(self, batch, training, dropout_seed, model, teacher):
        learnt = model(batch, training=training, dropout_seed=dropout_seed)["pooled_output"]
        taught = tf.stop_gradient(teacher(batch)["pooled_output"])
        weights, total = batch["example_weights"], tf.reduce_sum(batch["example_weights"])
        distances = tf.reduce_mean(tf.square(learnt - taught), axis=-1)
        lengths = tf.reduce_mean(tf.square(learnt), axis=-1)
        return {
            "distance": (tf.reduce_sum(weights * distances), total),
            "length": (tf.reduce_sum(weights * lengths), total),
        }
