"""A model published with convert_checkpoint.py, and what starts from it."""

import json

import pytest
from runs import write_model
from tiny_config import tiny_config

import albert_tf
from albert_tf.interchange.conversion import convert_checkpoint
from albert_tf.objectives import make_objective
from albert_tf.training.run_folder.guard import SETTINGS_FILE


@pytest.fixture
def published(run_script, checkpoint, tmp_path):
    """The folder of a published model."""
    result = run_script("convert_checkpoint.py", input_path=checkpoint, output_dir=tmp_path / "model")
    assert (result.code, result.errors) == (0, "")
    assert result.output.startswith(f"wrote {tmp_path}/model: 0.")
    return tmp_path / "model"


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
    assert "new, from random weights: head; not used here: " in result.output
    assert "by the lengths of the training texts\n" in result.output
    # Published, it is asked as before.
    result = run_script(
        "convert_checkpoint.py",
        input_path=tmp_path / "classifier",
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
        write_model(run, model, sample_tokenizer)
        (run / SETTINGS_FILE).write_text(json.dumps({"command": "run_pretraining", **learnt}))
        convert_checkpoint("albert_tf", "albert_tf", str(run), str(run / "published"))
        found = albert_tf.load(run / "published").abilities
        assert found == albert_tf.load(run).abilities
        assert ("generate" in found) == generates
