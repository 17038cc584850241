"""run_pretraining.py: which checkpoints are evaluated, kept, and taken in the end."""

import json

import pytest
from runs import read_results

from albert_tf.training.progress import read_metrics
from albert_tf.training.run_folder.guard import checkpoint_identity


@pytest.mark.slow
def test_best_checkpoint_is_kept_and_can_be_taken(pretrain, flag_values, tmp_path):
    run = tmp_path / "run"
    # So high a rate that the model gets worse.
    flag_values.update(num_train_steps=6, save_checkpoints_steps=100, keep_checkpoint_max=1, learning_rate=3.0)
    result = pretrain(eval_every_steps=2)
    assert (result.code, result.errors) == (0, "")
    held_out = {row["step"]: row for row in read_metrics(str(run)) if row["split"] == "held_out"}
    assert list(held_out) == [0, 2, 4, 6]
    best_step = min((2, 4, 6), key=lambda step: held_out[step]["loss"])
    assert best_step != 6, "the test needs a run that gets worse"
    assert json.loads((run / "best_checkpoint.json").read_text()) == {
        "checkpoint": f"model.ckpt-{best_step}",
        "step": best_step,
        "metric": "loss",
        "value": held_out[best_step]["loss"],
    }
    assert sorted(path.stem for path in run.glob("*.index")) == [f"model.ckpt-{best_step}", "model.ckpt-6"]
    best = {name: value for name, value in held_out[best_step].items() if name not in ("step", "split")}
    # Without a word as well: what a folder stands for is its best checkpoint.
    assert read_results(run) == pytest.approx({"global_step": best_step, **best})
    assert checkpoint_identity(str(run))["path"] == f"{run}/model.ckpt-{best_step}"
    for chosen, step in (("best", best_step), ("latest", 6), (run / f"model.ckpt-{best_step}", best_step)):
        evaluated = pretrain(do_train=False, eval_checkpoint=chosen)
        assert evaluated.code == 0 and f"restored {run}/model.ckpt-{step}\n" in evaluated.output
        assert read_results(run)["global_step"] == step
        if step == best_step:
            assert read_results(run) == pytest.approx({"global_step": step, **best})

    # After training as well, here after a run that finds nothing left to train.
    assert pretrain(eval_every_steps=2, eval_checkpoint="latest").code == 0
    assert read_results(run)["global_step"] == 6


def test_evaluation_alone_asks_nothing_of_the_warm_up(pretrain, checkpoint):
    # Fewer steps than --num_warmup_steps has by default; no step is trained.
    result = pretrain(do_train=False, init_checkpoint=checkpoint, num_train_steps=4, num_warmup_steps=None)
    assert (result.code, result.errors) == (0, "")
