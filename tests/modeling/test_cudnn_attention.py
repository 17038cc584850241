"""The calls of cuDNN's kernel in a program, which is written down here and run nowhere: no test has a GPU."""

import json
import re

import numpy as np
import pytest
import tensorflow as tf
from tiny_config import tiny_config

from albert_tf.base.errors import InputError
from albert_tf.modeling import AlbertEncoder
from albert_tf.modeling.kernels import cudnn_attention as module
from albert_tf.modeling.kernels.attention import plain_attention
from albert_tf.modeling.kernels.attention_check import cudnn_functions, find_fault
from albert_tf.modeling.kernels.cudnn_attention import cudnn_attention
from albert_tf.modeling.kernels.positions import HIDDEN_SCORE, VisibleKeys, visible_keys
from albert_tf.runs.tpu_compiler import lower
from albert_tf.training.devices import WholeStepStrategy

CONFIG = tiny_config(hidden_size=256, num_hidden_layers=2, num_attention_heads=4)
DROPS = CONFIG.replace(attention_probs_dropout_prob=0.1)
SIZE, LENGTH, HEADS, HEAD_SIZE = 2, 16, 4, 64


def gpu_strategy():
    """Returns what a program for a GPU is traced under, on a machine that has none."""
    strategy = WholeStepStrategy("/cpu:0")
    strategy.runs_cudnn_attention = True
    return strategy


def calls_of(program):
    """Returns name, settings, layouts and types of each call of the kernel, in order."""
    found = []
    for line in program.splitlines():
        if "@__cudnn$" in line:
            name = re.search(r"@__cudnn\$(\w+)", line)[1]
            settings = json.loads(re.search(r'backend_config = "((?:[^"\\]|\\.)*)"', line)[1].replace(r"\22", '"'))
            layouts = [re.search(rf"{kind}_layouts = (\[.*?>\])", line)[1] for kind in ("operand", "result")]
            operands, results = re.search(r"\} : \((.*?)\) -> (?:tuple<|\()(.*)[>)]", line).groups()
            types = [re.findall(r"tensor<[^>]*>", side) for side in (operands, results)]
            found.append((name, without_defaults(settings["cudnn_fmha_backend_config"]), layouts, types))
    return found


def without_defaults(value):
    """Returns settings without what is a field's default in any case; 64-bit integers are text or not, in JSON."""
    if isinstance(value, dict):
        items = {name: without_defaults(each) for name, each in value.items()}
        return {
            name: each
            for name, each in items.items()
            if each not in (0, 0.0, [], {}, False, None, "PRIMITIVE_TYPE_INVALID") and name != "seed"
        }
    if isinstance(value, list):
        return [without_defaults(each) for each in value]
    return int(value) if isinstance(value, str) and value.isdigit() else value


def our_program(dtype, is_causal):
    lengths = tf.constant([LENGTH, 9])

    def attend(query, key, value, lengths):
        bias = tf.where(tf.sequence_mask(lengths, LENGTH), 0.0, HIDDEN_SCORE)[:, None]
        projections = [tf.reshape(each, [SIZE, LENGTH, HEADS * HEAD_SIZE]) for each in (query, key, value)]
        with tf.GradientTape() as tape:
            tape.watch(projections)
            context = cudnn_attention(projections, visible_keys(bias, None, is_causal, None), HEAD_SIZE)
        return tape.gradient(context, projections)

    operand = tf.zeros([SIZE, LENGTH, HEADS, HEAD_SIZE], dtype)
    return lower(attend, [operand, operand, operand, lengths])


