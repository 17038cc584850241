"""DeBERTa-v2 and v3 of transformers: the same numbers in all classes, bit-equal round trips, and what is refused."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf
from huggingface_conversion import assert_goes_back, edit_config, randomized, to_ours, to_theirs, write_word_pieces
from random_models import config_in, read_variables, write_ours
from tiny_config import tiny_config

import albert_tf
from albert_tf import modeling
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.interchange.safetensors_file import read_safetensors

SIZES = {
    "vocab_size": 40,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 24,
    "position_buckets": -1,
    "share_att_key": False,
}
VERSION_3 = {
    **SIZES,
    "relative_attention": True,
    "pos_att_type": "p2c|c2p",
    "position_buckets": 6,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "position_biased_input": False,
}
# Version 3's shape and those that differ from it by what a config may say.
SHAPES = {
    "as version 3": VERSION_3,
    "keys and queries of its own": {**VERSION_3, "share_att_key": False, "pos_att_type": ["c2p", "p2c"]},
    "all distances, one term": {**SIZES, "relative_attention": True, "pos_att_type": "c2p", "max_relative_positions": 5},
    "the other term": {
        **VERSION_3,
        "pos_att_type": ["p2c"],
        "share_att_key": False,
        "position_biased_input": True,
        "norm_rel_ebd": "layer_norm|none",
        "type_vocab_size": 2,
        "max_relative_positions": 11,
    },
    "no distances": {**SIZES, "type_vocab_size": 2, "pooler_hidden_act": "tanh", "hidden_act": "gelu_new"},
}
CLASSES = {
    "Model": (None, modeling.AlbertForPreTraining, "sequence_output", "last_hidden_state"),
    "ForMaskedLM": (None, modeling.AlbertForPreTraining, "masked_lm_logits", "logits"),
    "ForSequenceClassification": ("classify", modeling.AlbertForSequenceClassification, "logits", "logits"),
    "ForTokenClassification": ("tag", modeling.AlbertForTokenClassification, "logits", "logits"),
    "ForQuestionAnswering": ("squad", modeling.AlbertForQuestionAnswering, "end_logits", "end_logits"),
    "ForMultipleChoice": ("race", modeling.AlbertForMultipleChoice, "logits", "logits"),
}
KEYS = (
    *("model_type", "relative_attention", "position_buckets", "max_relative_positions", "share_att_key"),
    *("position_biased_input", "type_vocab_size", "layer_norm_eps", "hidden_act", "pooler_hidden_act"),
)


def their_model(transformers, class_name="ForMaskedLM", **settings):
    num_labels = 2 if class_name == "ForQuestionAnswering" else 3
    config = transformers.DebertaV2Config(**settings, num_labels=num_labels)
    return randomized(getattr(transformers, f"DebertaV2{class_name}")(config))


def make_inputs(length, num_segments, task=None):
    """Returns texts of three lengths, padded."""
    random, place = np.random.default_rng(length), np.arange(length)
    lengths = np.array([[length], [max(1, length - 3)], [(length + 1) // 2]])
    values = {
        "input_ids": random.integers(5, 40, [3, length]) * (place < lengths),
        "input_mask": place < lengths,
        "segment_ids": (lengths // 2 <= place) & (place < lengths) & (num_segments > 1),
    }
    if task == "race":
        values = {key: np.stack([value, np.roll(value, 1, axis=0)], 1) for key, value in values.items()}
    return {key: value.astype(np.int32) for key, value in values.items()}


def run_theirs(theirs, inputs):
    import torch

    names = {"input_ids": "input_ids", "input_mask": "attention_mask", "segment_ids": "token_type_ids"}
    with torch.no_grad():
        return theirs(**{names[key]: torch.tensor(value).long() for key, value in inputs.items()})


def assert_same_outputs(theirs, folder, class_name, length):
    """Compares what a model of theirs computes with what the folder of ours does, where there are pieces."""
    task, ours, our_name, their_name = CLASSES[class_name]
    inputs = make_inputs(length, theirs.config.type_vocab_size, task)
    model = ours.from_pretrained(folder, verbose=False)
    found = model({key: tf.constant(value) for key, value in inputs.items()})[our_name].numpy()
    expected = run_theirs(theirs, inputs)[their_name].numpy()
    is_read = inputs["input_mask"] > 0 if found.shape[1] == length and task != "race" else np.ones(found.shape, bool)
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(found[is_read] / scale, expected[is_read] / scale, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", SHAPES)
def test_encoder_and_head_compute_the_same_and_go_out_again_with_the_same_bits(transformers, tmp_path, name):
    theirs = their_model(transformers, **SHAPES[name])
    assert_goes_back(theirs, tmp_path, KEYS)
    for length in (1, 7, 23):
        assert_same_outputs(theirs, tmp_path / "ours", "ForMaskedLM", length)
