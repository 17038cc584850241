"""The share of a training file that is put aside to evaluate on."""

import collections
import random
import types

import pytest
from tiny_config import tiny_config

from albert_tf.base.errors import InputError
from albert_tf.finetuning import MultiLabel, runner
from albert_tf.finetuning.datasets import Share, dev_rows
from albert_tf.finetuning.tasks.labelled_text import LabelledText

ROWS = [(f"글 {number}", "좋음" if number % 4 else "나쁨") for number in range(400)]


def chosen_texts(rows, fraction):
    return {text for (text, _), is_dev in zip(rows, dev_rows(rows, fraction)) if is_dev}


@pytest.mark.parametrize("fraction", [0.05, 0.5])
def test_share_is_kept_of_each_label(fraction):
    counts = collections.Counter(label for (_, label), is_dev in zip(ROWS, dev_rows(ROWS, fraction)) if is_dev)
    assert counts == {"좋음": round(300 * fraction), "나쁨": round(100 * fraction)}


def test_same_texts_are_chosen_whatever_their_order_and_when_others_are_added():
    before = chosen_texts(ROWS, 0.1)
    assert chosen_texts(random.Random(5).sample(ROWS, len(ROWS)), 0.1) == before
    more = [(f"새 글 {number}", "좋음") for number in range(100)]
    assert len(chosen_texts(ROWS + more, 0.1) & before) >= 0.75 * len(before)


def test_equal_texts_are_on_one_side_whatever_their_labels():
    rows = [*ROWS, *((text, "나쁨") for text, _ in ROWS[::3]), *ROWS[::5]]
    sides = collections.defaultdict(set)
    for (text, _), is_dev in zip(rows, dev_rows(rows, 0.2)):
        sides[text].add(is_dev)
    assert all(len(side) == 1 for side in sides.values())
    assert sum(dev_rows(rows, 0.2)) == pytest.approx(0.2 * len(rows), abs=3)


def test_rare_labels_have_their_share_together_and_keep_one_text_each():
    rows = [(f"{label} {number}", str(label)) for label in range(30) for number in range(4)]
    are_dev = dev_rows(rows, 0.1)
    assert sum(are_dev) == 12
    assert {label for (_, label), is_dev in zip(rows, are_dev) if not is_dev} == {str(label) for label in range(30)}
    assert not any(dev_rows([("하나", "a"), ("둘", "b")], 0.9))


def test_rare_label_among_several_keeps_an_example_to_train_on():
    keys = [(f"글 {number}", ("배송",) if number % 2 else ("포장", "빠름")) for number in range(400)]
    for number, is_dev in enumerate(dev_rows(keys, 0.1)):
        if is_dev and number < 20:
            keys[number] = (keys[number][0], ("환불", "배송"))
    are_dev = dev_rows(keys, 0.1)
    counts = collections.Counter(label for (_, labels), is_dev in zip(keys, are_dev) for label in labels if is_dev)
    total = collections.Counter(label for _, labels in keys for label in labels)
    assert all(counts[label] < total[label] for label in total)
    for label in ("배송", "포장", "빠름"):
        assert counts[label] == pytest.approx(total[label] / 10, abs=2)


@pytest.mark.parametrize(
    ("fraction", "rows"),
    [(0.1, [("하나", ""), ("둘", "")]), (0.5, [("같다", "")] * 9), (0.1, [(f"글 {n}", str(n)) for n in range(30)])],
)
def test_share_that_is_empty_is_refused(fraction, rows):
    told = f"`dev_fraction={fraction:g}` leaves none of the {len(rows)} examples of a.csv to evaluate on; choose"
    with pytest.raises(InputError, match=told):
        Share(fraction, is_dev=True).choose("a.csv", [text for text, _ in rows], rows)


def test_parts_of_a_file_are_told_apart_by_content(tmp_path):
    path = tmp_path / "train.csv"
    path.write_text("a")
    train, dev = (runner.identity_of(str(path), Share(0.1, is_dev)) for is_dev in (False, True))
    other = runner.identity_of(str(path), Share(0.2, is_dev=True))
    assert len({part["sha256"] for part in (train, dev, other)}) == 3
    assert {part["name"] for part in (train, dev, other)} == {"train.csv"}
    path.write_text("b")
    assert runner.identity_of(str(path), Share(0.1, is_dev=True)) != dev
    both = runner.identity_of((str(path), str(path)))
    assert both["name"] == "train.csv+train.csv" and both["sha256"] != runner.identity_of(str(path))["sha256"]


def test_run_whose_examples_were_divided_otherwise_is_not_evaluated(tmp_path, monkeypatch):
    examples = [LabelledText(f"글 {number}", None, ("배송",), number) for number in range(4)]
    dev_file = runner.EncodedFile(str(tmp_path / "train.tsv"), examples, {}, 8, Share(0.1, is_dev=True))
    run = types.SimpleNamespace(objective=MultiLabel(tiny_config(100), ("배송", "포장")), output_dir=str(tmp_path))
    monkeypatch.setattr(runner, "read_settings", lambda folder: {"dev_fraction": 0.1})
    with pytest.raises(InputError, match=r"has learnt some of the examples that are put aside of .*train.tsv now"):
        runner.evaluate(run, dev_file)
