"""Training and evaluation under the real TPUStrategy, as far as tracing goes: nothing can run without a TPU."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from tiny_training import CONFIG, PREDICTIONS, PRETRAINING, SCHEDULE, SEQUENCE_LENGTH, TinyRun, make_examples
from tpu import NUM_CORES, make_tpu_strategy, operations, trace_training

from albert_tf.base.errors import InputError
from albert_tf.finetuning import TASKS
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.modeling.kernels.attention_check import attention_functions, make_comparison
from albert_tf.modeling.kernels.positions import VisibleKeys
from albert_tf.modeling.layers import named_variables
from albert_tf.objectives import make_objective
from albert_tf.objectives.objective import with_batch_size
from albert_tf.optimization import make_optimizer
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.training import attention_choice
from albert_tf.training.evaluation import make_output_step
from albert_tf.training.train_state import MetricSums, learnt_variables
from albert_tf.training.train_step import TrainState, make_eval_function

WITH_DROPOUT = CONFIG.replace(
    hidden_dropout_prob=0.1,
    attention_probs_dropout_prob=0.1,
    position_initializer="sinusoidal",
    attention_initializer="neighbors",
)
NUM_DROPOUTS = 1 + 3 * WITH_DROPOUT.num_hidden_layers


@functools.cache
def traced_pretraining(optimizer="lamb", gradient_accumulation_steps=1, **options):
    """Returns the operations of pre-training and the number of the model's variables."""
    # Outside of a graph, operations would be sent to cores that are not there.
    with tf.Graph().as_default():
        run = TinyRun.start(
            strategy=make_tpu_strategy(), optimizer=optimizer, config=WITH_DROPOUT, dtype="mixed_bfloat16", **options
        )
        examples = {**make_examples(4), "replacement_draws": np.full([4, PREDICTIONS], 0.5, np.float32)}
        spec = run.state.objective.batch_spec(SEQUENCE_LENGTH)
        nodes = trace_training(run.state, {name: examples[name] for name in spec}, gradient_accumulation_steps)
        return nodes, len(learnt_variables(run.state.objective, run.state.models))


def named(nodes, *names):
    return [node for node in nodes if node.op in names]


def dropouts(nodes):
    """Returns the comparisons of random bits with a threshold."""
    return [node for node in named(nodes, "GreaterEqual") if node.attr["T"].type == tf.uint32.as_datatype_enum]


def assert_runs_on_every_core(nodes):
    (metadata,) = named(nodes, "TPUReplicateMetadata")
    assert metadata.attr["num_replicas"].i == NUM_CORES
    assert not metadata.attr["allow_soft_placement"].b, "what a TPU can't do would be sent to the host"
    assert not [node.name for node in nodes if "_xla_outside_compilation" in node.attr]
    assert not [node.name for node in nodes if "_XlaMustCompile" in node.attr], "the TPU's compiler compiles all of it"
    assert not named(nodes, "PyFunc", "EagerPyFunc", "HostConst", "Print", "PrintV2"), "these need the host"
    assert not named(nodes, "RandomUniform", "RandomStandardNormal", "VarHandleOp"), "these keep a state of their own"


def assert_reduced_over_all_cores(nodes, expected_count, explanation):
    reductions = named(nodes, "CrossReplicaSum")
    assert len(reductions) == expected_count, explanation
    assert {node.attr["T"].type for node in reductions} == {tf.float32.as_datatype_enum}
    groups = [node for node in named(nodes, "Const") if "group_assignment" in node.name]
    assert len(groups) == len(reductions)
    for group in groups:
        np.testing.assert_array_equal(tf.make_ndarray(group.attr["value"].tensor), [range(NUM_CORES)])


@pytest.mark.slow
@pytest.mark.keras_2
def test_step_is_one_program_on_every_core():
    nodes, num_variables = traced_pretraining()
    assert_runs_on_every_core(nodes)
    assert_reduced_over_all_cores(
        nodes,
        num_variables + 2 + 1 + 1,
        "the gradients, the weights of the two losses, the loss, and all metrics in one",
    )
    assignments = named(nodes, "AssignVariableOp")
    of_floats = [node for node in assignments if node.attr["dtype"].type == tf.float32.as_datatype_enum]
    assert len(of_floats) == 3 * num_variables, "each variable and its two moments"
    assert len(assignments) == len(of_floats) + 1, "the last skipped step"
    assert len(named(nodes, "AssignAddVariableOp")) == 3, "the metrics, the skipped steps, and on the host the step"
    assert len(dropouts(nodes)) == 2 * NUM_DROPOUTS, "no mask is kept for the backward pass"
    products = [node.attr["T"].type for node in named(nodes, "MatMul", "BatchMatMulV2", "Einsum")]
    # The sum of embeddings stays in float32: the product with the two segment vectors, and its gradient.
    assert products.count(tf.float32.as_datatype_enum) == 2
    assert set(products) == {tf.float32.as_datatype_enum, tf.bfloat16.as_datatype_enum}
    for node in named(nodes, "Softmax", "SparseSoftmaxCrossEntropyWithLogits", "Rsqrt"):
        assert node.attr["T"].type == tf.float32.as_datatype_enum, node.name


