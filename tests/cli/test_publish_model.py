"""publish_model.py, and what starts from a published model."""

import json

import pytest
from runs import read_results
from tiny_config import tiny_config

import albert_tf
from albert_tf.checkpoint_files import write_checkpoint
from albert_tf.cli import publish_model
from albert_tf.interchange import publishing
from albert_tf.modeling.layers import named_variables
from albert_tf.objectives import make_objective
from albert_tf.training.run_folder.guard import SETTINGS_FILE


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
    # Published, it is asked as before.
    result = run_script(
        "publish_model.py",
        init_checkpoint=tmp_path / "classifier",
        output_dir=tmp_path / "given",
        weights_dtype="float32",
    )
    assert (result.code, result.errors) == (0, "")
    texts = ["정말 좋다", "나쁘다"]
    assert albert_tf.load(tmp_path / "given").predict(texts) == albert_tf.load(tmp_path / "classifier").predict(texts)
    # On its own, the folder knows what was chosen.
    again = run_script("run_classifier.py", output_dir=tmp_path / "classifier", do_train=True, do_eval=True)
    assert (again.code, again.errors) == (0, "")


def test_published_model_is_asked_for_what_its_run_has_learnt(sample_tokenizer, tmp_path):
    for learnt, generates in (
        ({"objective": "roberta", "train_batch_size": 8}, False),
        ({"objective": "causal"}, True),
    ):
        run = tmp_path / learnt["objective"]
        config = tiny_config(len(sample_tokenizer), is_causal=generates)
        model = make_objective(learnt["objective"], config).make_model()
        values = {f"model/{name}": variable.numpy() for name, variable in named_variables(model).items()}
        write_checkpoint(str(run / "model.ckpt-1"), values)
        (run / "albert_config.json").write_text(json.dumps(config.to_dict()))
        (run / SETTINGS_FILE).write_text(json.dumps({"command": "run_pretraining", **learnt}))
        sample_tokenizer.save(run)
        publishing.publish_model(str(run), str(run / "published"))
        found = albert_tf.load(run / "published").abilities
        assert found == albert_tf.load(run).abilities
        assert ("generate" in found) == generates


def test_folder_for_transformers_is_written_and_put_on_the_hub(run_script, checkpoint, tmp_path, monkeypatch):
    pytest.importorskip("safetensors")
    pushed = []
    monkeypatch.setattr(publish_model, "check_hub_name", lambda name: None)
    monkeypatch.setattr(publish_model, "push_folder", lambda *what: pushed.append(what) or "https://hub/someone/model")
    folder = tmp_path / "model"
    flags = {"init_checkpoint": checkpoint, "output_dir": folder, "format": "huggingface"}
    result = run_script("publish_model.py", **flags, push_to_hub="someone/model")
    assert (result.code, result.errors) == (0, "")
    assert result.output.endswith("uploaded it to the hub: https://hub/someone/model, visible only to its owner\n")
    assert pushed == [(str(folder), "someone/model", True)]
    assert {"config.json", "model.safetensors"} <= {path.name for path in folder.iterdir()}
    refused = run_script("publish_model.py", **flags, weights_dtype="float16")
    assert refused.errors == "error: --format=huggingface works only with --weights_dtype=float32, not float16\n"


def test_wrong_name_on_the_hub_is_refused_before_anything_is_written(run_script, checkpoint, tmp_path):
    flags = {"init_checkpoint": checkpoint, "output_dir": tmp_path / "model", "push_to_hub": "model"}
    result = run_script("publish_model.py", **flags)
    assert result.errors.startswith("error: --push_to_hub=model must be owner/model") and result.code == 1
    assert not (tmp_path / "model").exists()
