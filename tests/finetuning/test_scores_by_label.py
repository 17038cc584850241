"""F1, precision and recall of each label and each type of entity."""

import numpy as np
import pytest
from tiny_config import tiny_config

from albert_tf.finetuning import Classification, Entities
from albert_tf.finetuning.entities.tagged_text import TaggedText
from albert_tf.finetuning.labelled_text import LabelledText
from albert_tf.finetuning.scores_by_label import (
    LabelScores,
    count_labels,
    describe_scores,
    scores_by_label,
    write_scores,
)

CONFIG = tiny_config()


def test_scores_are_those_of_scikit_learn():
    support = pytest.importorskip("sklearn.metrics").precision_recall_fscore_support
    generator, labels = np.random.default_rng(3), ("가", "나", "다", "라")
    truth, found = (generator.choice(labels[:3], 50).tolist() for _ in range(2))
    task = Classification(CONFIG, labels)
    examples = [LabelledText("글", None, label, 0) for label in truth]
    scores = scores_by_label(task.counts_by_label(examples, [{"label": label} for label in found]))
    expected = np.stack(support(truth, found, labels=labels, zero_division=0), axis=1)
    np.testing.assert_allclose([each[1:5] for each in scores], expected)
    assert [each.label for each in scores] == list(labels) and scores[3].count == scores[3].found == 0


def test_several_labels_of_a_text_count_each_once():
    counts = count_labels([("a", "b"), (), ("b",)], [("a", "a"), ("c",), ("b",)], ("a", "b", "c"))
    assert counts == {"a": (1, 1, 1), "b": (1, 1, 2), "c": (0, 1, 0)}


def test_types_of_entities_are_counted_as_their_measure_counts_them():
    text = TaggedText("가 나 다", ((0, 1), (2, 3), (4, 5)), ("B-PS", "I-PS", "B-LC"), 1)
    prediction = {"tags": ["B-PS", "I-PS", "I-LC"]}
    counts = Entities(CONFIG, ("LC", "PS")).counts_by_label([text], [prediction])
    assert counts == {"LC": (1, 1, 1), "PS": (1, 1, 1)}
    task = Entities(CONFIG, ("LC", "PS"), metrics=("entity_macro_f1",))
    scores = scores_by_label(task.counts_by_label([text], [prediction]))
    assert scores[0] == LabelScores("LC", 0.0, 0.0, 0.0, 1, 0)
    assert task.score([text], [prediction])["entity_macro_f1"] == np.mean([each.f1 for each in scores])


def test_table_names_the_most_frequent_and_the_file_has_all(tmp_path):
    scores = [LabelScores(f"라벨{number}", 0.5, 0.25, 1 / 3, number, 2) for number in range(30)]
    lines = describe_scores(scores)
    assert len(lines) == 22 and lines[1].split()[-1] == "라벨10" and lines[-1].startswith("and 10 more")
    write_scores(str(tmp_path / "scores"), scores)
    rows = [line.split("\t") for line in (tmp_path / "scores").read_text().splitlines()]
    assert rows[0] == ["label", "precision", "recall", "f1", "count", "found"]
    assert len(rows) == 31 and float(rows[1][3]) == 1 / 3
