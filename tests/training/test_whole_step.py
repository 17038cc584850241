"""Steps that XLA compiles as one program, on a CPU: they compute what TensorFlow's own runtime does."""

import numpy as np
import pytest
import tensorflow as tf
from tiny_training import (
    CONFIG,
    SEQUENCE_LENGTH,
    TinyRun,
    assert_same_training,
    loop_settings,
    make_examples,
    unevenly_weighted_examples,
)

from albert_tf.base.errors import InputError
from albert_tf.modeling.kernels import attention
from albert_tf.modeling.kernels.attention import plain_attention
from albert_tf.training.devices import WholeStepStrategy, make_strategy
from albert_tf.training.evaluation import Evaluator, make_output_function

# What is dropped follows from the seed alone, however it is computed.
DROPOUT = CONFIG.replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)


def whole() -> WholeStepStrategy:
    return make_strategy(jit_compile="true")


@pytest.mark.parametrize("optimizer", ["lamb", pytest.param("muon", marks=pytest.mark.slow)])
def test_training_equals_that_of_operations_one_by_one(optimizer):
    runs = []
    for strategy in (None, whole()):
        run = TinyRun.start(strategy=strategy, optimizer=optimizer, config=DROPOUT)
        run.take_steps(unevenly_weighted_examples(6), 6)
        runs.append(run)
    assert_same_training(*runs)


@pytest.mark.slow
def test_accumulated_gradients_are_the_same():
    runs = []
    for strategy in (None, whole()):
        run = TinyRun.start(strategy=strategy, config=DROPOUT)
        run.take_steps(make_examples(8), 4, gradient_accumulation_steps=2)
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
