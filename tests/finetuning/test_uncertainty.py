"""The standard error of a score, and of the difference of two, from the examples themselves."""

import types

import numpy as np
import pytest
from tiny_config import tiny_config

from albert_tf.finetuning import Classification, runner
from albert_tf.finetuning.baselines import LinearScores, replicates, standard_error
from albert_tf.finetuning.metrics import spearman
from albert_tf.finetuning.runner import _compare_with_linear
from albert_tf.finetuning.texts.labelled_text import LabelledText


def share(examples, predictions):
    return {"accuracy": float(np.mean([a == b for a, b in zip(examples, predictions)]))}


@pytest.mark.parametrize("count", [2, 20, 40])
def test_error_of_a_share_is_that_of_a_mean(count):
    truth, found = [1] * count, [number % 3 != 0 for number in range(count)]
    right = np.array([a == b for a, b in zip(truth, found)], float)
    error = standard_error(replicates(share, truth, found, "accuracy"))
    assert error == pytest.approx(right.std(ddof=1) / np.sqrt(count))


def test_error_of_many_examples_is_found_by_groups():
    generator = np.random.default_rng(0)
    truth, found = generator.integers(2, size=3000), generator.integers(2, size=3000)
    kept = replicates(share, list(truth), list(found), "accuracy")
    assert len(kept) == 40
    assert standard_error(kept) == pytest.approx(np.sqrt(0.25 / 3000), rel=0.3)


def test_error_of_a_correlation_is_that_of_resampling():
    generator = np.random.default_rng(1)
    truth = generator.normal(size=300)
    found = truth + generator.normal(size=300)

    def score(examples, predictions):
        return {"spearman": spearman(np.array(examples), np.array(predictions))}

    rows = generator.integers(300, size=[1000, 300])
    resampled = [spearman(truth[row], found[row]) for row in rows]
    error = standard_error(replicates(score, list(truth), list(found), "spearman"))
    assert error == pytest.approx(np.std(resampled), rel=0.35)


def test_examples_that_are_all_right_have_no_error():
    found = replicates(share, [1] * 20, [1] * 20, "accuracy")
    assert runner._with_error(1.0, found) == "1.0000", "not as if it were certain"
    assert runner._with_error(0.95, replicates(share, [1] * 20, [1] * 19 + [0], "accuracy")) == "0.9500 ± 0.0500"


def test_nothing_is_said_of_one_example_or_another_measure():
    assert replicates(share, [1], [1], "accuracy") == []
    assert replicates(share, [1, 2], [1, 2], "f1") == []


@pytest.mark.parametrize(
    ("ours", "told"),
    [
        (0.80, "warning: accuracy 0.8000 is below the 0.9000 of a linear"),
        (0.895, "don't say which is better"),
        (0.95, ""),
    ],
)
def test_linear_model_is_better_only_by_more_than_the_error_of_the_difference(ours, told):
    generator = np.random.default_rng(2)
    common = generator.normal(size=40) * 0.01  # that both find the same texts hard says nothing of the difference
    linear = LinearScores("a linear model", {"accuracy": 0.9}, list(0.9 + common), 10, 10)
    lines = []
    run = types.SimpleNamespace(log=lambda text, *_: lines.append(text))
    _compare_with_linear(run, "accuracy", ours, list(ours + common + generator.normal(size=40) * 0.002), linear)
    assert len(lines) == bool(told) and told in "".join(lines)


def test_evaluation_prints_scores_with_their_errors(tmp_path, monkeypatch):
    examples = [LabelledText(f"글 {n}", None, str(n % 2), n) for n in range(50)]
    found = [{"label": str(n % 2 if n % 5 else 0), "probabilities": {"0": 0.5, "1": 0.5}} for n in range(50)]
    task, lines = Classification(tiny_config(100)), []
    monkeypatch.setattr(runner, "_dev_dataset", lambda *_: None)
    monkeypatch.setattr(runner, "compute_predictions", lambda *_: found)
    run = types.SimpleNamespace(
        objective=task,
        settings=types.SimpleNamespace(eval_batch_size=8),
        batch_lengths=None,
        compute_outputs=None,
        owns_results_of=lambda _: True,
        evaluate=lambda *_, **__: {"accuracy": 0.9},
        write_results=lambda *_, **__: None,
        log=lambda text, *_: lines.append(text),
    )
    (tmp_path / "dev").write_text("")
    dev_file = runner.EncodedFile(str(tmp_path / "dev"), examples, {}, 8)
    linear = LinearScores(
        "a linear model", {"accuracy": 0.9}, replicates(task.score, examples, found, "accuracy"), 9, 9
    )
    runner.evaluate(run, dev_file, linear)
    assert any(line.startswith("accuracy 0.9000 ± 0.0") for line in lines)
    assert any(line.startswith("a linear model, trained on the 9 examples: accuracy 0.9000 ± 0.0") for line in lines)
