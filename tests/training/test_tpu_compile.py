"""The training step, compiled for real TPUs by the compiler in libtpu, which needs no TPU."""

import functools

import pytest
import tensorflow as tf
from tiny_training import TinyRun, make_examples

from albert_tf.config import AlbertConfig
from albert_tf.modeling.layers import named_variables
from albert_tf.objectives import make_objective
from albert_tf.objectives.objective import with_batch_size
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.tpu.compile_step import ReplicaStrategy, compile_program, lower
from albert_tf.training.train_step import make_replica_step

pytest.importorskip("jax")
pytest.importorskip("libtpu")
pytestmark = pytest.mark.slow

# Sizes that fill a TPU's registers, so that padding doesn't blur the figures.
CONFIG = AlbertConfig(
    vocab_size=1024,
    embedding_size=128,
    hidden_size=256,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=512,
    max_position_embeddings=128,
    hidden_dropout_prob=0.1,
    attention_probs_dropout_prob=0.1,
)
BATCH_SIZE, SEQUENCE_LENGTH, PREDICTIONS = 8, 128, 16
DTYPES = ("float32", "mixed_bfloat16")


def make_strategy():
    """Returns a TPU without kernels: theirs compute scores twice, so that operations couldn't be counted."""
    return ReplicaStrategy(1, runs_pallas_kernels=False)


def make_batch(batch_size=BATCH_SIZE):
    shapes = {"masked_lm": [batch_size, PREDICTIONS], "input": [batch_size, SEQUENCE_LENGTH]}
    shapes["segment"] = shapes["input"]
    return {
        name: tf.zeros(next((shapes[key] for key in shapes if name.startswith(key)), [batch_size]), values.dtype)
        for name, values in make_examples(1).items()
    }


def compile_step(state, batch, topology="v5e:2x2", gradient_accumulation_steps=1):
    """Returns what one training step takes."""
    replica_step = make_replica_step(state, 0, gradient_accumulation_steps)

    # The number of the step is no constant in training either; the noise of dropout would be computed beforehand.
    def step(number, *values):
        state.strategy.run(replica_step, args=(dict(zip(batch, values)), number))

    return compile_program(lower(step, [tf.constant(0), *batch.values()]), topology)


@functools.cache
def compiled(dtype):
    """Returns what one pre-training step takes, and the number of the model's parameters."""
    run = TinyRun.start(strategy=make_strategy(), config=CONFIG, dtype=dtype)
    return compile_step(run.state, make_batch()), sum(
        tf.size(variable).numpy() for variable in named_variables(run.model).values()
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_operations_are_those_of_the_matrix_products(dtype):
    objective = make_objective("albert", CONFIG, masking=MaskingOptions(PREDICTIONS))
    expected = objective.flops(with_batch_size(objective.batch_spec(SEQUENCE_LENGTH), BATCH_SIZE))
    assert expected < compiled(dtype)[0].flops < 1.25 * expected


def test_gradient_accumulation_takes_less_memory():
    # A v3 has little room on the chip itself, so that activations are in HBM; dropout would take longer to compile.
    batch, needed = make_batch(32), {}
    options = {
        "config": CONFIG.replace(hidden_size=128, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0),
        "dtype": "mixed_bfloat16",
        "optimizer": "adamw",
    }
    for parts in (1, 4):
        run = TinyRun.start(strategy=make_strategy(), **options)
        needed[parts] = compile_step(run.state, batch, "v3:2x2", parts).temporary_bytes
    # Activations shrink to a quarter; sums of gradients, as large as the model, are what parts need in addition.
    assert 0 < needed[4] < 0.5 * needed[1]


@pytest.mark.parametrize("dtype", DTYPES)
def test_weights_and_moments_are_updated_in_place(dtype):
    step, num_parameters = compiled(dtype)
    state = 3 * 4 * num_parameters  # float32 weights and two moments
    assert state <= step.alias_bytes < 1.02 * state
    assert step.output_bytes - step.alias_bytes < 4096
    batch = sum(tf.size(values).numpy() * 4 for values in make_batch().values())
    assert state + batch <= step.argument_bytes < 1.02 * (state + batch)


def test_bfloat16_moves_fewer_bytes():
    accessed = {dtype: compiled(dtype)[0].bytes_accessed for dtype in DTYPES}
    assert accessed["mixed_bfloat16"] < 0.95 * accessed["float32"]
