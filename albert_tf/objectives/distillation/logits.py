"""What the teacher thinks of every piece, and where its last states point (DistilBERT; Sanh et al. 2019, section 3)."""

import types

import tensorflow as tf

from albert_tf.modeling.kernels import tied_distillation
from albert_tf.modeling.kernels.tied_distillation import Scorer
from albert_tf.objectives.distillation.lesson import Lesson, check_equal
from albert_tf.objectives.flops import encoder_products

_TEMPERATURE = 2.0


class Logits(Lesson):
    """The teacher's probabilities at all pieces, masked or not, and the cosine of the last hidden states.

    Losses and weights are those of the recipe in transformers' research projects: T^2 KL at a temperature T of 2,
    averaged over pieces, and 1 - cosine likewise. `agreement` is the share of pieces at which both models guess
    the same one.
    """

    coefficients = types.MappingProxyType({"logit_loss": 5.0, "cosine_loss": 1.0})
    masked_lm_coefficient = 2.0
    metric_names = ("agreement",)
    reads_last_states = reads_guesses = True

    def check(self, config, teacher, source):
        check_equal("logits", {"hidden_size": "states", "vocab_size": "guesses"}, config, teacher, source)

    def compute(self, student, teacher, bias, weights):
        learnt, taught = (_scorer(reading) for reading in (student, teacher))
        taught = Scorer(*map(tf.stop_gradient, taught))
        divergence, agreement = tied_distillation.tied_distillation(
            learnt, taught, tf.reshape(weights, [-1]), _TEMPERATURE
        )
        states = (tf.cast(reading.outputs["sequence_output"], tf.float32) for reading in (student, teacher))
        found, known = (tf.math.l2_normalize(each, axis=-1) for each in states)
        distances = 1.0 - tf.reduce_sum(found * tf.stop_gradient(known), axis=-1)
        total = tf.reduce_sum(weights)
        return {
            "logit_loss": (divergence, total),
            "cosine_loss": (tf.reduce_sum(distances * weights), total),
            "agreement": (agreement, total),
        }

    def products(self, config, teacher, max_seq_length):
        """Returns S (H E + E V) of the student, and the teacher's encoder with the same of its own."""
        heads = (
            max_seq_length * each.embedding_size * (each.hidden_size + each.vocab_size) for each in (config, teacher)
        )
        of_student, of_teacher = heads
        return of_student, encoder_products(teacher, max_seq_length, max_seq_length) + of_teacher

    def uncounted_flops(self, config, teacher, batch_spec):
        rows = batch_spec["input_ids"].shape.num_elements()
        return tied_distillation.uncounted_flops(rows, config.embedding_size, teacher.embedding_size, config.vocab_size)


def _scorer(reading):
    """Returns what scores the pieces at all positions of a batch."""
    head, table = reading.masked_lm_head, tf.convert_to_tensor(reading.encoder.embeddings.word_embeddings)
    states = head.states(reading.outputs["sequence_output"])
    return Scorer(tf.reshape(states, [-1, states.shape[-1]]), table, head.bias())
