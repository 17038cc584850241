"""What each layer of a teacher computes: where it attends, and its states (TinyBERT; Jiao et al. 2020, section 3.1)."""

import types

import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.modeling.layers import Linear
from albert_tf.objectives.distillation.lesson import Lesson, check_equal, scores_of_heads
from albert_tf.objectives.flops import encoder_products


class Layers(Lesson):
    """The scores of attention before the softmax, and the hidden states, layer by layer.

    A layer is one application of a block, whoever shares the block. Of the student's L_s and the teacher's L_t layers
    the m-th learns of layer m L_t / L_s, and embeddings of embeddings. Both losses are those of the paper's general
    stage: sums over layers of mean squared distances.

    The mean of the scores is over heads, over the keys that a piece sees, and over pieces. The published code takes it
    over all S keys and S queries, with 0 for hidden keys in both models, so that a short text between much padding
    weighs next to nothing there; where nothing is padded, it is the same.

    States of another width than the teacher's pass through one linear layer, the same for all layers. Of the same width
    they are compared as they are, where the published code has a linear layer, too: a teacher teaches itself nothing.
    """

    coefficients = types.MappingProxyType({"attention_loss": 1.0, "hidden_state_loss": 1.0})
    masked_lm_coefficient = 0.0
    auxiliary_models = ("projection",)
    reads_last_states = True

    def check(self, config, teacher, source):
        check_equal("layers", {"num_attention_heads": "heads"}, config, teacher, source)
        if teacher.num_blocks % config.num_blocks:
            raise InputError(
                "`distillation=layers` needs a teacher whose number of layers is a multiple of the student's, which is "
                f"{config.num_blocks}, and {source} has {teacher.num_blocks}; give the student another number "
                "of layers, or use `distillation=relations`"
            )

    def make_auxiliary_models(self, config, teacher, dtype):
        if config.hidden_size == teacher.hidden_size:
            return {}
        return {"projection": Linear(config.hidden_size, teacher.hidden_size, config.initializer_range, dtype=dtype)}

    def compute(self, student, teacher, bias, weights, projection=None):
        is_seen = tf.cast(tf.equal(bias, 0.0), tf.float32)
        shares = tf.math.divide_no_nan(is_seen, tf.reduce_sum(is_seen, axis=-1, keepdims=True)) * weights[:, :, None]

        def distance_of_scores(own, other):
            learnt, taught = _scores(student, own - 1), tf.stop_gradient(_scores(teacher, other - 1))
            return tf.reduce_sum(tf.reduce_mean(tf.square(learnt - taught), axis=1) * shares)

        def distance_of_states(own, other):
            learnt, taught = student.outputs["hidden_states"][own], teacher.outputs["hidden_states"][other]
            learnt = learnt if projection is None else projection(learnt)
            squares = tf.square(tf.cast(learnt, tf.float32) - tf.cast(taught, tf.float32))
            return tf.reduce_sum(tf.reduce_mean(squares, axis=-1) * weights)

        layers, total = _layers(student.config, teacher.config), tf.reduce_sum(weights)
        return {
            "attention_loss": (tf.add_n([distance_of_scores(*pair) for pair in layers[1:]]), total),
            "hidden_state_loss": (tf.add_n([distance_of_states(*pair) for pair in layers]), total),
        }

    def products(self, config, teacher, max_seq_length):
        """Returns L_s S H_s (2 H_s + S) and (L_s + 1) S H_s H_t of a projection, and the teacher's; see `Lesson`.

        Of the teacher these are its whole encoder and the same for the layers that are learnt.
        """
        of_student, of_teacher = (
            config.num_blocks * max_seq_length * each.hidden_size * (2 * each.hidden_size + max_seq_length)
            for each in (config, teacher)
        )
        if config.hidden_size != teacher.hidden_size:
            of_student += (config.num_blocks + 1) * max_seq_length * config.hidden_size * teacher.hidden_size
        return of_student, encoder_products(teacher, max_seq_length, max_seq_length) + of_teacher


def _layers(config, teacher):
    """Returns pairs of a layer of the student and that which it learns of, from 1, after 0 for the embeddings."""
    distance = teacher.num_blocks // config.num_blocks
    return [(number, number * distance) for number in range(config.num_blocks + 1)]


def _scores(reading, number):
    """Returns the scores of one application of a block, from 0; float32 [B, heads, S, S]."""
    query, key, _ = reading.encoder.query_key_value(reading.outputs["hidden_states"], number)
    return scores_of_heads(query, key, reading.config.num_attention_heads)