def program_of_jax(dtype, is_causal, monkeypatch):
    jax = pytest.importorskip("jax")
    from jax._src.cudnn import fused_attention_stablehlo as reference

    monkeypatch.setattr(reference, "check_cudnn_version", lambda: 91000)  # the machine has no cuDNN to ask
    mask = reference.MaskType.PADDING_CAUSAL if is_causal else reference.MaskType.PADDING

    def attend(query, key, value, lengths):
        def context(query, key, value):
            queries = jax.numpy.full([SIZE], LENGTH, "int32")
            options = {"q_seqlen": queries, "kv_seqlen": lengths, "scale": HEAD_SIZE**-0.5, "mask_type": mask}
            return reference.dot_product_attention(query, key, value, **options)

        return jax.vjp(context, query, key, value)[1](query)

    operand = jax.ShapeDtypeStruct([SIZE, LENGTH, HEADS, HEAD_SIZE], dtype)
    lengths = jax.ShapeDtypeStruct([SIZE], "int32")
    traced = jax.jit(attend).trace(operand, operand, operand, lengths)
    return traced.lower(lowering_platforms=("cuda",)).as_text()


@pytest.mark.parametrize(("dtype", "is_causal"), [("bfloat16", False), ("float16", True)])
def test_calls_are_those_of_jax(dtype, is_causal, monkeypatch):
    expected = calls_of(program_of_jax(dtype, is_causal, monkeypatch))
    found = calls_of(our_program(dtype, is_causal))
    assert [name for name, *_ in found] == ["fmhaSoftmax", "fmhaSoftmaxBackward"]
    # Ours alone asks for a gradient that is the same each time.
    assert found[1][1].pop("force_deterministic") is True
    assert found == expected


def emulated(is_backward, mask, operands):
    """Computes what the kernel does, by the formula, and as little as it of what is hidden."""
    query, key, value = operands[:3]
    lengths = operands[-1]

    def attend(query, key, value):
        scores = tf.einsum("brnd,bsnd->bnrs", query, key) * query.shape[-1] ** -0.5
        is_seen = tf.sequence_mask(lengths, key.shape[1])[:, None, None]
        if mask == "PADDING_CAUSAL":
            is_seen &= tf.linalg.band_part(tf.ones([query.shape[1], key.shape[1]]), -1, 0) > 0
        scores = tf.where(is_seen, scores, -np.inf)
        return tf.einsum("bnrs,bsnd->brnd", tf.nn.softmax(scores), value), tf.reduce_logsumexp(scores, axis=-1)

    with tf.GradientTape() as tape:
        tape.watch(operands[:3])
        context, statistics = attend(query, key, value)
    if not is_backward:
        return context, statistics
    np.testing.assert_allclose(operands[3], statistics, rtol=1e-5)
    np.testing.assert_allclose(operands[5], context, rtol=1e-5, atol=1e-6)
    return tape.gradient(context, operands[:3], operands[4])


@pytest.mark.parametrize(("num_rows", "is_causal"), [(None, False), (5, False), (None, True)])
def test_context_and_gradients_are_those_of_plain_operations(num_rows, is_causal, monkeypatch):
    monkeypatch.setattr(module, "_call", emulated)
    draws, columns = np.random.default_rng(0), HEADS * HEAD_SIZE
    shapes = [[num_rows, columns], [LENGTH, 2 * columns]] if num_rows else [[LENGTH, 3 * columns]]
    projections = [tf.constant(draws.normal(size=[SIZE, *shape]), tf.float32) for shape in shapes]
    upstream = tf.constant(draws.normal(size=[num_rows or LENGTH, columns]), tf.float32)
    # The second example fills up a batch and sees nothing: what it gets weighs nothing, but must be finite.
    bias = tf.where(tf.sequence_mask([9, 0], LENGTH), 0.0, HIDDEN_SCORE)[:, None]
    visible = visible_keys(bias, None, is_causal, None)

    def compute(attend):
        with tf.GradientTape() as tape:
            tape.watch(projections)
            context = attend(projections, visible)
            loss = tf.reduce_sum(context[0] * upstream)
        return context, tape.gradient(loss, projections)

    context, gradients = compute(lambda *arguments: plain_attention(*arguments, None, HEAD_SIZE, 0.0))
    context_of_kernel, gradients_of_kernel = compute(lambda *arguments: cudnn_attention(*arguments, HEAD_SIZE))
    assert np.isfinite(context_of_kernel).all()
    np.testing.assert_allclose(context_of_kernel[0], context[0], rtol=1e-4, atol=1e-5)
    for found, expected in zip(gradients_of_kernel, gradients):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_keys_that_are_hidden_before_others_make_everything_nan(monkeypatch):
    monkeypatch.setattr(module, "_call", emulated)
    bias = tf.constant([[[0.0, HIDDEN_SCORE, 0.0]], [[0.0, 0.0, HIDDEN_SCORE]]])
    context = cudnn_attention([tf.ones([2, 3, 3 * 64])], VisibleKeys(bias), 64).numpy()
    assert np.isnan(context[0]).all()
    assert np.isfinite(context[1]).all()


