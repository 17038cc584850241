"""Times a pre-training step on this machine's CPU against the same work in KerasHub and Hugging Face, in turns.

python -m benchmarks.train_step --dtype=float32
python -m benchmarks.train_step --dtype=mixed_bfloat16
python -m benchmarks.train_step --cores=1,2

Same shapes, weights of the same size, masked positions, AdamW, and no dropout. KerasHub runs both as a TensorFlow graph
and compiled by XLA (which is what its `fit` chooses); the faster one counts. Prints the median of each and its ratio to
ours; and the time of the step's matrix products alone, each at its own shape, which is a bound for any library on
TensorFlow. "albert_tf XLA" is our step compiled as a whole, which no command does on a CPU: see docs/performance.md.
Where the machine has other work, `--clock=processor` counts the seconds that this process computes, in all its threads;
begin the command with `taskset -c 0` then, because threads that wait for each other count as well.
"""

import collections
import os
import statistics
import subprocess
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")

import numpy as np
import tensorflow as tf
from absl import app, flags

from albert_tf.config import AlbertConfig
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.modeling.layers import named_variables
from albert_tf.objectives import make_objective
from albert_tf.optimization import LearningRateSchedule, make_optimizer
from albert_tf.training.devices import make_strategy
from albert_tf.training.train_state import MetricSums, TrainState
from albert_tf.training.train_step import make_eval_function, make_replica_step, make_train_function
from benchmarks import peers
from benchmarks.stage import ROOT

FLAGS = flags.FLAGS

flags.DEFINE_string("albert_config_file", os.path.join(ROOT, "configs", "albert_base_v2.json"), "The model.")
flags.DEFINE_enum("dtype", "float32", ["float32", "mixed_bfloat16"], "What products are computed in.")
flags.DEFINE_integer("train_batch_size", 8, "Examples in a step.", 1)
flags.DEFINE_integer("max_seq_length", 128, "Pieces of an example.", 8)
flags.DEFINE_integer("max_predictions_per_seq", 20, "Masked pieces of an example.", 1)
flags.DEFINE_enum("clock", "wall", ["wall", "processor"], "Whose time counts.")
flags.DEFINE_integer("rounds", 15, "How often everything is run, in turns.", 1)
flags.DEFINE_list("cores", [], "Numbers of cores to use, one run after the other; by default all, in one run.")
flags.DEFINE_list("only", ["albert_tf", "albert_tf_xla", "products", "keras_hub", "hugging_face"], "What to time.")


def make_batch(config: AlbertConfig) -> dict[str, np.ndarray]:
    """Returns random examples without padding."""
    draws = np.random.default_rng(0)
    size, length, predictions = FLAGS.train_batch_size, FLAGS.max_seq_length, FLAGS.max_predictions_per_seq
    return {
        "input_ids": draws.integers(5, config.vocab_size, [size, length], np.int32),
        "input_mask": np.ones([size, length], np.int32),
        "segment_ids": (np.arange(length) >= length // 2).astype(np.int32)[None].repeat(size, 0),
        "masked_lm_positions": np.sort(draws.permuted(np.tile(np.arange(length, dtype=np.int32), [size, 1]), axis=1))[
            :, :: length // predictions
        ][:, :predictions],
        "masked_lm_ids": draws.integers(5, config.vocab_size, [size, predictions], np.int32),
        "masked_lm_weights": np.ones([size, predictions], np.float32),
        "sentence_order_labels": draws.integers(0, 2, [size], np.int32),
        "example_weights": np.ones([size], np.float32),
    }


def albert_tf_steps(config, batch):
    """Returns our functions: steps of training, in the loop that `run_pretraining.py` runs, and of evaluation."""
    strategy = make_strategy()
    state = make_state(config, strategy)
    train_steps = make_train_function(state, 0, tf.Variable(False, trainable=False))
    iterator = iter(strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensors(batch).repeat()))
    with strategy.scope():
        sums = MetricSums((*state.objective.loss_coefficients, *state.objective.metric_names))
    eval_step = make_eval_function(strategy, state.objective, state.models, sums)
    tensors = {name: tf.constant(values) for name, values in batch.items()}
    return {
        "albert_tf": lambda: train_steps(iterator, tf.constant(1)),
        "albert_tf forward": lambda: eval_step(tensors),
    }


def albert_tf_xla_steps(config, batch):
    """Returns the same, compiled by XLA as a whole, as for a TPU."""
    state = make_state(config, tf.distribute.get_strategy())
    train_step = tf.function(make_replica_step(state, 0), jit_compile=True, autograph=False)
    forward = tf.function(forward_of(state), jit_compile=True)
    tensors = {name: tf.constant(values) for name, values in batch.items()}
    return {
        "albert_tf XLA": lambda: train_step(tensors, tf.constant(1)),
        "albert_tf forward XLA": lambda: forward(tensors)[0].numpy(),
    }


def make_state(config, strategy):
    """Returns what is trained, from random weights."""
    with strategy.scope():
        model = AlbertForPreTraining(config, dtype=FLAGS.dtype)
        optimizer = make_optimizer("adamw", named_variables(model), LearningRateSchedule(peers.LEARNING_RATE, 10**6, 0))
    return TrainState.create(strategy, make_objective("albert", config), {"model": model}, optimizer)


def forward_of(state):
    """Returns a function of a batch that computes the loss, and no gradient."""
    return lambda batch: state.objective.compute(batch, training=False, dropout_seed=None, **state.models)[
        "masked_lm_loss"
    ]


