"""A new task needs nothing but its class: it trains, resumes, evaluates, predicts, and is planned for a TPU."""

import json
import os
import pathlib
import signal

import pytest
import tensorflow as tf
from tiny_config import tiny_config
from toy_task import AsksSomething

from albert_tf.finetuning import runner
from albert_tf.runs.tpu_compiler import lower_step
from albert_tf.training import RunSettings, TrainingRun

pytestmark = pytest.mark.slow

LINES = ["비가 온다", "어디에 가니?", "누가 왔니?", "밥을 먹었다", "왜 우니?", "집에 간다", "언제 오니?"]
SETTINGS = RunSettings(
    num_train_steps=6, train_batch_size=4, eval_batch_size=4, learning_rate=0.01, optimizer="adamw", eval_every_steps=3
)


@pytest.fixture
def task(sample_tokenizer):
    return AsksSomething(tiny_config(len(sample_tokenizer)))


@pytest.fixture
def lines(tmp_path, task, sample_tokenizer):
    (tmp_path / "lines.txt").write_text("\n".join(LINES) + "\n")
    return runner.load_file(task, str(tmp_path / "lines.txt"), sample_tokenizer, 12)


def start(folder, task, tokenizer):
    tf.keras.utils.set_random_seed(1)
    return TrainingRun(folder, task, task.make_model(), SETTINGS, tokenizer)


def weights(folder):
    reader = tf.train.load_checkpoint(str(folder))
    name = "model/head/dense/kernel/.ATTRIBUTES/VARIABLE_VALUE"
    return reader.get_tensor(name).tolist()


def test_task_trains_evaluates_and_predicts(tmp_path, task, lines, sample_tokenizer):
    run = start(tmp_path / "run", task, sample_tokenizer)
    assert runner.train(run, lines, lines)
    results = runner.evaluate(run, lines)
    predictions = runner.predict(run, lines, batch_size=2)
    assert len(predictions) == len(LINES) and results["num_examples"] == len(LINES)
    right = sum(guess == line.endswith("?") for guess, line in zip(predictions, LINES))
    assert results["accuracy"] == pytest.approx(right / len(LINES))
    assert results["found"] == sum(guess for guess, line in zip(predictions, LINES) if line.endswith("?"))
    assert json.loads((tmp_path / "run" / "eval_results.json").read_text()) == results
    written = pathlib.Path(tmp_path / "run" / "predictions.tsv").read_text().splitlines()
    assert written == [f"{line}\t{guess}" for line, guess in zip(LINES, predictions)]


def test_task_resumes_to_the_same_result(tmp_path, task, lines, sample_tokenizer, monkeypatch):
    assert runner.train(start(tmp_path / "whole", task, sample_tokenizer), lines, lines)
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
    assert weights(tmp_path / "stopped") == weights(tmp_path / "whole")


def test_trained_model_is_restored_to_be_used(tmp_path, task, lines, sample_tokenizer):
    run = start(tmp_path / "run", task, sample_tokenizer)
    runner.train(run, lines)
    expected = runner.predict(run, lines, 4)
    restored = start(tmp_path / "run", task, sample_tokenizer)
    restored.restore()
    assert restored.step == 6
    assert runner.predict(restored, lines, 4) == expected


def test_task_is_planned_for_a_tpu(task):
    program = lower_step(task, 8, 16, "adamw", num_replicas=2)
    assert "stablehlo.all_reduce" in program
    compile_step = pytest.importorskip("albert_tf.runs.tpu_compiler")
    pytest.importorskip("libtpu")
    assert compile_step.compile_program(program, "v5e:2x2", 2).temporary_bytes > 0
