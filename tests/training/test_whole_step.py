"""Steps that XLA compiles as one program, for a CPU or a TPU: they compute what TensorFlow's own runtime does."""

import numpy as np
import pytest
import tensorflow as tf
from tiny_training import (
    CONFIG,
    PRETRAINING,
    SCHEDULE,
    SEQUENCE_LENGTH,
    TinyRun,
    assert_same_training,
    loop_settings,
    make_examples,
    unevenly_weighted_examples,
)

from albert_tf.base.errors import InputError
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.modeling.kernels import attention
from albert_tf.modeling.kernels.attention import plain_attention
from albert_tf.modeling.layers import named_variables
from albert_tf.optimization import make_optimizer
from albert_tf.runs.tpu_compiler import ReplicaStrategy
from albert_tf.training.devices import WholeStepStrategy, make_strategy
from albert_tf.training.evaluation import Evaluator, make_output_function
from albert_tf.training.train_step import TrainState, make_replica_step

# What is dropped follows from the seed alone, however it is computed.
DROPOUT = CONFIG.replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)


def whole() -> WholeStepStrategy:
    return make_strategy(jit_compile="true")


@pytest.mark.parametrize(("optimizer", "parts"), [("lamb", 1), pytest.param("adamw", 2, marks=pytest.mark.slow)])
def test_training_equals_that_of_operations_one_by_one(optimizer, parts):
    runs = []
    for strategy in (None, whole()):
        run = TinyRun.start(strategy=strategy, optimizer=optimizer, config=DROPOUT)
        run.take_steps(unevenly_weighted_examples(6), 6, parts)
        runs.append(run)
    assert_same_training(*runs)


@pytest.mark.slow
def test_a_stopped_run_goes_on_bit_for_bit(tmp_path):
    examples = make_examples(20)
    straight = TinyRun.start(strategy=whole(), config=DROPOUT)
    straight.train(tmp_path / "straight", examples, 4, 12, loop_settings())
    settings = loop_settings(iterations_per_loop=1, save_checkpoints_steps=4)
    with pytest.raises(KeyboardInterrupt):
        TinyRun.start(strategy=whole(), config=DROPOUT).train(
            tmp_path / "cut", examples, 4, 12, settings, stop_at_step=7
        )
    resumed = TinyRun.start(strategy=whole(), config=DROPOUT, seed=5)
    resumed.train(tmp_path / "cut", examples, 4, 12, settings)
    np.testing.assert_equal(resumed.weights(), straight.weights())


def of_length(length):
    """Returns a batch whose sequences are cut."""
    return {
        name: values[:, :length] if values.shape[1:] == (SEQUENCE_LENGTH,) else values
        for name, values in make_examples(4).items()
    }


def test_evaluation_and_outputs_take_batches_of_several_lengths():
    found = []
    for strategy in (None, whole()):
        run = TinyRun.start(strategy=strategy)
        evaluator = Evaluator(run.strategy, run.state.objective, run.state.models)
        outputs = make_output_function(run.strategy, lambda batch, encoder=run.model.encoder: encoder(batch))
        datasets = [tf.data.Dataset.from_tensors(of_length(length)) for length in (12, 8)]
        found.append([(evaluator.evaluate(dataset), outputs(dataset)) for dataset in datasets])
    for (losses, states), (compiled_losses, compiled_states) in zip(*found):
        assert compiled_losses == pytest.approx(losses, rel=1e-5)
        for name, values in states.items():
            np.testing.assert_allclose(compiled_states[name], values, atol=1e-5)


def test_kernels_are_kept_where_phases_have_several_lengths(monkeypatch):
    called_with = []

    def attend(projections, visible, head_size):
        called_with.append(projections[-1].shape[1])
        return plain_attention(projections, visible, None, head_size, 0.0)

    monkeypatch.setattr(attention, "cudnn_attention", attend)
    strategy = whole()
    strategy.runs_cudnn_attention = True
    run = TinyRun.start(strategy=strategy, dtype="mixed_bfloat16")
    run.model.encoder._attention = "flash"
    evaluator = Evaluator(run.strategy, run.state.objective, run.state.models)
    for length in (12, 8, 12):
        evaluator.evaluate(tf.data.Dataset.from_tensors(of_length(length)))
    assert called_with == [12, 8], "each length is traced once, and known"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"num_cpu_replicas": 2, "jit_compile": "true"},
            "`jit_compile=true` is for one GPU or one CPU, but there are 2",
        ),
        ({"use_tpu": True, "jit_compile": "false"}, "what runs on a TPU is always compiled"),
    ],
)
def test_what_cannot_be_had_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        make_strategy(**options)


def test_a_cpu_runs_operation_by_operation_unless_told():
    assert not isinstance(make_strategy(), WholeStepStrategy)
    assert not isinstance(make_strategy(jit_compile="false"), WholeStepStrategy)


DROPPING = CONFIG.replace(num_hidden_layers=2, hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2)
BATCH_SIZE, STEPS = 8, 3


def trained(is_for_tpu, optimizer, dtype, remat="none", accumulation=1):
    """Returns the weights by name and the averages of the metrics after a few steps."""
    strategy = ReplicaStrategy(1) if is_for_tpu else make_strategy(num_cpu_replicas=1)
    tf.keras.utils.set_random_seed(0)
    with strategy.scope():
        model = AlbertForPreTraining(DROPPING, attention="plain", remat=remat, dtype=dtype)
        weights = named_variables(model)
        state = TrainState.create(
            strategy, PRETRAINING, {"model": model}, make_optimizer(optimizer, weights, SCHEDULE, ema_decay=0.9)
        )
    replica_step = make_replica_step(state, 5, accumulation)
    step_function = tf.function(
        lambda step, batch: strategy.run(replica_step, args=(batch, step)),
        jit_compile=is_for_tpu or None,
        autograph=False,
    )
    examples = make_examples(BATCH_SIZE * STEPS)
    for step in range(STEPS):
        rows = slice(BATCH_SIZE * step, BATCH_SIZE * (step + 1))
        step_function(tf.constant(step), {name: tf.constant(values[rows]) for name, values in examples.items()})
    return {name: variable.numpy() for name, variable in weights.items()}, state.metric_sums.take()[0]


@pytest.mark.slow
@pytest.mark.parametrize(("optimizer", "remat", "accumulation"), [("adamw", "block", 2), ("muon", "none", 1)])
def test_program_for_a_tpu_trains_as_the_step_here(optimizer, remat, accumulation):
    expected_weights, expected_averages = trained(False, optimizer, "float32", accumulation=accumulation)
    weights, averages = trained(True, optimizer, "float32", remat, accumulation)
    for name, expected in expected_weights.items():
        # A step moves weights by about 0.01.
        assert np.sqrt(np.mean((weights[name] - expected) ** 2)) < 5e-6, name
    assert averages == pytest.approx(expected_averages, rel=1e-4)


@pytest.mark.slow
def test_program_for_a_tpu_trains_alike_in_bfloat16():
    # Products are rounded to 8 bits in another order, and Adam magnifies that where a gradient is next to zero.
    _, expected = trained(False, "lamb", "mixed_bfloat16")
    _, averages = trained(True, "lamb", "mixed_bfloat16", remat="attention")
    ours, theirs = ({name: value for name, value in given.items() if "loss" in name} for given in (averages, expected))
    assert ours == pytest.approx(theirs, rel=5e-3)
    assert averages["gradient_norm"] == pytest.approx(expected["gradient_norm"], rel=2e-2)
