"""run_pretraining.py: what the flags of the loop do, which checkpoints are kept and taken, and longer sequences."""

import json
import re
import shutil

import numpy as np
import pytest
import tensorflow as tf
from runs import assert_same_run, read_results, variables_in

from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.training.progress import read_metrics
from albert_tf.training.run_folder.guard import checkpoint_identity


@pytest.mark.slow
def test_frozen_variables_keep_the_bits_of_the_checkpoint(pretrain, checkpoint, tmp_path):
    result = pretrain(init_checkpoint=checkpoint, freeze="encoder/embeddings,pooler", do_eval=False).succeeded()
    assert re.search(r"^model: [\d,]+ parameters, of which [\d,]+ are trained; ", result.output, re.MULTILINE)
    before, after = variables_in(checkpoint), variables_in(tmp_path / "run" / "model.ckpt-4")
    names = [name for name in before if name.startswith("model/")]
    unchanged = {name for name in names if np.array_equal(before[name], after[name])}
    assert unchanged == {name for name in names if "encoder/embeddings" in name or "pooler" in name}
    assert not any("encoder/embeddings" in name or "pooler" in name for name in after if "moments" in name)


def test_evaluation_alone_asks_nothing_of_the_warm_up(pretrain, checkpoint):
    # Fewer steps than --num_warmup_steps has by default; no step is trained.
    pretrain(do_train=False, init_checkpoint=checkpoint, num_train_steps=4, num_warmup_steps=None).succeeded()


@pytest.mark.slow
def test_learning_rate_is_scaled_to_the_batch(pretrain, without_training):
    assert pretrain(train_batch_size=512, scale_learning_rate="sqrt", do_eval=False).code == 0
    (run,) = without_training
    assert float(run.optimizer.schedule(tf.constant(0))) == pytest.approx(0.00176 * np.sqrt(512 / 4096), rel=1e-4)


@pytest.mark.slow
def test_profile_and_share_of_peak(pretrain, tmp_path):
    result = pretrain(profile_steps="2,3", peak_tflops=0.001, do_eval=False).succeeded()
    assert re.search(r"^step 4/4 .* [\d.]+% of peak ETA ", result.output, re.MULTILINE)
    assert all(row["model_flop_utilisation"] > 0 for row in read_metrics(str(tmp_path / "run")))
    profiles = [path for path in (tmp_path / "run" / "logs").rglob("plugins/profile/*/*") if path.stat().st_size]
    assert profiles


@pytest.mark.slow
def test_whole_run_on_another_file_system(pretrain, shards, config_file, tmp_path):
    """TensorFlow's file system in memory stands for Cloud Storage."""
    folder = f"ram://{tmp_path.name}"
    for path in shards.iterdir():
        if path.is_file():
            tf.io.gfile.makedirs(f"{folder}/data")
            tf.io.gfile.copy(str(path), f"{folder}/data/{path.name}", overwrite=True)
    tf.io.gfile.copy(str(config_file), f"{folder}/albert_config.json", overwrite=True)
    flag_values = {
        "input_file": f"{folder}/data/train*.tfrecord",
        "albert_config_file": f"{folder}/albert_config.json",
        "output_dir": f"{folder}/run",
        "save_checkpoints_steps": 1,
    }
    pretrain(**flag_values).succeeded()
    for path in tf.io.gfile.glob(f"{folder}/run/model.ckpt-[34].*"):
        tf.io.gfile.remove(path)
    resumed = pretrain(**flag_values, keep_checkpoint_max=2).succeeded()
    assert f"restored {folder}/run/model.ckpt-2\n" in resumed.output
    names = set(tf.io.gfile.listdir(f"{folder}/run"))
    assert {"model.ckpt-3.index", "model.ckpt-4.index", "metrics.jsonl", "vocab.txt", "eval_results.json"} <= names
    assert tf.train.latest_checkpoint(f"{folder}/run") == f"{folder}/run/model.ckpt-4"

    data = f"{folder}/run/model.ckpt-4.data-00000-of-00001"
    with tf.io.gfile.GFile(data, "rb") as file:
        content = file.read()
    tf.io.gfile.remove(data)
    with tf.io.gfile.GFile(data, "wb") as file:
        file.write(content[:1000])
    damaged = pretrain(**flag_values, do_train=False)
    assert damaged.code == 0 and f"restored {folder}/run/model.ckpt-3\n" in damaged.output
    assert damaged.errors.startswith(f"warning: {folder}/run/model.ckpt-4 is damaged: ")


