"""The training step, compiled for real TPUs by the compiler in libtpu, which needs no TPU."""

import functools

import pytest
import tensorflow as tf
from tiny_training import TinyRun, make_examples
from tpu import FixedBatch, compile_for_tpu

from albert_tf.config import AlbertConfig
from albert_tf.modeling.layers import named_variables
from albert_tf.training.metrics import MetricSums
from albert_tf.training.pretraining import PretrainingTask
from albert_tf.training.train_loop import make_train_function

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


def make_batch():
    shapes = {"masked_lm": [BATCH_SIZE, PREDICTIONS], "input": [BATCH_SIZE, SEQUENCE_LENGTH]}
    shapes["segment"] = shapes["input"]
    return {
        name: tf.zeros(next((shapes[key] for key in shapes if name.startswith(key)), [BATCH_SIZE]), values.dtype)
        for name, values in make_examples(1).items()
    }


@functools.cache
def compiled(topology, dtype):
    """Returns memory and cost of one training step, and the number of the model's parameters."""
    run = TinyRun.start(strategy=tf.distribute.get_strategy(), config=CONFIG, dtype=dtype)
    task, batch = PretrainingTask(), make_batch()
    sums = MetricSums((*task.loss_names, *task.metric_names, "gradient_norm"))
    train_steps = make_train_function(run.strategy, task, run.model, run.optimizer, run.global_step, sums, seed=0)

    def step(*values):
        train_steps.python_function(FixedBatch(dict(zip(batch, values))), 1)

    memory, cost = compile_for_tpu(step, list(batch.values()), topology)
    return memory, cost, sum(tf.size(variable).numpy() for variable in named_variables(run.model).values())


@pytest.mark.parametrize(
    ("topology", "dtype"), [("v2:2x2", "mixed_bfloat16"), ("v5e:2x2", "mixed_bfloat16"), ("v5e:2x2", "float32")]
)
def test_step_compiles(topology, dtype):
    memory, _, _ = compiled(topology, dtype)
    assert memory.generated_code_size_in_bytes > 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_operations_are_those_of_the_matrix_products(dtype):
    tokens, hidden, embedding = BATCH_SIZE * SEQUENCE_LENGTH, CONFIG.hidden_size, CONFIG.embedding_size
    block = 4 * hidden**2 + 2 * hidden * CONFIG.intermediate_size + 2 * SEQUENCE_LENGTH * hidden
    multiplications = (
        tokens * (embedding * hidden + CONFIG.num_hidden_layers * block)
        + BATCH_SIZE * hidden * (hidden + 2)
        + BATCH_SIZE * PREDICTIONS * embedding * (hidden + CONFIG.vocab_size)
    )
    # Two operations a multiplication and addition; the backward pass takes two products for each of the forward pass.
    expected = 3 * 2 * multiplications
    _, cost, _ = compiled("v5e:2x2", dtype)
    assert expected < cost["flops"] < 1.25 * expected


@pytest.mark.parametrize("dtype", DTYPES)
def test_weights_and_moments_are_updated_in_place(dtype):
    memory, _, num_parameters = compiled("v5e:2x2", dtype)
    state = 3 * 4 * num_parameters  # float32 weights and two moments
    assert state <= memory.alias_size_in_bytes < 1.02 * state
    assert memory.output_size_in_bytes - memory.alias_size_in_bytes < 4096
    batch = sum(tf.size(values).numpy() * 4 for values in make_batch().values())
    assert state + batch <= memory.argument_size_in_bytes < 1.02 * (state + batch)


def test_bfloat16_moves_fewer_bytes():
    accessed = {dtype: compiled("v5e:2x2", dtype)[1]["bytes accessed"] for dtype in DTYPES}
    assert accessed["mixed_bfloat16"] < 0.95 * accessed["float32"]
