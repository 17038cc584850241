"""run_pretraining.py with longer sequences in the last steps, in one command or in a second one."""

import json
import re
import shutil

import pytest
from runs import assert_same_run, read_results

from albert_tf.tokenization import KoreanWordPieceTokenizer


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
    result = pretrain_in_phases(output_dir=whole, save_checkpoints_steps=1).succeeded()
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
