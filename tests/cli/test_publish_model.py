"""publish_model.py, and what starts from a published model."""

import pytest
from runs import read_results


@pytest.fixture
def published(run_script, checkpoint, tmp_path):
    """The folder of a published model."""
    result = run_script("publish_model.py", init_checkpoint=checkpoint, output_dir=tmp_path / "model")
    assert (result.code, result.errors) == (0, "")
    assert result.output.startswith(f"wrote {tmp_path}/model: 0.")
    return tmp_path / "model"


def test_folder_that_holds_something_is_left_alone(run_script, checkpoint, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    result = run_script("publish_model.py", init_checkpoint=checkpoint, output_dir=tmp_path)
    assert result.code == 1
    assert result.errors == f"error: --output_dir={tmp_path} holds something already; choose another folder\n"


@pytest.mark.slow
def test_pre_training_goes_on_from_a_published_model(pretrain, published, tmp_path):
    # Config and tokenizer are found beside it.
    result = pretrain(init_checkpoint=published, albert_config_file=None)
    assert (result.code, result.errors) == (0, "")
    assert "not in it, and so random: none; in it, but not in this model: none" in result.output
    assert read_results(tmp_path / "run")["global_step"] in (2, 4)


@pytest.mark.slow
def test_classifier_starts_from_a_published_model_without_any_setting(run_script, published, reviews, tmp_path):
    result = run_script(
        "run_classifier.py",
        task_name="tsv",
        data_dir=reviews,
        init_checkpoint=published,
        output_dir=tmp_path / "classifier",
        do_train=True,
        do_eval=True,
    )
    assert (result.code, result.errors) == (0, "")
    assert "not in it, and so random: head; in it" in result.output
    assert "by the lengths of the training texts\n" in result.output
    # On its own, the folder knows what was chosen.
    again = run_script("run_classifier.py", output_dir=tmp_path / "classifier", do_train=True, do_eval=True)
    assert (again.code, again.errors) == (0, "")
