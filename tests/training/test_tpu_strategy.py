"""Training and evaluation under the real TPUStrategy, as far as tracing goes: nothing can run without a TPU."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from tiny_training import CONFIG, SCHEDULE, TinyRun, make_examples
from tpu import NUM_CORES, FixedBatch, make_tpu_strategy, operations

from albert_tf.modeling import AlbertForSequenceClassification
from albert_tf.modeling.layers import named_variables
from albert_tf.optimization import make_optimizer
from albert_tf.tasks.classification import ClassificationTask
from albert_tf.training.metrics import MetricSums
from albert_tf.training.pretraining import PretrainingTask
from albert_tf.training.train_loop import make_eval_function, make_train_function

WITH_DROPOUT = CONFIG.replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)


def trace_training(run, task, batch):
    """Returns the operations of a loop of training steps."""
    with run.strategy.scope():
        sums = MetricSums((*task.loss_names, *task.metric_names, "gradient_norm"))
    train_steps = make_train_function(run.strategy, task, run.model, run.optimizer, run.global_step, sums, seed=0)
    return operations(train_steps.get_concrete_function(FixedBatch(batch), tf.TensorSpec([], tf.int32)).graph)


@functools.cache
def traced_pretraining(optimizer, dtype):
    """Returns the operations of pre-training and the number of the model's variables."""
    # Outside of a graph, operations would be sent to cores that are not there.
    with tf.Graph().as_default():
        run = TinyRun.start(strategy=make_tpu_strategy(), optimizer=optimizer, config=WITH_DROPOUT, dtype=dtype)
        return trace_training(run, PretrainingTask(), make_examples(2)), len(named_variables(run.model))


def named(nodes, *names):
    return [node for node in nodes if node.op in names]


def assert_runs_on_every_core(nodes):
    (metadata,) = named(nodes, "TPUReplicateMetadata")
    assert metadata.attr["num_replicas"].i == NUM_CORES
    assert not named(nodes, "PyFunc", "EagerPyFunc", "HostConst", "Print", "PrintV2"), "these need the host"
    assert not named(nodes, "RandomUniform", "RandomStandardNormal", "VarHandleOp"), "these keep a state of their own"


@pytest.mark.parametrize(
    ("optimizer", "dtype"), [("lamb", "float32"), ("lamb", "mixed_bfloat16"), ("adamw", "mixed_bfloat16")]
)
def test_step_is_one_program_on_every_core(optimizer, dtype):
    nodes, num_variables = traced_pretraining(optimizer, dtype)
    assert_runs_on_every_core(nodes)
    reductions = named(nodes, "CrossReplicaSum")
    assert len(reductions) == num_variables + 2, "one for each gradient and for the weight of each loss"
    assert {node.attr["T"].type for node in reductions} == {tf.float32.as_datatype_enum}
    groups = [node for node in named(nodes, "Const") if "group_assignment" in node.name]
    assert len(groups) == len(reductions)
    for group in groups:
        np.testing.assert_array_equal(tf.make_ndarray(group.attr["value"].tensor), [range(NUM_CORES)])
    assignments = named(nodes, "AssignVariableOp")
    assert len(assignments) == 3 * num_variables, "each variable and its two moments"
    assert {node.attr["dtype"].type for node in assignments} == {tf.float32.as_datatype_enum}
    assert len(named(nodes, "AssignAddVariableOp")) == 2, "the metrics, and on the host the step"
    num_dropouts = 1 + 3 * WITH_DROPOUT.num_hidden_layers
    assert len(named(nodes, "StatelessRandomUniformV2")) == num_dropouts


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_matrix_products_are_in_the_dtype_asked_for(dtype):
    nodes, _ = traced_pretraining("lamb", dtype)
    products = [node.attr["T"].type for node in named(nodes, "MatMul", "BatchMatMulV2", "Einsum")]
    if dtype == "float32":
        assert set(products) == {tf.float32.as_datatype_enum}
        return
    # The sum of embeddings stays in float32: the product with the two segment vectors, and its gradient.
    assert products.count(tf.float32.as_datatype_enum) == 2
    assert set(products) == {tf.float32.as_datatype_enum, tf.bfloat16.as_datatype_enum}
    for node in named(nodes, "Softmax", "SparseSoftmaxCrossEntropyWithLogits", "Rsqrt"):
        assert node.attr["T"].type == tf.float32.as_datatype_enum, node.name


@pytest.fixture
def graph():
    """A graph to trace in."""
    with tf.Graph().as_default():
        yield


@pytest.mark.usefixtures("graph")
def test_evaluation_neither_communicates_nor_changes_weights():
    run = TinyRun.start(strategy=make_tpu_strategy(), config=WITH_DROPOUT)
    task = PretrainingTask()
    with run.strategy.scope():
        sums = MetricSums((*task.loss_names, *task.metric_names))
    eval_step = make_eval_function(run.strategy, task, run.model, sums)
    batch = {name: tf.TensorSpec(values.shape, values.dtype) for name, values in make_examples(2).items()}
    nodes = operations(eval_step.get_concrete_function(batch).graph)
    assert_runs_on_every_core(nodes)
    assert not named(nodes, "CrossReplicaSum", "AssignVariableOp", "StatelessRandomUniformV2")
    assert len(named(nodes, "AssignAddVariableOp")) == 1


@pytest.mark.usefixtures("graph")
def test_fine_tuning_is_traced():
    strategy = make_tpu_strategy()
    with strategy.scope():
        model = AlbertForSequenceClassification(WITH_DROPOUT, 3, dtype="mixed_bfloat16")
        optimizer = make_optimizer("adamw", named_variables(model), SCHEDULE)
    run = TinyRun(strategy, model, optimizer, tf.Variable(0, dtype=tf.int64, trainable=False))
    examples = make_examples(2)
    batch = {name: examples[name] for name in ("input_ids", "input_mask", "segment_ids", "example_weights")}
    nodes = trace_training(run, ClassificationTask(), {**batch, "label_ids": np.array([0, 2], np.int32)})
    assert_runs_on_every_core(nodes)
    assert len(named(nodes, "CrossReplicaSum")) == len(named_variables(model)) + 1
