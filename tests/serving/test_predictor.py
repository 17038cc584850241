"""A fine-tuned folder as a Python object: the run's own predictions, and inputs that it can't read."""

import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from tiny_config import tiny_config

import albert_tf
from albert_tf.base.errors import InputError
from albert_tf.base.files import write_json
from albert_tf.finetuning import Classification, Regression, runner
from albert_tf.finetuning.datasets import DataFiles
from albert_tf.serving import loading
from albert_tf.training import RunSettings, TrainingRun

TEXTS = ["좋다", "정말 재미있고 배우들의 연기도 훌륭한 영화였다", "나쁘다", "", "그저 그렇다"]
PAIRS = DataFiles(text_pair_column="other", metrics=("pearson",), is_regression=True)
SETTINGS = RunSettings(num_train_steps=2, train_batch_size=2, learning_rate=0.01, optimizer="adamw", eval_batch_size=2)


def finetune(folder, task, lines, tokenizer):
    """Trains a task for two steps on a file of these lines, and returns what the run itself predicts."""
    (folder / "train.tsv").write_text("".join("\t".join(line) + "\n" for line in lines))
    tf.keras.utils.set_random_seed(1)
    run = TrainingRun(folder / "run", task, task.make_model(), SETTINGS, tokenizer)
    file = runner.load_file(task, str(folder / "train.tsv"), tokenizer, 24)
    assert runner.train(run, file)
    return runner.predict(run, file, 2)


@pytest.fixture
def config(sample_tokenizer):
    return tiny_config(len(sample_tokenizer), initializer_range=0.5)


@pytest.mark.slow
def test_labels_are_those_that_the_run_predicts(tmp_path, config, sample_tokenizer):
    lines = [["document", "label"], *([text, "ab"[number % 2]] for number, text in enumerate(TEXTS))]
    expected = finetune(tmp_path, Classification(config, ("b", "a")), lines, sample_tokenizer)
    predictor = albert_tf.load(tmp_path / "run")
    found = predictor.predict(TEXTS, batch_size=2)
    assert [prediction["label"] for prediction in found] == [prediction["label"] for prediction in expected]
    assert [list(prediction["probabilities"]) for prediction in found] == [["b", "a"]] * len(TEXTS)
    for prediction, other in zip(found, expected):
        np.testing.assert_allclose(
            list(prediction["probabilities"].values()), list(other["probabilities"].values()), rtol=1e-5
        )
    assert predictor.predict([]) == []
    # Half a surrogate pair is no character.
    assert predictor.predict(["좋\ud800다\udc00"]) == predictor.predict(["좋다"])
    for inputs, message in (
        ("좋다", "pass a list of inputs, even for a single one. Received: '좋다'"),
        (None, "pass a list of inputs, even for a single one. Received: None (NoneType)"),
        ({"text": "좋다"}, "pass a list of inputs, even for a single one. Received: "),
        ([("좋다", "나쁘다")], "input 0 must be a string. Received: "),
        (["좋다", None], "input 1 must be a string. Received: None (NoneType)"),
        (["좋다", float("nan")], "input 1 must be a string. Received: nan (float)"),
    ):
        with pytest.raises(InputError) as error:
            predictor.predict(inputs)
        assert str(error.value).startswith(message)
    with pytest.warns(UserWarning, match="longer than the 24 pieces that the model reads, and their ends are left out"):
        predictor.predict(["좋다 " * 30, "좋다", "나쁘다 " * 40])
    assert predictor.num_cut == 2


@pytest.mark.slow
def test_pairs_get_the_numbers_that_the_run_predicts(tmp_path, config, sample_tokenizer):
    pairs = list(zip(TEXTS, reversed(TEXTS)))
    lines = [["document", "other", "label"], *([*pair, str(number)] for number, pair in enumerate(pairs))]
    expected = finetune(tmp_path, Regression(config, PAIRS), lines, sample_tokenizer)
    predictor = albert_tf.load(str(tmp_path / "run"))
    scores = [prediction["score"] for prediction in predictor.predict(pairs)]
    np.testing.assert_allclose(scores, [prediction["score"] for prediction in expected], rtol=1e-5)
    with pytest.raises(InputError, match="input 0 must be a tuple of two strings, as this task reads pairs"):
        predictor.predict(["좋다"])


def test_folder_without_a_finetuned_model_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds no fine-tuned model with its run_settings"):
        albert_tf.load(tmp_path)
    with pytest.raises(InputError, match="nowhere: there is no such folder; name the folder of a"):
        albert_tf.load(tmp_path / "nowhere")
    (tmp_path / "run_settings.json").write_text('{"command": "run_pretraining", "objective": "AlbertPretraining"}')
    with pytest.raises(InputError, match=r"albert_tf.load: no checkpoint at "):
        albert_tf.load(tmp_path)


def test_folder_around_several_trials_names_the_best_one(tmp_path):
    (tmp_path / "trials.json").write_text('{"best": "seed_3", "trials": []}')
    with pytest.raises(InputError) as failure:
        albert_tf.load(tmp_path)
    assert str(failure.value) == f"{tmp_path} holds several trials; name the folder of one, such as {tmp_path}/seed_3"


@pytest.mark.parametrize("place", ["", "2"])
@pytest.mark.parametrize("file", ["saved_model.pb", "model.onnx"])
def test_export_that_can_not_be_asked_is_refused(tmp_path, place, file):
    (tmp_path / place).mkdir(exist_ok=True)
    (tmp_path / place / file).touch()
    with pytest.raises(InputError, match=rf"{file} can't be used in this way \(docs/serving\.md says how\); name the"):
        albert_tf.load(tmp_path)


def test_importing_the_package_imports_no_tensorflow():
    program = "import sys, albert_tf; albert_tf.load; assert 'tensorflow' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_results_are_found_wherever_a_run_lies(tmp_path):
    for folder in (str(tmp_path), f"ram://{tmp_path.name}"):
        assert loading._results(folder) == {}
        write_json(os.path.join(folder, "eval_results.json"), {"accuracy": 0.5})
        assert loading._results(folder) == {"accuracy": 0.5}
