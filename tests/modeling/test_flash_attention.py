"""The kernels, interpreted on this machine, and all other ways of attention, against NumPy and one another."""

import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from numpy_reference import attention_and_gradients

from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.modeling import AlbertEncoder, AlbertForPreTraining
from albert_tf.modeling.kernels.attention_check import attention_functions
from albert_tf.modeling.kernels.flash_attention import flash_attention, uses_flash_attention
from albert_tf.modeling.kernels.positions import HIDDEN_SCORE, VisibleKeys, visible_keys
from albert_tf.modeling.layers import named_variables
from albert_tf.objectives import make_objective
from albert_tf.runs.tpu_compiler import ReplicaStrategy


def config_with(head_size, **changes):
    return AlbertConfig(
        vocab_size=30,
        embedding_size=8,
        hidden_size=256,
        num_hidden_layers=2,
        num_attention_heads=256 // head_size,
        intermediate_size=32,
        max_position_embeddings=512,
        **changes,
    )


@pytest.mark.slow
@pytest.mark.parametrize(("head_size", "num_rows"), [(16, 7), (128, None)])
def test_context_and_gradients_are_those_of_the_formula(head_size, num_rows):
    pytest.importorskip("jax")
    draws = np.random.default_rng(0)
    length, hidden_size = 40, 256
    query, upstream = draws.normal(size=(2, 2, num_rows or length, hidden_size))
    key, value = draws.normal(size=(2, 2, length, hidden_size))
    bias = np.where(draws.random([2, 1, length]) < 0.3, -10000.0, 0.0)

    def together(*arrays):
        return np.stack([a.reshape(*a.shape[:2], -1, 128) for a in arrays], 3).reshape(*arrays[0].shape[:2], -1)

    arrays = [together(query, key, value)] if num_rows is None else [query, together(key, value)]
    biases = [draws.normal(size=array.shape[-1]) for array in arrays]
    products = [tf.constant(array - added, tf.float32) for array, added in zip(arrays, biases)]
    biases = [tf.constant(added, tf.float32) for added in biases]
    with tf.GradientTape() as tape:
        tape.watch([products, biases])
        context = flash_attention(products, biases, VisibleKeys(tf.constant(bias, tf.float32)), None, head_size, 0.0)
    gradients, sums = tape.gradient(context, [products, biases], tf.constant(upstream, tf.float32))
    expected_context, *expected = attention_and_gradients(query, key, value, upstream, bias, head_size)
    np.testing.assert_allclose(context, expected_context, rtol=1e-4, atol=1e-5)
    arrays = [together(*expected)] if num_rows is None else [expected[0], together(*expected[1:])]
    for gradient, of_bias, array in zip(gradients, sums, arrays):
        np.testing.assert_allclose(gradient, array, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(of_bias, array.sum((0, 1)), rtol=1e-4, atol=1e-3)


@pytest.mark.slow
def test_model_is_the_same_with_either_attention(batch):
    pytest.importorskip("jax")
    config = config_with(64, sharing="none", hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2)
    objective = make_objective("albert", config)
    targets = {"masked_lm_ids": tf.constant([[1, 2, 3, 4]] * 3), "masked_lm_weights": tf.ones([3, 4])}
    targets |= {"sentence_order_labels": tf.constant([0, 1, 1]), "example_weights": tf.ones(3)}
    results = []
    for attention in ("plain", "flash"):
        tf.keras.utils.set_random_seed(3)
        model = AlbertForPreTraining(config, remat="block", attention=attention)
        variables = named_variables(model)
        for name, variable in variables.items():
            if "query" in name or "key" in name:
                variable.assign(3.0 * variable)  # so that some positions are seen more than others
        with tf.GradientTape() as tape:
            found = objective.compute(batch | targets, True, tf.constant([5, 6]), model=model)
            loss = found["masked_lm_loss"][0] + found["sentence_order_loss"][0]
        gradients = tape.gradient(loss, variables)
        results.append((float(loss), {name: tf.convert_to_tensor(value).numpy() for name, value in gradients.items()}))
    (loss, gradients), (flash_loss, flash_gradients) = results
    assert flash_loss == pytest.approx(loss, rel=1e-5)
    for name, gradient in gradients.items():
        # The gradient of the key's bias is 0 but for rounding: a softmax doesn't see what is added to all scores.
        size = max(np.abs(gradient).max(), 0.1)
        np.testing.assert_allclose(flash_gradients[name] / size, gradient / size, rtol=0, atol=1e-4, err_msg=name)


@pytest.mark.parametrize(
    ("changes", "length"), [({"hidden_size": 192}, 12), ({"num_attention_heads": 8, "hidden_size": 384}, 12), ({}, 520)]
)
def test_shapes_that_do_not_fit_are_refused(changes, length):
    pytest.importorskip("jax")
    config = config_with(64).replace(max_position_embeddings=1024).replace(**changes)
    with pytest.raises(InputError, match=r"`attention=flash` needs hidden_size=.*; use `attention=plain`"):
        AlbertEncoder(config, attention="flash")({"input_ids": tf.ones([1, length], tf.int32)})
    AlbertEncoder(config, attention="auto")({"input_ids": tf.ones([1, length], tf.int32)})


@pytest.mark.parametrize(
    ("inputs", "options", "sentence"),
    [
        ({"input_mask": tf.ones([1, 4, 4], tf.int32)}, {}, 'attention="flash" supports no mask'),
        ({}, {"output_attentions": True}, 'attention="flash" cannot output attentions'),
    ],
)
def test_what_the_kernels_cannot_do_is_refused(inputs, options, sentence):
    pytest.importorskip("jax")
    config, inputs = config_with(64), {"input_ids": tf.ones([1, 4], tf.int32), **inputs}
    with pytest.raises(InputError, match=sentence + '.*; use attention="plain" or "auto"'):
        AlbertEncoder(config, attention="flash")(inputs, **options)
    with ReplicaStrategy(1).scope():  # a TPU, on which "auto" chooses the kernels where it can
        assert uses_flash_attention("auto", 256, 64, 4)
        assert not uses_flash_attention("auto", 256, 64, 4, "input_mask" in inputs, **options)


def test_unknown_choice_is_refused(tiny_config):
    with pytest.raises(ValueError, match="attention must be one of auto, plain, flash"):
        AlbertEncoder(tiny_config, attention="linear")


@pytest.mark.slow
def test_jax_is_loaded_with_the_kernels_alone_kept_away_from_the_tpu_and_its_settings_left_alone():
    pytest.importorskip("jax")
    code = """
import sys
sys.modules.update(jax=None, jaxlib=None)  # as if it were not installed
import tensorflow as tf
from albert_tf.config import AlbertConfig
from albert_tf.modeling import AlbertEncoder

config = AlbertConfig(vocab_size=9, hidden_size=128, num_hidden_layers=1, num_attention_heads=2)
AlbertEncoder(config)({'input_ids': tf.ones([1, 4], tf.int32)})
del sys.modules["jax"], sys.modules["jaxlib"]

import jax
from albert_tf.modeling.kernels import flash_attention_kernel
from albert_tf.modeling.kernels.flash_attention import _kernels, flash_attention
from albert_tf.modeling.kernels.positions import VisibleKeys

kernel = flash_attention_kernel.forward


def forward(*arrays, **options):
    seen.append(jax.config.jax_platforms)
    return kernel(*arrays, **options)


flash_attention_kernel.forward = forward
projections = tf.zeros([1, 8, 384])
for told in (None, "cpu"):
    _kernels.cache_clear()
    jax.config.update("jax_platforms", told)
    before = dict(jax.config.values)
    seen = []
    with tf.GradientTape() as tape:
        tape.watch(projections)
        context = flash_attention([projections], [tf.zeros(384)], VisibleKeys(tf.zeros([1, 1, 8])), None, 64, 0.0)
    tape.gradient(context, projections)
    assert set(seen) == {told or "cpu"}, seen
    assert jax.config.values == before, "settings of the program that uses the model"
"""
    environment = {name: value for name, value in os.environ.items() if name != "JAX_PLATFORMS"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_missing_jax_is_said_in_a_sentence(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"`attention=flash` needs jax: pip install .*\[flash\]'"):
        AlbertEncoder(config_with(64), attention="flash")({"input_ids": tf.ones([1, 4], tf.int32)})


BATCH_SIZE, LENGTH, HIDDEN_SIZE, HEAD_SIZE = 2, 24, 256, 64
# The second example is padded at the right.
LENGTHS = [24, 17]


def draw(num_rows):
    """Returns queries, keys, values and the gradient of the context in float64, and positions of the queries."""
    random = np.random.default_rng(0)
    positions = np.tile(np.arange(LENGTH), [BATCH_SIZE, 1])
    if num_rows is not None:
        positions = random.integers(0, LENGTH, [BATCH_SIZE, num_rows])
    query, upstream = random.normal(size=[2, *positions.shape, HIDDEN_SIZE])
    key, value = random.normal(size=[2, BATCH_SIZE, LENGTH, HIDDEN_SIZE])
    return query, key, value, upstream, positions


def attend(way):
    plain, flash = attention_functions(HEAD_SIZE, 0.0)
    attention = {"plain": plain, "fused": tf.function(plain), "flash": flash}[way]

    def without_bias(projections, visible, seed):
        return attention(projections, [tf.zeros(array.shape[-1:]) for array in projections], visible, seed)

    return without_bias


CASES = [(None, True, False), (None, False, True), (5, True, True)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "num_rows", "is_causal", "has_documents"),
    [
        *((way, rows, *hidden) for way in ("plain", "flash") for rows, *hidden in CASES),
        ("fused", 5, True, True),
    ],
)
def test_hidden_keys_are_seen_by_no_way_of_attention(way, num_rows, is_causal, has_documents):
    if way == "flash":
        pytest.importorskip("jax")
    query, key, value, upstream, positions = draw(num_rows)
    documents = np.random.default_rng(1).integers(-1, 2, [BATCH_SIZE, LENGTH])
    # One of a single piece, one that padding cuts, and one of padding alone, which sees nothing.
    documents[1, 12:] = [5, *[6] * 7, *[7] * 4]
    keys = np.arange(LENGTH)
    may_see = np.tile((keys < np.array(LENGTHS)[:, None])[:, None], [1, positions.shape[1], 1])
    bias = np.where(may_see[:, :1], 0.0, HIDDEN_SCORE)
    if is_causal:
        may_see &= keys <= positions[:, :, None]
    if has_documents:
        may_see &= np.take_along_axis(documents, positions, axis=1)[:, :, None] == documents[:, None]
    sees_nothing = ~may_see.any(axis=-1)
    assert num_rows or has_documents == sees_nothing.any()
    counted = np.where(sees_nothing[..., None], 0.0, upstream)
    expected = attention_and_gradients(query, key, value, counted, np.where(may_see, 0.0, HIDDEN_SCORE), HEAD_SIZE)

    visible = visible_keys(
        tf.constant(bias, tf.float32),
        tf.constant(documents) if has_documents else None,
        is_causal,
        None if num_rows is None else tf.constant(positions),
    )
    arrays = [query, np.concatenate([key, value], -1)] if num_rows else [np.concatenate([query, key, value], -1)]
    projections = [tf.constant(array, tf.float32) for array in arrays]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(projections)
        context = attend(way)(projections, visible, None)
    for of_nothing in (0.0, 1.0):
        given = tf.constant(np.where(sees_nothing[..., None], of_nothing * upstream, upstream), tf.float32)
        gradients = tape.gradient(context, projections, given)
        assert all(np.isfinite(gradient).all() for gradient in gradients)
        if not of_nothing:
            found = (
                np.split(np.concatenate([array.numpy() for array in gradients], -1), 3, -1)
                if not num_rows
                else [gradients[0].numpy(), *np.split(gradients[1].numpy(), 2, -1)]
            )
            for gradient, right in zip(found, expected[1:]):
                np.testing.assert_allclose(gradient, right, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(context[~sees_nothing], expected[0][~sees_nothing], rtol=1e-4, atol=1e-5)
    # Of a score of -10000, float32 keeps three digits after the point.
    np.testing.assert_allclose(context[sees_nothing], expected[0][sees_nothing], atol=0.01)
