"""The labels of a training file: what is told of them, what is warned of, and what is refused."""

import collections

import pytest

from albert_tf.errors import InputError
from albert_tf.finetuning.labelled_text import LabelledText
from albert_tf.finetuning.labels import check_labels, label_report, labels_of


def examples_of(*labels):
    """Returns examples with these labels, on lines 2, 3, ..."""
    return [LabelledText(f"글 {line}", None, label, line, "train.tsv") for line, label in enumerate(labels, start=2)]


def report(examples, labels=None):
    return label_report("train.tsv", examples, labels or labels_of(examples))


def test_labels_are_told_with_their_counts():
    assert report(examples_of("b", "a", "b", "c")) == ["3 labels in the 4 examples of train.tsv: a (1), b (2), c (1)"]


def test_of_many_labels_the_most_frequent_are_told():
    names = [f"{number:02}" for number in range(12)]
    labels = [name for name in names for _ in range(20 + int(name))]
    assert report(examples_of(*labels)) == [
        f"12 labels in the {len(labels)} examples of train.tsv: "
        + ", ".join(f"{name} ({20 + int(name)})" for name in reversed(names[2:]))
        + ", and 2 more"
    ]


def test_label_with_a_handful_of_examples_among_frequent_ones_is_warned_of():
    examples = examples_of(*["긍정"] * 100, *["부정"] * 90, "궁정", *["중립"] * 9)
    _, warning = report(examples)
    assert warning == (
        "warning: rare labels in train.tsv: '궁정' (1 example, the first on line 192); if one is mistyped, correct it"
    ), "9 of 199 are few, but not a twentieth of the most frequent label's"


def test_label_of_the_list_without_examples_is_warned_of():
    _, warning = report(examples_of("0", "1", "0"), ("0", "1", "2"))
    assert warning == "warning: rare labels in train.tsv: '2' (no example); if one is mistyped, correct it"


@pytest.mark.parametrize(
    "counts", [{"0": 9, "1": 3}, {"0": 5000, "1": 200}, {"a": 1, "b": 1, "c": 1}, {"0": 150, "1": 8}]
)
def test_balanced_or_small_data_is_not_warned_of(counts):
    assert len(report(examples_of(*collections.Counter(counts).elements()))) == 1


def test_of_many_rare_labels_the_first_are_named():
    _, warning = report(examples_of(*["자주"] * 30, *(f"{number:02}" for number in range(15))))
    assert warning.count("(1 example, ") == 10
    assert "'09' (1 example, the first on line 41), and 5 more; if one is" in warning


@pytest.mark.parametrize(
    ("label", "other"),
    [
        ("positive", "Positive"),
        ("positive", "positive "),
        ("매우 좋음", "매우좋음"),
        ("1", "１"),
        ("좋다", "조\u11c2다"),
        ("neutral", "neu\u200btral"),
        ("straße", "STRASSE"),
    ],
)
def test_labels_that_look_alike_are_warned_of(label, other):
    examples = examples_of(*[label] * 20, *[other] * 12, *["x"] * 20)
    _, warning = report(examples)
    first, second = sorted([(label, 20, 2), (other, 12, 22)])
    assert warning == (
        "warning: labels in train.tsv that look alike: "
        f"{first[0]!r} ({first[1]} examples, the first on line {first[2]}) and "
        f"{second[0]!r} ({second[1]} examples, the first on line {second[2]}); if they are one, write it one way"
    )


@pytest.mark.parametrize(
    ("label", "other"), [("0", "1"), ("긍정", "부정"), ("+", "-"), ("pos", "neg"), ("좋다", "졸다")]
)
def test_labels_that_differ_are_not_warned_of(label, other):
    assert len(report(examples_of(*[label, other] * 20))) == 1


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (("0", "1", "0"), "`labels`: the label '0' appears twice; name each label once"),
        (("0",), "`labels`: '0' is the only label; a classifier needs two or more"),
        (("0", ""), "`labels`: a label is empty; give it a name, or remove it"),
    ],
)
def test_list_of_labels_that_makes_no_sense_is_refused(labels, message):
    with pytest.raises(InputError) as error:
        check_labels(labels, "`labels`")
    assert str(error.value) == message


def test_labels_of_a_file_are_sorted():
    assert labels_of(examples_of("b", "a", "b")) == ("a", "b")


def test_example_without_label_is_named():
    with pytest.raises(InputError) as error:
        labels_of(examples_of("b", "", "a"))
    assert str(error.value) == "train.tsv, line 3: the label is empty; give the line one, or remove it"


def test_file_with_one_label_is_refused():
    with pytest.raises(InputError, match=r"^train.tsv: 'a' is the only label; a classifier needs two or more$"):
        labels_of(examples_of("a", "a"))


def test_texts_with_different_labels_are_told_of():
    again = [LabelledText("글 2", None, label, line, "train.tsv") for line, label in ((9, "b"), (10, "a"))]
    said = report([*examples_of("a", "b"), *again])
    assert said[1:] == ["warning: 1 text of train.tsv with different labels, as on lines 2 and 9"]
    assert len(report([*examples_of("a", "b"), again[1]])) == 1  # twice with one label
