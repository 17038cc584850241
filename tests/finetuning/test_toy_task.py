"""A new task needs nothing but its class: it trains, resumes, evaluates and predicts."""

import json
import os
import signal

import pytest
import tensorflow as tf
from tiny_config import tiny_config
from toy_task import AsksSomething

from albert_tf.finetuning import runner
from albert_tf.training import RunSettings, TrainingRun

pytestmark = pytest.mark.slow

LINES = ["비가 온다", "어디에 가니?", "누가 왔니?", "밥을 먹었다", "왜 우니?", "집에 간다", "언제 오니?"]
SETTINGS = RunSettings(
    num_train_steps=6, train_batch_size=4, eval_batch_size=4, learning_rate=0.01, optimizer="adamw", eval_every_steps=3
)


@pytest.fixture(scope="module")
def task(sample_tokenizer):
    return AsksSomething(tiny_config(len(sample_tokenizer)))


@pytest.fixture(scope="module")
def lines(tmp_path_factory, task, sample_tokenizer):
    path = tmp_path_factory.mktemp("lines") / "lines.txt"
    path.write_text("\n".join(LINES) + "\n")
    return runner.load_file(task, str(path), sample_tokenizer, 12)


def start(folder, task, tokenizer):
    tf.keras.utils.set_random_seed(1)
    return TrainingRun(folder, task, task.make_model(), SETTINGS, tokenizer)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, task, lines, sample_tokenizer, quick_to_trace):
    """The folder of a run that was never stopped, and what it predicts."""
    folder = tmp_path_factory.mktemp("whole")
    run = start(folder, task, sample_tokenizer)
    assert runner.train(run, lines, lines)
    return folder, runner.predict(run, lines, batch_size=2)


def weights(folder):
    reader = tf.train.load_checkpoint(str(folder))
    name = "model/head/dense/kernel/.ATTRIBUTES/VARIABLE_VALUE"
    return reader.get_tensor(name).tolist()


def test_task_is_restored_evaluates_and_predicts(whole, task, lines, sample_tokenizer):
    folder, predictions = whole
    run = start(folder, task, sample_tokenizer)
    run.restore()
    assert runner.predict(run, lines, 4) == predictions
    results = runner.evaluate(run, lines)
    assert len(predictions) == len(LINES) and results["num_examples"] == len(LINES)
    right = sum(guess == line.endswith("?") for guess, line in zip(predictions, LINES))
    assert results["accuracy"] == pytest.approx(right / len(LINES))
    assert results["found"] == sum(guess for guess, line in zip(predictions, LINES) if line.endswith("?"))
    assert json.loads((folder / "eval_results.json").read_text()) == results
    written = (folder / "predictions.tsv").read_text().splitlines()
    assert written == [f"{line}\t{guess}" for line, guess in zip(LINES, predictions)]


def test_task_resumes_to_the_same_result(whole, tmp_path, task, lines, sample_tokenizer, monkeypatch):
    encode = runner._dev_dataset

    def stop_and_encode(*arguments):
        os.kill(os.getpid(), signal.SIGTERM)
        return encode(*arguments)

    with monkeypatch.context() as stopping:
        stopping.setattr(runner, "_dev_dataset", stop_and_encode)
        stopped = start(tmp_path / "stopped", task, sample_tokenizer)
        assert not runner.train(stopped, lines, lines)
    assert stopped.step == 3
    assert runner.train(start(tmp_path / "stopped", task, sample_tokenizer), lines, lines)
    assert weights(tmp_path / "stopped") == weights(whole[0])
