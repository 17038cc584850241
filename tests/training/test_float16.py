"""Training in float16 with a scaled loss: it learns as float32 does, and resumes bit for bit, its scale included."""

import numpy as np
import pytest
from tiny_training import CONFIG, TinyRun, loop_settings, make_examples

from albert_tf.training.devices import make_strategy

pytestmark = pytest.mark.slow


def start(dtype="mixed_float16", strategy=None, **options):
    compute_dtype = dtype.removeprefix("mixed_")
    return TinyRun.start(
        strategy=strategy, optimizer="adamw", dtype=dtype, compute_dtype=compute_dtype, config=CONFIG, **options
    )


@pytest.mark.parametrize("num_replicas", [1, 2])
def test_losses_are_those_of_float32(num_replicas):
    found = []
    for dtype in ("float32", "mixed_float16"):
        run = start(dtype, make_strategy(num_cpu_replicas=num_replicas))
        found.append(run.take_steps(make_examples(48), 8))
    assert run.optimizer.loss_scale.overflows.numpy() == 0
    for name in ("masked_lm_loss", "sentence_order_loss"):
        assert found[1][name] == pytest.approx(found[0][name], rel=2e-3)


def test_a_stopped_run_goes_on_with_its_scale(tmp_path):
    examples, settings = make_examples(20), loop_settings(iterations_per_loop=1, save_checkpoints_steps=4)
    runs = []
    for stop_at_step in (None, 6):
        folder = tmp_path / str(stop_at_step)
        run = start()
        run.optimizer.loss_scale.scale.assign(2.0**40)  # so that the first steps overflow
        if stop_at_step:
            with pytest.raises(KeyboardInterrupt):
                run.train(folder, examples, 4, 12, settings, stop_at_step)
            run = start(seed=3)
        run.train(folder, examples, 4, 12, settings)
        runs.append(run)
    straight, resumed = (run.values() for run in runs)
    assert straight["loss_scale_overflows"] > 0
    assert straight["skipped_steps"] == 0
    np.testing.assert_equal(resumed, straight)
