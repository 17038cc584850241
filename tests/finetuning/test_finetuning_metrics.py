"""Measures of predictions, what rules score that read no text, and how far a score may be off."""

import math
import types

import numpy as np
import pytest
from tiny_config import tiny_config

from albert_tf.finetuning import Classification, Entities, MultipleChoice, QuestionAnswering, Regression, runner
from albert_tf.finetuning.baselines import LinearScores, replicates, standard_error
from albert_tf.finetuning.datasets import DATASETS, DataFiles
from albert_tf.finetuning.metrics import LABEL_METRICS, SCORE_METRICS, spearman
from albert_tf.finetuning.runner import _compare_with_linear
from albert_tf.finetuning.tasks.labelled_text import LabelledText
from albert_tf.finetuning.tasks.multiple_choice import Question as Choice
from albert_tf.finetuning.tasks.squad import Answer, Question
from albert_tf.finetuning.tasks.tagged_text import TaggedText

TRUTH = ["a", "a", "a", "b", "b", "c"]
FOUND = ["a", "a", "b", "b", "c", "c"]


def test_measures_of_labels():
    labels = ("a", "b", "c")
    measured = {name: function(TRUTH, FOUND, labels) for name, function in LABEL_METRICS.items()}
    f1 = {"a": 2 * 1.0 * (2 / 3) / (1.0 + 2 / 3), "b": 0.5, "c": 2 * 0.5 * 1.0 / 1.5}
    assert measured["accuracy"] == pytest.approx(4 / 6)
    assert measured["f1"] == pytest.approx(f1["c"])
    assert measured["macro_f1"] == pytest.approx(sum(f1.values()) / 3)
    # Gorodkin (2004): covariances of indicators over all labels; 6 examples, 4 right, of (3, 2, 1) found (2, 2, 2).
    covariance = 4 * 6 - (3 * 2 + 2 * 2 + 1 * 2)
    deviations = math.sqrt((36 - 14) * (36 - 12))
    assert measured["matthews"] == pytest.approx(covariance / deviations)
    # Where one label is all that is found:
    measured = {name: function(TRUTH, ["a"] * 6, labels) for name, function in LABEL_METRICS.items()}
    assert measured == pytest.approx({"accuracy": 0.5, "f1": 0.0, "macro_f1": (2 * 0.5 / 1.5) / 3, "matthews": 0.0})


def test_labels_that_are_nowhere_have_no_part_in_macro_f1():
    """As in KLUE's own evaluation of YNAT; a label that is found alone has an F1 of 0."""
    macro_f1 = LABEL_METRICS["macro_f1"]
    assert macro_f1(["a", "b"], ["a", "b"], ("a", "b", "c")) == 1.0
    assert macro_f1(["a", "b"], ["a", "c"], ("a", "b", "c", "d")) == pytest.approx(1 / 3)


def test_measures_of_scores():
    truth, found = np.array([0.0, 1.0, 3.0, 5.0]), np.array([1.0, 0.0, 3.5, 2.9])
    measured = {name: function(truth, found) for name, function in SCORE_METRICS.items()}
    centred, other = truth - truth.mean(), found - found.mean()
    assert measured["pearson"] == pytest.approx((centred @ other) / np.sqrt((centred @ centred) * (other @ other)))
    # Ranks 1 2 3 4 and 2 1 4 3: one less six times the squared differences over n (n^2 - 1).
    assert measured["spearman"] == pytest.approx(1 - 6 * 4 / (4 * 15))
    assert measured["f1_at_3"] == pytest.approx(2 * 1.0 * 0.5 / 1.5)
    assert {function(truth, np.full(4, 2.0)) for function in SCORE_METRICS.values()} == {0.0}, (
        "constants explain nothing"
    )


CONFIG = tiny_config()


def labelled(*labels):
    return [LabelledText("글", None, label, line) for line, label in enumerate(labels)]


CHOICES = [Choice("글", "물음", ("가", "나"), answer, str(answer)) for answer in (1, 0, 1)]
TAGGED = TaggedText("서울에 간다", ((0, 3), (4, 6)), ("B-LOC", "O"), 1)


@pytest.mark.parametrize(
    ("task", "examples", "rule", "scores"),
    [
        (
            Classification(CONFIG, ("0", "1"), DataFiles(metrics=("macro_f1", "accuracy"))),
            labelled("1", "0", "1", "1"),
            "always '1', the most frequent label",
            {"accuracy": 0.75, "macro_f1": (2 * 3 / (4 + 3)) / 2},
        ),
        (
            Regression(CONFIG, DATASETS["klue_sts"]),
            labelled("1.0", "5.0", "4.5"),
            "always the mean",
            {"pearson": 0.0, "squared_error": (2.5**2 + 1.5**2 + 1) / 3},
        ),
        (MultipleChoice(CONFIG, 2), CHOICES, "always B", {"accuracy": 2 / 3}),
        (Entities(CONFIG, ("LOC",)), [TAGGED], "never an entity", {"entity_f1": 0.0}),
    ],
)
def test_rule_that_reads_nothing_scores(task, examples, rule, scores):
    found_rule, found = task.blind_scores(examples)
    assert found_rule == rule and all(math.isfinite(score) for score in found.values())
    assert {name: found[name] for name in scores} == pytest.approx(scores)


@pytest.mark.parametrize(("may_be_unanswerable", "expected"), [(False, 0.0), (True, 50.0)])
def test_no_answer(may_be_unanswerable, expected):
    questions = [Question("1", "누구?", "이순신", (Answer("이순신", 0),)), Question("2", "누구?", "이순신", (), True)]
    task = QuestionAnswering(CONFIG, may_be_unanswerable=may_be_unanswerable)
    rule, scores = task.blind_scores(questions if may_be_unanswerable else questions[:1])
    assert rule == "always no answer" and scores["exact_match"] == expected


def share(examples, predictions):
    return {"accuracy": float(np.mean([a == b for a, b in zip(examples, predictions)]))}


@pytest.mark.parametrize("count", [2, 40])
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


def test_examples_that_are_all_right_and_one_alone_have_no_error():
    assert replicates(share, [1], [1], "accuracy") == replicates(share, [1, 2], [1, 2], "f1") == []
    found = replicates(share, [1] * 20, [1] * 20, "accuracy")
    assert runner._with_error(1.0, found) == "1.0000", "not as if it were certain"
    assert runner._with_error(0.95, replicates(share, [1] * 20, [1] * 19 + [0], "accuracy")) == "0.9500 ± 0.0500"


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
