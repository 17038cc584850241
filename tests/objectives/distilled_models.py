"""A small student, teachers for it, and a batch, for tests of distillation."""

import numpy as np
import tensorflow as tf
from tiny_config import tiny_config

from albert_tf.modeling import AlbertForPreTraining
from albert_tf.modeling.layers import named_variables
from albert_tf.objectives import make_objective
from albert_tf.pretraining_data import PACKINGS
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.training.run_folder.restoring import load_frozen_models

VOCAB_SIZE, LENGTH, PREDICTIONS = 40, 12, 3
CONFIG = tiny_config(VOCAB_SIZE, num_hidden_layers=2, hidden_dropout_prob=0.0)
# Of another width, with other heads, deeper, and sharing nothing.
OTHER = CONFIG.replace(hidden_size=24, num_attention_heads=3, num_hidden_layers=3, sharing="none", embedding_size=6)
# What makes a DeBERTa of either.
AS_DEBERTA = {
    "relative_attention": "p2c|c2p",
    "position_buckets": 6,
    "norm_rel_ebd": "layer_norm",
    "position_biased_input": False,
    "type_vocab_size": 0,
    "pooler": False,
}
KINDS = "relations", "logits", "layers"


def random_model(config, seed=1):
    """Returns a model whose weights are far from what they begin with."""
    tf.keras.utils.set_random_seed(seed)
    model = AlbertForPreTraining(config)
    for name, variable in named_variables(model).items():
        variable.assign(tf.random.normal(variable.shape, mean=float(name.endswith("gamma")), stddev=0.3))
    return model


def distil(config, teacher, packing=None, **settings):
    options = {"settings": {"teacher": teacher, **settings}, "masking": MaskingOptions(PREDICTIONS)}
    return make_objective("distil", config, packing and PACKINGS[packing], **options)


def loaded(objective, seed=2):
    """Returns the objective's models: a random student, and the teacher of the folder."""
    models = objective.make_models()
    for name, variable in named_variables(random_model(objective.config, seed)).items():
        named_variables(models["model"])[name].assign(variable)
    load_frozen_models(objective, models)
    return models


def batch_of(**changes):
    """Rows of different length, in pairs, some with fewer predictions than there is room for."""
    random, place, lengths = np.random.default_rng(2), np.arange(LENGTH), np.array([12, 9, 5])[:, None]
    batch = {
        "input_ids": np.where(place < lengths, random.integers(5, VOCAB_SIZE, [3, LENGTH]), 0),
        "input_mask": place < lengths,
        "segment_ids": (lengths // 2 <= place) & (place < lengths),
        "masked_lm_positions": np.array([[2, 5, 9], [1, 7, 0], [3, 0, 0]]),
        "masked_lm_ids": random.integers(5, VOCAB_SIZE, [3, PREDICTIONS]),
        **changes,
    }
    weights = tf.constant([[1, 1, 1], [1, 1, 0], [1, 0, 0]], tf.float32)
    return {**{name: tf.constant(value, tf.int32) for name, value in batch.items()}, "masked_lm_weights": weights}


def computed(objective, models, batch):
    """Returns sums and weights, and the gradients by name of what is learnt beside the masked language model."""
    variables = named_variables(models["model"])
    with tf.GradientTape() as tape:
        found = objective.compute(batch, training=True, dropout_seed=tf.constant([0, 1]), **models)
        loss = sum(
            factor * found[name][0] / found[name][1]
            for name, factor in objective.loss_coefficients.items()
            if name != "masked_lm_loss"
        )
    return found, tape.gradient(loss, variables)
