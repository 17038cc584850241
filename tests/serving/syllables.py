"""Models with random weights whose pieces are syllables."""

import types

import numpy as np
import tensorflow as tf
from tiny_config import tiny_config

from albert_tf.asking.model import Model
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.serving.folder import FolderBackend
from albert_tf.serving.loading import TrainedModel
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS

SYLLABLES = "가나다라마바사"
PIECES = [*SPECIAL_TOKENS, *SYLLABLES, *(f"##{each}" for each in SYLLABLES), "."]


def make_model(tokenizer, num_positions, **learnt):
    """Returns a pre-trained model; what it has learnt is as of `TrainedModel`."""
    is_causal = learnt.get("predicts_next", False)
    config = tiny_config(len(tokenizer), max_position_embeddings=num_positions, is_causal=is_causal, pooler=False)
    tf.keras.utils.set_random_seed(3)
    model = AlbertForPreTraining(config)
    for variable in model.trainable_variables:
        variable.assign(variable + tf.random.normal(variable.shape, stddev=0.3))
    found = TrainedModel(model, tokenizer, num_positions, None, "model.ckpt-1", {}, **learnt)
    return Model(FolderBackend(found, "tiny"))


def make_models(tokenizer, num_positions):
    """Returns a model that fills masks, and one that predicts what comes next."""
    causal = make_model(tokenizer, num_positions, fills_masks=False, predicts_next=True)
    return types.SimpleNamespace(masked=make_model(tokenizer, num_positions), causal=causal)


def log_probabilities(model, ids):
    """Returns those of all pieces, given a whole text, by NumPy: [len(ids), pieces]."""
    logits = model.model({"input_ids": tf.constant([ids])})["masked_lm_logits"][0].numpy().astype(float)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