@pytest.mark.slow
def test_step_that_finds_replaced_pieces_is_one_program_on_every_core():
    options = {"settings": {"generator_size": 0.5}, "masking": MaskingOptions(PREDICTIONS)}
    nodes, num_variables = traced_pretraining("adamw", objective=make_objective("electra", WITH_DROPOUT, **options))
    assert_runs_on_every_core(nodes)
    num_unused = 2  # of the pooler
    assert_reduced_over_all_cores(
        nodes,
        num_variables - num_unused + 2 + 1 + 1,
        "the gradients of both models, the weights of the two losses, the loss, and all metrics in one",
    )


@pytest.mark.slow
def test_accumulation_is_a_loop_inside_the_program_and_averages_are_kept_on_the_cores():
    at_once, num_variables = traced_pretraining()
    in_parts, _ = traced_pretraining(gradient_accumulation_steps=4, ema_decay=0.99)
    assert_runs_on_every_core(in_parts)
    # One loop more than that over the steps, whose body is the model once, whatever the number of parts.
    loops = "While", "StatelessWhile"
    assert (len(named(at_once, *loops)), len(named(in_parts, *loops))) == (1, 2)
    for products in ("MatMul", "BatchMatMulV2", "Einsum"):
        assert len(named(in_parts, products)) == len(named(at_once, products))
    assert len(dropouts(in_parts)) == len(dropouts(at_once))
    assert_reduced_over_all_cores(
        in_parts, num_variables + 2 + 1 + 1, "as often as without parts, not once for each part, and no averages"
    )
    assert len(named(in_parts, "AssignVariableOp")) == 4 * num_variables + 1, "now also the averages"


@pytest.fixture
def graph():
    """A graph to trace in."""
    with tf.Graph().as_default():
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("graph")
@pytest.mark.parametrize(("embedding_feature", "num_layers", "num_kernels"), [("V2", 2, 4), ("V1", 1, 0)])
def test_flash_kernels_are_part_of_the_program_where_the_tpu_takes_them(embedding_feature, num_layers, num_kernels):
    pytest.importorskip("jax")
    strategy = make_tpu_strategy(embedding_feature)
    config = WITH_DROPOUT.replace(hidden_size=128, num_hidden_layers=num_layers)
    with strategy.scope():
        model = AlbertForPreTraining(config, dtype="mixed_bfloat16")
        optimizer = make_optimizer("adamw", named_variables(model), SCHEDULE)
    nodes = trace_training(TrainState.create(strategy, PRETRAINING, {"model": model}, optimizer), make_examples(2))
    assert_runs_on_every_core(nodes)
    kernels = named(nodes, "XlaCallModule")
    assert len(kernels) == num_kernels, "forward and backward of each block"
    for kernel in kernels:
        assert list(kernel.attr["platforms"].list.s) == [b"TPU"]


@pytest.mark.usefixtures("graph")
@pytest.mark.parametrize(("num_rows", "hides"), [(None, False), (5, True)])
def test_trial_of_the_kernels_is_one_program_on_every_core(num_rows, hides):
    pytest.importorskip("jax")
    compare = make_comparison(make_tpu_strategy("V2"), *attention_functions(64, 0.1), "bfloat16")
    shapes = [[2, 8, 3 * 128]] if num_rows is None else [[2, num_rows, 128], [2, 8, 2 * 128]]
    projections = [tf.TensorSpec(shape, tf.float32) for shape in shapes]
    queries, keys, seed = (tf.TensorSpec(shape, tf.int32) for shape in ([2, num_rows or 8], [2, 8], [2]))
    visible = VisibleKeys(tf.TensorSpec([2, 1, 8], tf.float32), *((queries, keys, queries) if hides else ()))
    upstream = tf.TensorSpec([2, num_rows or 8, 128], tf.float32)
    nodes = operations(compare.get_concrete_function(projections, visible, seed, upstream).graph)
    assert_runs_on_every_core(nodes)
    assert len(named(nodes, "XlaCallModule")) == 2, "forward and backward"


