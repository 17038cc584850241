"""The kernels, interpreted on this machine, against the plain path and against NumPy."""

import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.modeling import AlbertEncoder, AlbertForPreTraining
from albert_tf.modeling.kernels.flash_attention import flash_attention, uses_flash_attention
from albert_tf.modeling.kernels.positions import VisibleKeys
from albert_tf.modeling.layers import named_variables
from albert_tf.objectives import make_objective
from albert_tf.runs.tpu_compiler import ReplicaStrategy

pytest.importorskip("jax")


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
@pytest.mark.parametrize(("head_size", "num_rows"), [(16, 7), (64, None), (128, 7)])
def test_context_and_gradients_are_those_of_the_formula(head_size, num_rows):
    draws = np.random.default_rng(0)
    length, hidden_size = 40, 256
    rows = num_rows or length
    query, upstream = draws.normal(size=(2, 2, rows, hidden_size))
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

    def heads(states):
        return states.reshape(*states.shape[:2], -1, head_size).swapaxes(1, 2)

    def whole(states):
        return states.swapaxes(1, 2).reshape(2, -1, hidden_size)

    scores = heads(query) @ heads(key).swapaxes(-1, -2) / np.sqrt(head_size) + bias[:, None]
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    probs = weights / weights.sum(-1, keepdims=True)
    probs_gradient = heads(upstream) @ heads(value).swapaxes(-1, -2)
    scores_gradient = probs * (probs_gradient - (probs * probs_gradient).sum(-1, keepdims=True)) / np.sqrt(head_size)
    expected = [
        whole(scores_gradient @ heads(key)),
        whole(scores_gradient.swapaxes(-1, -2) @ heads(query)),
        whole(probs.swapaxes(-1, -2) @ heads(upstream)),
    ]
    np.testing.assert_allclose(context, whole(probs @ heads(value)), rtol=1e-4, atol=1e-5)
    arrays = [together(*expected)] if num_rows is None else [expected[0], together(*expected[1:])]
    for gradient, of_bias, array in zip(gradients, sums, arrays):
        np.testing.assert_allclose(gradient, array, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(of_bias, array.sum((0, 1)), rtol=1e-4, atol=1e-3)


# Of the largest element of a gradient, on whose way some 80 values are rounded forth and back in either computation:
# a deviation of sqrt(2 * 80 / 3) * 2**-8 = 0.03 of an element of usual size, which is a fourth of the largest, and of
# tens of thousands of elements one is 5 deviations off.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "tolerance", "dropout", "sharing", "remat"),
    [
        ("float32", 1e-4, 0.2, "all", "none"),
        ("float32", 1e-4, 0.0, "none", "block"),
        ("mixed_bfloat16", 0.04, 0.2, "none", "block"),
        ("mixed_bfloat16", 0.04, 0.0, "all", "none"),
    ],
)
def test_model_is_the_same_with_either_attention(batch, dtype, tolerance, dropout, sharing, remat):
    config = config_with(64, sharing=sharing, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout)
    objective = make_objective("albert", config)
    targets = {"masked_lm_ids": tf.constant([[1, 2, 3, 4]] * 3), "masked_lm_weights": tf.ones([3, 4])}
    targets |= {"sentence_order_labels": tf.constant([0, 1, 1]), "example_weights": tf.ones(3)}
    results = []
    for attention in ("plain", "flash"):
        tf.keras.utils.set_random_seed(3)
        model = AlbertForPreTraining(config, remat=remat, attention=attention, dtype=dtype)
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
    assert flash_loss == pytest.approx(loss, rel=tolerance / 10)
    for name, gradient in gradients.items():
        # The gradient of the key's bias is 0 but for rounding: a softmax doesn't see what is added to all scores.
        size = max(np.abs(gradient).max(), 0.1)
        np.testing.assert_allclose(flash_gradients[name] / size, gradient / size, rtol=0, atol=tolerance, err_msg=name)


@pytest.mark.parametrize(
    ("changes", "length"), [({"hidden_size": 192}, 12), ({"num_attention_heads": 8, "hidden_size": 384}, 12), ({}, 520)]
)
def test_shapes_that_do_not_fit_are_refused(changes, length):
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
def test_jax_is_not_needed_without_the_kernels():
    code = (
        "import sys; sys.modules.update(jax=None, jaxlib=None); import tensorflow as tf;"
        "from albert_tf.config import AlbertConfig;"
        "from albert_tf.modeling import AlbertEncoder;"
        "AlbertEncoder(AlbertConfig(vocab_size=9, hidden_size=128, num_hidden_layers=1, num_attention_heads=2))"
        "({'input_ids': tf.ones([1, 4], tf.int32)})"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_kernels_keep_jax_away_from_the_tpu_and_leave_its_settings_alone():
    code = """
import jax, tensorflow as tf
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
