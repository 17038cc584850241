"""A run that was killed, stopped or damaged ends as one that went through: the same bits, the same metrics."""

import re
import shutil
import signal
import subprocess

import pytest
from runs import assert_same_run, assert_same_variables


def kill_at_line(process, text):
    for line in process.stdout:
        if line.startswith(text):
            process.kill()


@pytest.mark.slow
def test_killed_run_ends_with_the_same_bits(
    make_process, pretrain, flag_values, tiny_config, write_config, without_autograph, tmp_path
):
    """On two replicas, with all that a checkpoint has to keep: moments, averaged weights, the place in the data."""
    config = tiny_config.replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
    flag_values.update(
        albert_config_file=write_config(config),
        num_cpu_replicas=2,
        train_batch_size=8,
        optimizer="adamw",
        ema_decay=0.9,
        num_train_steps=40,
        save_checkpoints_steps=3,
        eval_every_steps=10,
        iterations_per_loop=4,
    )
    run = tmp_path / "run"
    with make_process("run_pretraining.py", without_autograph.environment, **flag_values).start() as process:
        kill_at_line(process, "held-out at step 20")
    assert process.returncode == -signal.SIGKILL
    assert not without_autograph.converted()
    steps = [int(path.stem.split("-")[1]) for path in run.glob("*.index")]
    assert 20 <= max(steps) < 40
    # As a kill in the middle of saving leaves it: until a checkpoint is whole, its files have temporary names.
    leftover = run / f"model.ckpt-{max(steps) + 1}_temp" / "part-00000-of-00001.data-00000-of-00001"
    leftover.parent.mkdir()
    leftover.write_bytes(b"half")

    resumed = pretrain()
    assert resumed.code == 0 and f"\nrestored {run}/model.ckpt-{max(steps)}\n" in resumed.output
    assert pretrain(output_dir=tmp_path / "uninterrupted").code == 0
    assert_same_run(run, tmp_path / "uninterrupted", 40)
    assert not list(run.glob("*_temp*"))


@pytest.mark.slow
def test_sigterm_stops_in_the_middle_of_a_loop(stop, pretrain, flag_values, tmp_path):
    flag_values.update(num_train_steps=400, save_checkpoints_steps=10000, iterations_per_loop=200, do_eval=False)
    printed = stop("run_pretraining.py", "step 200/", **flag_values)
    step = int(re.search(r"^stopped by SIGTERM; saved at step ([\d,]+); ", printed, re.MULTILINE)[1].replace(",", ""))
    assert 200 < step < 400, "it stopped between two loops"
    assert [path.name for path in (tmp_path / "run").glob("*.index")] == [f"model.ckpt-{step}.index"]

    resumed = pretrain()
    assert resumed.code == 0 and f"restored {tmp_path}/run/model.ckpt-{step}\n" in resumed.output
    assert pretrain(output_dir=tmp_path / "uninterrupted").code == 0
    assert_same_run(tmp_path / "run", tmp_path / "uninterrupted", 400)


@pytest.mark.slow
def test_truncated_checkpoint_is_left_out_with_a_warning(pretrain, pretrained, tmp_path):
    run = shutil.copytree(pretrained, tmp_path / "run")
    data = run / "model.ckpt-4.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:100_000])
    result = pretrain()
    assert result.code == 0
    assert result.errors.startswith(f"warning: {run}/model.ckpt-4 is damaged: ") and result.errors.count("\n") == 1
    assert f"restored {run}/model.ckpt-2\n" in result.output
    assert_same_run(run, pretrained, 4)


@pytest.mark.slow
def test_run_goes_on_after_the_disk_was_full(pretrain, pretrained, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    one_checkpoint = sum(path.stat().st_size for path in pretrained.glob("model.ckpt-2.*"))
    size = one_checkpoint * 7 // 4 // 1024
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", str(run)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("needs the right to mount a small tmpfs")
    try:
        full = pretrain()
        assert full.code == 1
        # Which of the two writes is refused depends on what the thread that saves has come to.
        write = rf"(can't save {run}/model\.ckpt-4: |the disk of --output_dir is full \()"
        assert re.fullmatch(rf"error: {write}.*[Nn]o space left.*{run}/model\.ckpt-2 is intact.*\n", full.errors)
        assert_same_variables(run / "model.ckpt-2", pretrained / "model.ckpt-2")
        subprocess.run(["mount", "-o", "remount,size=64m", str(run)], check=True)
        result = pretrain()
        assert result.code == 0 and f"restored {run}/model.ckpt-2\n" in result.output
        assert_same_run(run, pretrained, 4)
    finally:
        subprocess.run(["umount", "-l", str(run)], check=True)
