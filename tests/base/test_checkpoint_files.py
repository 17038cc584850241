"""The files by which a folder of checkpoints describes itself."""

import json

import pytest

from albert_tf.base.checkpoint_files import describe_unfinished


@pytest.fixture
def run_folder(tmp_path):
    """The folder of a run of 5,000 steps, saved at 900 and 1,200."""
    (tmp_path / "run_settings.json").write_text(json.dumps({"num_train_steps": 5000}))
    for step in (900, 1200):
        (tmp_path / f"model.ckpt-{step}.index").touch()
    return tmp_path


def test_run_that_was_stopped_says_where_it_stands(run_folder):
    sentence = f"the training in {run_folder} has reached step 1,200 of 5,000; repeat its command to finish it"
    assert describe_unfinished(str(run_folder)) == sentence


def test_run_of_all_steps_or_with_results_is_finished(run_folder):
    (run_folder / "eval_results.json").write_text("{}")
    assert describe_unfinished(str(run_folder)) is None, "it may have ended early"
    (run_folder / "eval_results.json").unlink()
    (run_folder / "model.ckpt-5000.index").touch()
    assert describe_unfinished(str(run_folder)) is None


def test_nothing_is_said_of_a_checkpoint_that_is_named_and_of_other_folders(run_folder):
    assert describe_unfinished(str(run_folder / "model.ckpt-900")) is None
    (run_folder / "run_settings.json").write_text(json.dumps({"objective": "Classification"}))
    assert describe_unfinished(str(run_folder)) is None, "a published model"
    (run_folder / "run_settings.json").unlink()
    assert describe_unfinished(str(run_folder)) is None
    assert describe_unfinished(str(run_folder / "absent")) is None
