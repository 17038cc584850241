"""The step and evaluation, traced under the real TPUStrategy."""

import collections

import pytest
import tensorflow as tf
from tiny_training import CONFIG, TinyRun, make_examples
from tpu import NUM_CORES, make_tpu_strategy, operations

from albert_tf.training.metrics import MetricSums
from albert_tf.training.pretraining import PretrainingTask
from albert_tf.training.train_loop import make_eval_function, make_train_function


@pytest.fixture
def tpu_graph():
    """A graph to trace in: outside of one, TPUStrategy would run operations on cores that are not there."""
    with tf.Graph().as_default() as graph:
        yield graph


class Batches:
    """Stands for the iterator of a distributed data set."""

    def __next__(self):
        return {name: tf.constant(values) for name, values in make_examples(2).items()}


@pytest.mark.parametrize("optimizer", ["lamb", "adamw"])
@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_train(tpu_graph, optimizer, dtype):
    config = CONFIG.replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
    run = TinyRun.start(strategy=make_tpu_strategy(), optimizer=optimizer, config=config, dtype=dtype)
    task = PretrainingTask()
    with run.strategy.scope():
        sums = MetricSums((*task.loss_names, *task.metric_names, "gradient_norm"))
    f = make_train_function(run.strategy, task, run.model, run.optimizer, run.global_step, sums, 0)
    g = f.get_concrete_function(Batches(), tf.TensorSpec([], tf.int32)).graph
    print(collections.Counter(n.op for n in operations(g)))
    print([n for n in operations(g) if n.op == "CrossReplicaSum"][-1])
    assert 0
