"""What a run says of itself before it starts."""

import tensorflow as tf
from linear_training import start_linear
from tiny_training import TinyRun

from albert_tf.modeling.layers import named_variables
from albert_tf.optimization import AdamW, LearningRateSchedule
from albert_tf.training.progress import describe_run
from albert_tf.training.settings import Phase
from albert_tf.training.train_state import TrainState


def phase(end_step, examples=64, length=128, parts=1, num_examples=None):
    spec = {"input_ids": tf.TensorSpec([examples, length], tf.int32)}
    return Phase(end_step, spec, None, gradient_accumulation_steps=parts, num_examples=num_examples)


def test_run_is_described_by_its_sizes():
    run = TinyRun.start(num_replicas=2)
    parameters = sum(values.size for values in run.weights().values())
    num_bytes = 4 * 3 * parameters + 4 * 2 * 18 + 3 * 8  # weights and moments; sums of metrics; counters
    assert describe_run(run.state, [phase(1000, num_examples=6400)]).splitlines() == [
        f"model: {parameters:,} parameters; with the optimizer {num_bytes / 1e6:,.1f} MB on each of 2 replicas",
        "steps 0 to 1,000: batch 64 = 2 x 32, sequences of 128 pieces, 10.00 epochs over 6,400 examples",
    ]
    assert len(run.state.metric_sums.names) == 18


def test_each_phase_has_its_line():
    run = start_linear(num_replicas=2)
    phases = [phase(9000, 4096, 128), phase(10000, 1024, 512, parts=4, num_examples=2048)]
    assert describe_run(run.state, phases).splitlines()[1:] == [
        "steps 0 to 9,000: batch 4,096 = 2 x 2,048, sequences of 128 pieces",
        "steps 9,000 to 10,000: batch 1,024 = 2 x 512 in 4 parts of 128, sequences of 512 pieces, "
        "500.00 epochs over 2,048 examples",
        "warning: 500 passes over 2,048 examples, which the model will know by heart; train for fewer steps, or on "
        "more data",
    ]


def test_resumed_run_tells_what_is_left():
    run = start_linear()
    phases = [phase(1000, num_examples=6400), phase(2000, length=512)]
    for step, expected in (
        (
            400,
            [
                "continuing from step 400: steps 400 to 1,000: batch 64, sequences of 128 pieces, 6.00 epochs "
                "over 6,400 examples",
                "steps 1,000 to 2,000: batch 64, sequences of 512 pieces",
            ],
        ),
        (1000, ["continuing from step 1,000: steps 1,000 to 2,000: batch 64, sequences of 512 pieces"]),
        (2000, ["already trained to step 2,000 of 2,000; nothing to train"]),
    ):
        run.global_step.assign(step)
        assert describe_run(run.state, phases).splitlines()[1:] == expected


def test_frozen_variables_are_told():
    run = start_linear()
    optimizer = AdamW({"bias": named_variables(run.model)["bias"]}, LearningRateSchedule(0.1, 10))
    state = TrainState.create(run.strategy, run.state.objective, {"model": run.model}, optimizer)
    assert describe_run(state, [phase(10)]).startswith("model: 4 parameters, of which 1 are trained; with ")


def test_averages_take_memory_too():
    sizes = [float(describe_run(TinyRun.start(ema_decay=decay).state, [phase(10)]).split()[6]) for decay in (0.0, 0.9)]
    assert sizes[1] > sizes[0]
