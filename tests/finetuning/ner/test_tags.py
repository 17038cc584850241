"""Tags: how they are spelled, and which entities they make."""

import pytest

from albert_tf.finetuning.ner.tags import METRICS, Entity, entities_of, normalize_tag, strict_entities_of


@pytest.mark.parametrize(
    ("tag", "expected"),
    [("B-PER", "B-PER"), ("PER-B", "B-PER"), ("NUM-I", "I-NUM"), ("O", "O"), ("-", "O"), ("I-AFW-X", "I-AFW-X")],
)
def test_tags_are_normalized(tag, expected):
    assert normalize_tag(tag) == expected


@pytest.mark.parametrize("tag", ["PER", "E-PER", "B-", "-B", "S"])
def test_what_is_no_tag_is_refused(tag):
    with pytest.raises(ValueError, match=tag):
        normalize_tag(tag)


def test_entities_begin_and_end():
    tags = ["B-A", "I-A", "B-A", "O", "I-B", "I-B", "I-A", "B-B"]
    assert entities_of(tags) == [
        Entity(0, 2, "A"),
        Entity(2, 3, "A"),
        Entity(4, 6, "B"),
        Entity(6, 7, "A"),
        Entity(7, 8, "B"),
    ]
    assert strict_entities_of(tags) == [Entity(0, 2, "A"), Entity(2, 3, "A"), Entity(7, 8, "B")]


TRUTH = [["B-A", "I-A", "O", "B-B"], ["O", "B-B", "I-B"], ["B-C"]]
FOUND = [["B-A", "I-A", "O", "I-B"], ["O", "B-B", "O"], ["O"]]


def test_measures_are_those_of_seqeval_and_scikit_learn():
    """The numbers are what seqeval 1.2.2 and scikit-learn 1.9 print for these tags."""
    measured = {name: function(TRUTH, FOUND) for name, function in METRICS.items()}
    assert measured["entity_f1"] == pytest.approx(4 / 7)
    assert measured["entity_precision"] == pytest.approx(2 / 3)
    assert measured["entity_recall"] == pytest.approx(1 / 2)
    assert measured["entity_macro_f1"] == pytest.approx(1 / 3)
    # O counts [CLS] and [SEP] as well: 8 of 8 true ones found, and 10 found.
    f1 = {"O": 16 / 18, "B-A": 1.0, "I-A": 1.0, "B-B": 2 / 3, "I-B": 0.0, "B-C": 0.0}
    assert measured["character_macro_f1"] == pytest.approx(sum(f1.values()) / 6)


def test_nothing_found_scores_nothing():
    nothing = [["O"] * len(tags) for tags in TRUTH]
    measured = {name: function(TRUTH, nothing) for name, function in METRICS.items() if name.startswith("entity")}
    assert measured == dict.fromkeys(measured, 0.0)
