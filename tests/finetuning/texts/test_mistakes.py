"""What a classifier gets wrong: the surest mistakes first, and the counts behind the plot."""

import numpy as np
import pytest
from tiny_config import tiny_config

from albert_tf.finetuning import Classification
from albert_tf.finetuning.texts.classification import confusion_matrix, f1_of_each, plot_confusion_matrix
from albert_tf.finetuning.texts.labelled_text import LabelledText


def prediction(label, probability):
    return {"label": label, "probabilities": {label: probability}}


def test_surest_mistakes_come_first(tmp_path):
    examples = [LabelledText(text, None, label, line) for line, (text, label) in enumerate(("a0", "b1", "c1", "d0"), 2)]
    predictions = [prediction("1", 0.6), prediction("1", 0.99), prediction("0", 0.9), prediction("0", 0.7)]
    write_errors = Classification(tiny_config()).reports()["errors.tsv"]
    write_errors(str(tmp_path / "errors.tsv"), examples, predictions)
    assert (tmp_path / "errors.tsv").read_text().splitlines() == [
        "line\tlabel\tprediction\tprobability\ttext",
        "4\t1\t0\t0.9000\tc",
        "2\t0\t1\t0.6000\ta",
    ]


def test_confusion_matrix_has_a_row_for_each_true_label():
    counts = confusion_matrix(list("aabbc"), list("abbbb"), ("a", "b", "c"))
    np.testing.assert_array_equal(counts, [[1, 1, 0], [0, 2, 0], [0, 1, 0]])


def test_f1_of_each_label_is_that_of_scikit_learn():
    f1_score = pytest.importorskip("sklearn.metrics").f1_score
    generator, labels = np.random.default_rng(3), ("가", "나", "다", "라")
    truth, found = (generator.choice(labels[:3], 50).tolist() for _ in range(2))
    expected = f1_score(truth, found, labels=labels, average=None, zero_division=0)
    np.testing.assert_allclose(f1_of_each(confusion_matrix(truth, found, labels)), expected)


@pytest.mark.parametrize(
    "labels",
    [("0", "1"), ("부정", "긍정"), ("$", "$$"), pytest.param(tuple(map(str, range(1000))), marks=pytest.mark.slow)],
)
def test_confusion_matrix_is_drawn(tmp_path, labels):
    examples = [LabelledText("a", None, label, 2) for label in labels]
    plot_confusion_matrix(str(tmp_path / "a.png"), examples, [prediction(labels[0], 0.9)] * len(labels), labels)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_numbers_that_stand_for_labels_are_explained(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("albert_tf.finetuning.texts.classification.hangul_font", lambda: None)
    labels = ("긍정", "부정")
    examples = [LabelledText("a", None, label, 2) for label in labels]
    plot_confusion_matrix(str(tmp_path / "a.png"), examples, [prediction("긍정", 0.9)] * 2, labels)
    said = capsys.readouterr().out
    assert "apt install fonts-nanum" in said and said.endswith("in the plot label 0 is 긍정, label 1 is 부정\n")