FLASH_CONFIG = CONFIG.replace(hidden_size=128, num_attention_heads=2, max_position_embeddings=1024)


def choose(strategy, attention, shapes):
    return attention_choice.choose_attention(strategy, attention, FLASH_CONFIG, "mixed_bfloat16", shapes)


@pytest.mark.usefixtures("graph")
@pytest.mark.parametrize("attention", ["auto", "flash"])
def test_kernels_that_work_are_chosen(attention, trial):
    pytest.importorskip("jax")
    tried = trial(None, None)
    shapes = [(128, 21), (512, 78)]
    line = "attention: flash kernels, tried on this TPU"
    assert choose(make_tpu_strategy("V2"), attention, shapes) == (attention, line)
    assert tried == [(128, *shape, "bfloat16", False) for shape in shapes]


@pytest.mark.usefixtures("graph")
def test_kernels_that_fail_are_passed_over_or_refused_with_a_sentence(trial):
    pytest.importorskip("jax")
    trial(None, "fail with InternalError: Mosaic", "differ by 1")
    line = "attention: plain operations, because on this TPU the flash kernels fail with InternalError: Mosaic"
    assert choose(make_tpu_strategy("V2"), "auto", [(128, 21), (512, 78)]) == ("plain", line)
    sentence = "`attention=flash`: on this TPU the flash kernels differ by 1; use `attention=plain`"
    with pytest.raises(InputError, match=sentence):
        choose(make_tpu_strategy("V2"), "flash", [(128, 21)])


@pytest.mark.usefixtures("graph")
def test_kernels_are_not_tried_where_they_do_not_suit_nor_off_a_tpu(trial):
    tried = trial()
    for feature, length in (("V1", 128), ("V2", 513)):
        assert choose(make_tpu_strategy(feature), "auto", [(length, 1)]) == ("auto", "attention: plain operations")
    assert choose(tf.distribute.get_strategy(), "auto", [(128, 1)]) == ("auto", None)
    assert not tried


@pytest.mark.slow
@pytest.mark.keras_2
@pytest.mark.usefixtures("graph")
def test_evaluation_exchanges_metrics_alone_and_changes_no_weights():
    run = TinyRun.start(strategy=make_tpu_strategy(), config=WITH_DROPOUT)
    objective = run.state.objective
    with run.strategy.scope():
        sums = MetricSums((*objective.loss_coefficients, *objective.metric_names))
    eval_step = make_eval_function(run.strategy, objective, run.state.models, sums)
    batch = {name: tf.TensorSpec(values.shape, values.dtype) for name, values in make_examples(2).items()}
    nodes = operations(eval_step.get_concrete_function(batch).graph)
    assert_runs_on_every_core(nodes)
    assert_reduced_over_all_cores(nodes, 1, "all metrics in one")
    assert not named(nodes, "AssignVariableOp")
    assert not dropouts(nodes)
    assert len(named(nodes, "AssignAddVariableOp")) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("graph")
@pytest.mark.parametrize("name", [pytest.param("classify", marks=pytest.mark.keras_2), "squad_v2"])
def test_fine_tuning_and_prediction_are_traced(name):
    strategy, task = make_tpu_strategy(), TASKS[name](WITH_DROPOUT)
    with strategy.scope():
        model = task.make_model(dtype="mixed_bfloat16")
        optimizer = make_optimizer("adamw", named_variables(model), SCHEDULE)
    state = TrainState.create(strategy, task, {"model": model}, optimizer)
    spec = with_batch_size(task.batch_spec(16), 2)
    nodes = trace_training(state, {name: np.zeros(of.shape, of.dtype.as_numpy_dtype) for name, of in spec.items()})
    assert_runs_on_every_core(nodes)
    # The gradients, the weights of the losses and the loss, and the metrics; some tasks leave the pooler as it is.
    exchanged = len(named(nodes, "CrossReplicaSum")) - 3
    assert 0.8 * len(named_variables(model)) < exchanged <= len(named_variables(model))
    predict = make_output_step(strategy, lambda batch: task.outputs(batch, model=model))
    nodes = operations(predict.get_concrete_function(spec).graph)
    assert_runs_on_every_core(nodes)
    assert not named(nodes, "CrossReplicaSum"), "replicas need nothing of one another"
    assert not named(nodes, "AssignVariableOp", "AssignAddVariableOp") and not dropouts(nodes)