def keras_hub_steps(config, batch):
    """Returns KerasHub's functions, plain and compiled by XLA."""
    tensors = {name: tf.constant(values) for name, values in batch.items()}
    functions = {}
    for suffix, jit_compile in (("", False), (" XLA", True)):
        for kind, forward_only in (("", False), (" forward", True)):
            step = peers.keras_hub_step(config, FLAGS.dtype, forward_only)
            compiled = tf.function(step, jit_compile=jit_compile)
            functions[f"keras_hub{kind}{suffix}"] = lambda compiled=compiled: compiled(tensors).numpy()
    return functions


def hugging_face_steps(config, batch):
    """Returns Hugging Face's functions."""
    functions = {}
    for kind, forward_only in (("", False), (" forward", True)):
        step = peers.hugging_face_step(config, FLAGS.dtype, forward_only)
        functions[f"hugging_face{kind}"] = lambda step=step: step(batch)
    return functions


def product_steps(config, _):
    """Returns a function that computes the matrix products of our step, one after the other, and nothing else."""
    rows, hidden, inner = FLAGS.train_batch_size * FLAGS.max_seq_length, config.hidden_size, config.intermediate_size
    read_rows = FLAGS.train_batch_size * (FLAGS.max_predictions_per_seq + 1)
    masked_rows = FLAGS.train_batch_size * FLAGS.max_predictions_per_seq
    in_full = config.num_hidden_layers - 1
    shapes = [
        *[(rows, hidden, 3 * hidden), (rows, hidden, hidden), (rows, hidden, inner), (rows, inner, hidden)] * in_full,
        (rows, hidden, 2 * hidden),
        *[(read_rows, hidden, hidden)] * 2,
        (read_rows, hidden, inner),
        (read_rows, inner, hidden),
        (rows, config.embedding_size, hidden),
        (masked_rows, hidden, config.embedding_size),
        (masked_rows, config.embedding_size, config.vocab_size),
    ]
    dtype = tf.bfloat16 if FLAGS.dtype == "mixed_bfloat16" else tf.float32
    heads, head_size = config.num_attention_heads, hidden // config.num_attention_heads
    states = tf.random.normal([FLAGS.train_batch_size, heads, FLAGS.max_seq_length, head_size], dtype=dtype)
    scores = tf.random.normal([*states.shape[:3], FLAGS.max_seq_length], dtype=dtype)
    operands = {
        shape: tuple(tf.random.normal(sizes, dtype=dtype) for sizes in (shape[:2], shape[1:], (shape[0], shape[2])))
        for shape in set(shapes)
    }

    def forward_and_backward(inputs, kernel, upstream):
        tf.raw_ops.MatMul(a=inputs, b=kernel)
        tf.raw_ops.MatMul(a=upstream, b=kernel, transpose_b=True)
        tf.raw_ops.MatMul(a=inputs, b=upstream, transpose_a=True)

    def run():
        for shape in shapes:
            forward_and_backward(*operands[shape])
        for _ in range(config.num_hidden_layers):
            for _ in range(2):
                tf.raw_ops.BatchMatMulV2(x=states, y=states, adj_y=True)
            for _ in range(2):
                tf.raw_ops.BatchMatMulV2(x=scores, y=states)
                tf.raw_ops.BatchMatMulV2(x=scores, y=states, adj_x=True)

    return {"products": run}


def run_on_cores(count: int):
    """Runs this command on so many cores: TensorFlow looks at their number once a process."""
    usable = sorted(os.sched_getaffinity(0))
    if not 1 <= count <= len(usable):
        raise app.UsageError(f"--cores: this machine has 1 to {len(usable)}, not {count}")
    subprocess.run(
        [sys.executable, "-m", "benchmarks.train_step", *sys.argv[1:], "--cores="],
        check=True,
        preexec_fn=lambda: os.sched_setaffinity(0, usable[:count]),
    )


def main(_):
    if FLAGS.cores:
        for count in FLAGS.cores:
            run_on_cores(int(count))
        return
    config = AlbertConfig.from_json_file(FLAGS.albert_config_file)
    config = config.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    batch = make_batch(config)
    makers = {
        "albert_tf": albert_tf_steps,
        "albert_tf_xla": albert_tf_xla_steps,
        "products": product_steps,
        "keras_hub": keras_hub_steps,
        "hugging_face": hugging_face_steps,
    }
    functions = {name: step for maker in FLAGS.only for name, step in makers[maker](config, batch).items()}
    for step in functions.values():
        step()
        step()
    clock = time.process_time if FLAGS.clock == "processor" else time.perf_counter
    seconds = collections.defaultdict(list)
    for _ in range(FLAGS.rounds):
        for name, step in functions.items():
            started_at = clock()
            step()
            seconds[name].append(clock() - started_at)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    size = f"batch {FLAGS.train_batch_size} of {FLAGS.max_seq_length}"
    print(f"{FLAGS.dtype}, {len(os.sched_getaffinity(0))} cores, {FLAGS.clock} time, {size}")
    for name, median in medians.items():
        reference = "albert_tf forward" if "forward" in name else "albert_tf"
        ours = medians.get(reference)
        ratio = f", albert_tf takes {ours / median:.2f} of that" if ours and name != reference else ""
        print(f"{name:24} {1000 * median:8.1f} ms{ratio}")
    if {"albert_tf", "products"} <= medians.keys():
        print(f"{'beside the products':24} {1000 * (medians['albert_tf'] - medians['products']):8.1f} ms")


if __name__ == "__main__":
    app.run(main)
