"""The measures of public data sets, against values worked out by hand."""

import math

import numpy as np
import pytest

from albert_tf.finetuning.datasets import DATASETS
from albert_tf.finetuning.metrics import LABEL_METRICS, SCORE_METRICS

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


def test_measures_of_labels_where_one_label_is_all_that_is_found():
    constant = ["a"] * 6
    measured = {name: function(TRUTH, constant, ("a", "b", "c")) for name, function in LABEL_METRICS.items()}
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


def test_constant_scores_explain_nothing():
    constant, truth = np.full(4, 2.0), np.array([0.0, 1.0, 3.0, 5.0])
    assert {name: function(truth, constant) for name, function in SCORE_METRICS.items()} == dict.fromkeys(
        SCORE_METRICS, 0.0
    )


def test_every_data_set_is_measured_by_what_there_is():
    for name, files in DATASETS.items():
        assert set(files.metrics) <= set(SCORE_METRICS if files.is_regression else LABEL_METRICS), name