def test_an_included_config_is_found_from_every_folder(pretrain, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = pretrain(albert_config_file="configs/albert_demo.json", input_file="no.tfrecord")
    assert result.code == 1 and "no.tfrecord" in result.errors and "albert_demo" not in result.errors


@pytest.mark.slow
def test_best_checkpoint_is_kept_and_can_be_taken(pretrain, flag_values, tmp_path):
    run = tmp_path / "run"
    # So high a rate that the model gets worse.
    flag_values.update(num_train_steps=6, save_checkpoints_steps=100, keep_checkpoint_max=1, learning_rate=3.0)
    pretrain(eval_every_steps=2).succeeded()
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
    evaluated = pretrain(do_train=False, eval_checkpoint=run / f"model.ckpt-{best_step}").succeeded()
    assert f"restored {run}/model.ckpt-{best_step}\n" in evaluated.output
    assert read_results(run) == pytest.approx({"global_step": best_step, **best})
    # After training as well, here after a run that finds nothing left to train.
    assert pretrain(eval_every_steps=2, eval_checkpoint="latest").code == 0
    assert read_results(run)["global_step"] == 6


@pytest.fixture(scope="module")
def longer_shards(build_shards):
    """A folder of shards with sequences of 64 pieces."""
    return build_shards(64, 10)


@pytest.fixture
def pretrain_in_phases(pretrain, longer_shards):
    """Runs four steps, the last two of them on the longer shards; flags may be replaced."""

    def run(**changes):
        return pretrain(
            **{
                "phase2_input_file": longer_shards / "train.tfrecord",
                "phase2_start_step": 2,
                "phase2_gradient_accumulation_steps": 2,
                **changes,
            }
        )

    return run


@pytest.mark.slow
def test_second_phase_is_longer_and_can_be_resumed(pretrain_in_phases, run_script, longer_shards, tmp_path):
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    held_out = longer_shards / "held_out.tfrecord"
    result = pretrain_in_phases(output_dir=whole, save_checkpoints_steps=1, phase2_held_out_file=held_out).succeeded()
    assert re.search(
        r"^steps 0 to 2: batch 4, sequences of 32 pieces, .*\n"
        r"steps 2 to 4: batch 4 in 2 parts of 2, sequences of 64 pieces, ",
        result.output,
        re.MULTILINE,
    )
    assert read_results(whole)["global_step"] == 4

    # What a process leaves that is killed before it saves step 4: its reports are ahead of its checkpoints.
    shutil.copytree(whole, resumed)
    for path in resumed.glob("model.ckpt-4.*"):
        path.unlink()
    lines = (resumed / "metrics.jsonl").read_text().splitlines(keepends=True)
    (resumed / "metrics.jsonl").write_text("".join(lines[:-1]) + lines[-1][:20])
    result = pretrain_in_phases(output_dir=resumed).finished()
    assert (
        f"restored {resumed}/model.ckpt-3\n" in result.output
        and "continuing from step 3: steps 3 to 4: " in result.output
    )
    assert_same_run(resumed, whole, 4)
    assert read_results(resumed) == read_results(whole)

    # The evaluation in the end is that of the second phase's held-out documents.
    assert run_script("run_pretraining.py", output_dir=whole, do_train=False, do_eval=True).code == 0
    assert read_results(whole) == pytest.approx(read_results(resumed))
    result = run_script(
        "run_pretraining.py", output_dir=whole, do_train=False, do_eval=True, held_out_file=longer_shards / "x"
    )
    assert result.errors.startswith("error: --held_out_file: the run is evaluated on the data of its last steps; ")


@pytest.mark.slow
def test_second_phase_takes_a_tenth_of_the_steps_by_default(pretrain_in_phases, without_training):
    assert pretrain_in_phases(phase2_start_step=None, num_train_steps=20, do_eval=False).code == 0
    (run,) = without_training
    assert [phase.end_step for phase in run.phases] == [18, 20]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"phase2_start_step": 4}, "--phase2_start_step=4 must be less than --num_train_steps=4"),
        ({"phase2_input_file": "nowhere"}, "--phase2_input_file: no file matches nowhere"),
    ],
)
def test_second_phase_that_can_not_be_is_refused(pretrain_in_phases, assert_refused, tmp_path, changes, message):
    assert assert_refused(lambda: pretrain_in_phases(**changes), tmp_path / "run") == message


def test_second_phase_of_another_tokenizer_is_refused(
    pretrain_in_phases, longer_shards, sample_tokenizer, assert_refused, tmp_path
):
    other = shutil.copytree(longer_shards, tmp_path / "other")
    tokenizer = KoreanWordPieceTokenizer(sample_tokenizer.vocabulary, lower_case=False)
    tokenizer.save(str(other))
    manifest = json.loads((other / "manifest.json").read_text())
    manifest["tokenizer"]["identity"] = tokenizer.identity
    (other / "manifest.json").write_text(json.dumps(manifest))
    message = assert_refused(lambda: pretrain_in_phases(phase2_input_file=other / "train.tfrecord"), tmp_path / "run")
    assert message == "--phase2_input_file: its shards were made with a different tokenizer from those of --input_file"


@pytest.mark.slow
def test_second_command_goes_on_with_longer_sequences(pretrain, checkpoint, longer_shards, without_training):
    result = pretrain(
        input_file=longer_shards / "train.tfrecord", init_checkpoint=checkpoint, num_train_steps=2, do_eval=False
    ).succeeded()
    assert re.search(r"^initial checkpoint: loaded \d+ variables$", result.output, re.MULTILINE)
    assert without_training[0].first_batch["input_ids"].shape == (4, 64)
