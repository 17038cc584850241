"""run_pretraining.py on a folder that holds a run, whole, killed or damaged: what it takes from there and refuses."""

import json
import re
import shutil
import signal
import subprocess

import pytest
from runs import assert_same_run, assert_same_variables, metrics_without_rates, read_results

from albert_tf.base.files import write_json
from albert_tf.training.run_folder import held_folder


@pytest.fixture
def finished(pretrained, tmp_path):
    """A copy of the run, to go on with."""
    return shutil.copytree(pretrained, tmp_path / "run")


@pytest.fixture
def pretrain_again(run_script, finished):
    """Runs the script on the finished folder with no flags but those that are given."""

    def run(**flag_values):
        return run_script("run_pretraining.py", output_dir=finished, **flag_values)

    return run


@pytest.mark.slow
def test_run_is_gone_on_with_by_its_folder_alone(pretrain_again, finished, pretrained):
    for path in finished.glob("model.ckpt-4.*"):
        path.unlink()
    result = pretrain_again(do_eval=True).succeeded()
    assert "\ncontinuing from step 2: steps 2 to 4: batch 4, " in result.output
    assert_same_run(finished, pretrained, 4)


@pytest.mark.slow
def test_finished_run_says_that_there_is_nothing_to_train(pretrain, finished, contents):
    before = contents(finished)
    result = pretrain(save_checkpoints_steps=3).succeeded()
    assert "\nalready trained to step 4 of 4; nothing to train\n" in result.output
    assert "epochs" not in result.output and "trained 0 steps" not in result.output
    after = contents(finished)
    assert all(after[name] == before[name] for name in before if "ckpt" in name or name == "eval_results.json")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"num_train_steps": 3}, "--num_train_steps is 3, and was 4; "),
        ({"num_train_steps": 9}, "--num_train_steps is 9, and was 4; "),
        ({"num_warmup_steps": 2}, "--num_warmup_steps is 2, and was 1; "),
        ({"train_batch_size": 8}, "--train_batch_size is 8, and was 4; "),
        ({"optimizer": "adamw", "do_train": False}, "--optimizer is adamw, and was lamb; "),
    ],
)
def test_flag_that_contradicts_the_run_is_refused(pretrain, finished, assert_refused, changes, expected):
    message = assert_refused(lambda: pretrain(**changes), finished)
    assert message.startswith(f"--output_dir={finished} holds another run: {expected}")


@pytest.mark.slow
@pytest.mark.parametrize("has_manifest", [True, False])
def test_shards_of_another_corpus_under_the_same_names_are_refused(
    pretrain, shards, build_shards, assert_refused, tmp_path, without_training, has_manifest
):
    folders = shards, build_shards(32, 5, random_seed=9)
    mine, others = (shutil.copytree(folder, tmp_path / folder.name) for folder in folders)
    lengths = {} if has_manifest else {"max_seq_length": 32, "max_predictions_per_seq": 5}
    for folder in (mine, others):
        if not has_manifest:
            (folder / "manifest.json").unlink()
    assert pretrain(input_file=mine / "train.tfrecord", do_eval=False, **lengths).code == 0
    message = assert_refused(
        lambda: pretrain(input_file=others / "train.tfrecord", do_eval=False, **lengths), tmp_path / "run"
    )
    assert "the content of its training data is not what it was" in message
    mine.rename(tmp_path / "moved")
    assert pretrain(input_file=tmp_path / "moved" / "train.tfrecord", do_eval=False, **lengths).code == 0


@pytest.mark.slow
def test_results_of_other_data_go_elsewhere(pretrain_again, build_shards, finished, contents):
    before = contents(finished)
    others = build_shards(32, 5, random_seed=9)
    names = set()
    for flag_values in ({"held_out_file": others / "held_out.tfrecord"}, {"max_eval_steps": 1, "eval_batch_size": 4}):
        result = pretrain_again(do_train=False, do_eval=True, **flag_values).succeeded()
        after = contents(finished)
        assert {name: after[name] for name in before} == before, "nothing of the run has changed"
        (name,) = after.keys() - before.keys() - names
        assert re.fullmatch(r"eval_results-held_out-[0-9a-f]{8}\.json", name)
        assert f"wrote the results to {finished}/{name}; eval_results.json is of other data than " in result.output
        names.add(name)
        assert json.loads(after[name])["loss"] != read_results(finished)["loss"]


def test_run_is_not_measured_with_other_data_while_it_trains(pretrain, finished, assert_refused):
    message = assert_refused(lambda: pretrain(max_eval_steps=1), finished)
    assert "holds a run that is evaluated on held_out.tfrecord with SHA-256 " in message


@pytest.mark.slow
def test_run_whose_folder_was_taken_over_writes_no_more(pretrain, tmp_path, monkeypatch):
    def take_over(owner):
        write_json(owner._path, {"host": "elsewhere", "process": 7, "token": 1})
        return check(owner)

    check = held_folder._Owner.check
    monkeypatch.setattr(held_folder._Owner, "check", take_over)
    monkeypatch.setattr(held_folder, "_SECONDS_BETWEEN_LOOKS", 0.0)
    result = pretrain(do_eval=False)
    assert result.code == 1
    assert result.errors.startswith(f"error: {tmp_path}/run was taken over by process 7 on elsewhere; ")
    assert not list((tmp_path / "run").glob("model.ckpt*"))
    assert not (tmp_path / "run" / "metrics.jsonl").exists()


@pytest.mark.slow
def test_best_checkpoint_is_chosen_from_the_runs_own_data(pretrain_again, build_shards, finished):
    before = metrics_without_rates(finished), (finished / "best_checkpoint.json").read_bytes()
    held_out = build_shards(32, 5, random_seed=9) / "held_out.tfrecord"
    assert pretrain_again(do_train=False, do_eval=True, held_out_file=held_out, eval_checkpoint="best").code == 0
    assert (metrics_without_rates(finished), (finished / "best_checkpoint.json").read_bytes()) == before


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
    result = pretrain().finished()
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
