"""The labels of a training file: what is told of them, what is warned of, and what is refused."""

import pytest

from albert_tf.base.errors import InputError
from albert_tf.finetuning.texts.labelled_text import LabelledText, check_labels, label_report, labels_of


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
