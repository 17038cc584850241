"""convert_checkpoint.py, and what takes the folders that it writes."""

import json
import os

import numpy as np
import pytest
from runs import variables_in, write_model
from tiny_config import tiny_config

import albert_tf
from albert_tf.interchange.conversion import convert_checkpoint
from albert_tf.objectives import make_objective
from albert_tf.training.run_folder.guard import SETTINGS_FILE


@pytest.fixture
def published(run_script, checkpoint, tmp_path):
    """A folder of ours with tokenizer."""
    assert run_script("convert_checkpoint.py", input_path=checkpoint, output_dir=tmp_path / "published").code == 0
    return tmp_path / "published"


@pytest.fixture
def convert(run_script, tmp_path):
    """Converts a folder into one that is named after its format; returns the folder and what was printed."""

    def run(source, target, input_path, **more):
        folder = tmp_path / target / input_path.name
        flags = {"from": source, "to": target, "input_path": input_path, "output_dir": folder, **more}
        result = run_script("convert_checkpoint.py", **flags).succeeded()
        return folder, result.output

    return run


def test_what_was_read_and_written_is_said(convert, published):
    folder, output = convert("albert_tf", "google", published)
    first, *_, last = output.splitlines()
    assert first.startswith(f"read {published}: 32 variables, ")
    assert last.startswith(f"wrote {folder}: 0.")
    assert sorted(os.listdir(folder)) == [
        "albert_config.json",
        "model.ckpt-best.data-00000-of-00001",
        "model.ckpt-best.index",
        "tokenizer.json",
        "vocab.txt",
    ]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({}, "--input_path is missing; see --help"),
        ({"input_path": "nowhere"}, "--output_dir is missing; see --help"),
        ({"from": "bert"}, "--from must be one of albert_tf, google, huggingface, keras_hub. Received: bert"),
        (
            {"from": "google", "to": "albert_tf", "input_path": "nowhere", "output_dir": "somewhere"},
            "--input_path: no checkpoint of TensorFlow, a file that ends in .index, at nowhere",
        ),
        (
            {"from": "huggingface", "to": "albert_tf", "input_path": "nowhere", "output_dir": "somewhere"},
            "can't read the model config nowhere/config.json: no such file",
        ),
        (
            {"input_path": "nowhere", "output_dir": "somewhere", "do_lower_case": False},
            "--do_lower_case has no meaning where a model of albert_tf stays one; leave it out",
        ),
        (
            {"to": "huggingface", "input_path": "nowhere", "output_dir": "somewhere", "weights_dtype": "float16"},
            "--weights_dtype=float16 works only with --from=albert_tf and --to=albert_tf",
        ),
    ],
)
def test_mistake_costs_one_sentence(run_script, monkeypatch, tmp_path, flags, message):
    monkeypatch.chdir(tmp_path)
    result = run_script("convert_checkpoint.py", **flags)
    assert (result.code, result.errors) == (1, f"error: {message}\n")
    assert os.listdir(tmp_path) == []


def test_folder_that_holds_something_is_left_alone(run_script, published, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    flags = {"from": "albert_tf", "to": "google", "input_path": published, "output_dir": tmp_path / "full"}
    result = run_script("convert_checkpoint.py", **flags)
    assert result.code == 1
    assert result.errors == f"error: --output_dir={tmp_path}/full holds something already; choose another folder\n"
    assert os.listdir(tmp_path / "full") == ["mine.txt"]


@pytest.mark.slow
@pytest.mark.parametrize("target", ["google", "huggingface", "keras_hub"])
def test_pre_training_goes_on_from_what_came_back(convert, pretrain, published, without_training, target):
    folder, _ = convert("albert_tf", target, published)
    back, _ = convert(target, "albert_tf", folder)
    result = pretrain(init_checkpoint=back, albert_config_file=None, do_eval=False).succeeded()
    assert ("new, from random weights: masked_lm_head, " in result.output) == (target == "keras_hub")
    assert "not used here" not in result.output
    began = variables_in(next(published.glob("*.index")).with_suffix(""))
    for name, values in without_training[0].weights.items():
        if target != "keras_hub" or "encoder/" in name:
            np.testing.assert_array_equal(values, began[f"model/{name}"].astype(np.float32), err_msg=name)


@pytest.mark.slow
def test_classifier_goes_to_hugging_face_and_answers_when_it_is_back(convert, classified):
    folder, output = convert("albert_tf", "huggingface", classified)
    assert "transformers knows it as AlbertForSequenceClassification\n" in output
    assert json.loads((folder / "config.json").read_text())["id2label"] == {"0": "0", "1": "1"}
    back, output = convert("huggingface", "albert_tf", folder)
    assert "albert_tf.load answers from it" in output
    texts = ["정말 재미있다", "시간이 아깝다"]
    assert albert_tf.load(back).predict(texts) == albert_tf.load(classified).predict(texts)


@pytest.mark.slow
def test_classifier_starts_from_a_published_model_without_any_setting(run_script, published, reviews, tmp_path):
    result = run_script(
        "run_classifier.py",
        task_name="tsv",
        data_dir=reviews,
        init_checkpoint=published,
        output_dir=tmp_path / "classifier",
        do_train=True,
    ).succeeded()
    assert "new, from random weights: head; not used here: " in result.output
    assert "by the lengths of the training texts\n" in result.output
    # Published, it is asked as before.
    result = run_script(
        "convert_checkpoint.py",
        input_path=tmp_path / "classifier",
        output_dir=tmp_path / "given",
        weights_dtype="float32",
    ).succeeded()
    texts = ["정말 좋다", "나쁘다"]
    assert albert_tf.load(tmp_path / "given").predict(texts) == albert_tf.load(tmp_path / "classifier").predict(texts)
    # On its own, the folder knows what was chosen.
    run_script("run_classifier.py", output_dir=tmp_path / "classifier", do_train=True).succeeded()


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
        convert_checkpoint("albert_tf", "albert_tf", str(run), str(run / "published_model"))
        found = albert_tf.load(run / "published_model").abilities
        assert found == albert_tf.load(run).abilities
        assert ("generate" in found) == generates
