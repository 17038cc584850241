"""run_pretraining.py on a folder that holds a run, whole, killed or damaged: what it takes from there and refuses."""

import json
import re
import shutil
import signal

import pytest
from runs import assert_same_run, read_results


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
    # In batches of another size the losses add up in another order, and differ in the last bit.
    result = pretrain_again(do_eval=True, eval_batch_size=4).succeeded()
    assert "\ncontinuing from step 2: steps 2 to 4: batch 4, " in result.output
    assert_same_run(finished, pretrained, 4)


@pytest.fixture(scope="module")
def other_shards(build_shards):
    """A folder of shards of the same names, drawn otherwise."""
    return build_shards(32, 5, random_seed=9)


@pytest.mark.slow
def test_flag_and_shards_that_contradict_the_run_are_refused(
    pretrain, finished, shards, other_shards, assert_refused, tmp_path
):
    message = assert_refused(lambda: pretrain(num_train_steps=9), finished)
    assert message.startswith(f"--output_dir={finished} holds another run: --num_train_steps is 9, and was 4; ")
    message = assert_refused(lambda: pretrain(input_file=other_shards / "train.tfrecord"), finished)
    assert "the content of its training data is not what it was" in message
    moved = shutil.copytree(shards, tmp_path / "moved")
    assert "nothing to train" in pretrain(input_file=moved / "train.tfrecord", do_eval=False).finished().output


@pytest.mark.slow
def test_results_of_other_data_go_elsewhere(pretrain_again, other_shards, finished, contents):
    before = contents(finished)
    names = set()
    held_out = {"held_out_file": other_shards / "held_out.tfrecord", "eval_checkpoint": "best"}
    for flag_values in (held_out, {"max_eval_steps": 1, "eval_batch_size": 4}):
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


def kill_at_line(process, text):
    for line in process.stdout:
        if line.startswith(text):
            process.kill()


@pytest.mark.slow
def test_killed_run_ends_with_the_same_bits(
    start_process, pretrain, flag_values, tiny_config, write_config, without_autograph, tmp_path
):
    """On two replicas, with all that a checkpoint has to keep: moments, averaged weights, the place in the data."""
    config = tiny_config.replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
    flag_values.update(
        albert_config_file=write_config(config),
        num_cpu_replicas=2,
        train_batch_size=8,
        optimizer="adamw",
        ema_decay=0.9,
        num_train_steps=30,
        save_checkpoints_steps=3,
        eval_every_steps=10,
        iterations_per_loop=4,
    )
    run = tmp_path / "run"
    with start_process("run_pretraining.py", without_autograph.environment, **flag_values) as process:
        kill_at_line(process, "held-out at step 10")
    assert process.returncode == -signal.SIGKILL
    assert not without_autograph.converted()
    steps = [int(path.stem.split("-")[1]) for path in run.glob("*.index")]
    assert 10 <= max(steps) < 30
    # As a kill in the middle of saving leaves it: until a checkpoint is whole, its files have temporary names.
    leftover = run / f"model.ckpt-{max(steps) + 1}_temp" / "part-00000-of-00001.data-00000-of-00001"
    leftover.parent.mkdir()
    leftover.write_bytes(b"half")

    resumed = pretrain()
    assert resumed.code == 0 and f"\nrestored {run}/model.ckpt-{max(steps)}\n" in resumed.output
    assert pretrain(output_dir=tmp_path / "uninterrupted").code == 0
    assert_same_run(run, tmp_path / "uninterrupted", 30)
    assert not list(run.glob("*_temp*"))