def program_of_encoder(**options):
    return lower(*encoding(**options))


def encoding(config=CONFIG, dtype="mixed_bfloat16", attention="auto", inputs=(), **options):
    """Returns a function that encodes as on a GPU, and what to give it."""
    strategy = gpu_strategy()
    with strategy.scope():
        encoder = AlbertEncoder(config, dtype=dtype, attention=attention)
        encoder.build({"input_ids": (SIZE, LENGTH)})

    def encode(*values):
        batch = dict(zip(("input_ids", *dict(inputs)), values))
        return encoder(batch, dropout_seed=tf.constant([1, 2]), **options)["sequence_output"]

    def step(*values):
        return strategy.run(encode, args=values)

    return step, [tf.ones([SIZE, LENGTH], tf.int32), *dict(inputs).values()]


def test_every_block_of_an_encoder_calls_the_kernel():
    calls = calls_of(program_of_encoder(output_positions=tf.zeros([SIZE, 3], tf.int32)))
    assert [name for name, *_ in calls] == ["fmhaSoftmax"] * 2
    assert [types[0][0] for *_, types in calls] == ["tensor<2x16x4x64xbf16>", "tensor<2x3x4x64xbf16>"]
    assert {settings["mask_type"] for _, settings, *_ in calls} == {"PADDING"}
    assert len(calls_of(program_of_encoder(config=DROPS))) == 2, "dropout that is off is no obstacle"
    assert not calls_of(program_of_encoder(attention="plain"))


def test_of_a_causal_model_the_last_block_does_not_where_some_positions_are_read():
    config = CONFIG.replace(is_causal=True)
    (call,) = calls_of(program_of_encoder(config=config, output_positions=tf.zeros([SIZE, 3], tf.int32)))
    assert call[1]["mask_type"] == "PADDING_CAUSAL"
    assert len(calls_of(program_of_encoder(config=config))) == 2


@pytest.mark.parametrize(
    ("changes", "obstacle"),
    [
        ({"dtype": "float32"}, "products in float32"),
        ({"config": DROPS, "training": True}, "dropout of attention probabilities"),
        ({"config": CONFIG.replace(num_attention_heads=64)}, "heads of 4 columns"),
        ({"inputs": {"document_ids": tf.ones([SIZE, LENGTH], tf.int32)}}, "several documents"),
        ({"inputs": {"input_mask": tf.ones([SIZE, LENGTH, LENGTH], tf.int32)}}, "a mask"),
    ],
)
def test_what_the_kernel_cannot_do_is_left_to_plain_operations(changes, obstacle):
    assert not calls_of(program_of_encoder(**changes))
    step, arguments = encoding(attention="flash", **changes)
    with pytest.raises(InputError, match=f"`attention=flash` on a GPU is not possible with {obstacle}"):
        tf.function(step, autograph=False).get_concrete_function(*arguments)


@pytest.mark.parametrize("is_causal", [False, True])
def test_a_machine_without_the_kernel_is_told_so(is_causal):
    arguments = 256, LENGTH, 5, "bfloat16", is_causal
    fault = find_fault(gpu_strategy(), *cudnn_functions(HEAD_SIZE), *arguments, knows_documents=False)
    assert fault.startswith("fail with ")
