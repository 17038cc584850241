"""Reading labelled texts from tab-separated files, encoding them, and which labels they have."""

import dataclasses
import itertools
import re
import tempfile

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.finetuning import Classification
from albert_tf.finetuning.datasets import DATASETS, DataFiles
from albert_tf.finetuning.tasks.labelled_text import (
    LabelledText,
    check_labels,
    encode_examples,
    label_report,
    labels_of,
    line_names,
    read_examples,
)

PAIRS = DataFiles(text_column="sentence1", text_pair_column="sentence2", label_column="gold_label")


@pytest.fixture
def write(tmp_path):
    def write_lines(*lines, name="train.tsv"):
        path = tmp_path / name
        path.write_bytes("".join(line + "\n" for line in lines).encode())
        return str(path)

    return write_lines


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("num_ends", [0, 1, 3])
def test_columns_are_found_by_name_and_empty_lines_at_the_end_passed_over(tmp_path, line_end, num_ends):
    lines = ["gold_label\tsentence2\tgenre\tsentence1", "neutral\t둘\tx\t하나", "entailment\t아 짜증나네요..\tx\t 셋"]
    (tmp_path / "train.tsv").write_bytes((line_end.join(lines) + num_ends * line_end).encode())
    assert read_examples(str(tmp_path / "train.tsv"), PAIRS, needs_label=True) == [
        LabelledText("하나", "둘", "neutral", line=2),
        LabelledText(" 셋", "아 짜증나네요..", "entailment", line=3),
    ]


# Whatever a line of tab-separated text can hold: quotation marks mean nothing, nor do Unicode's other line ends.
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r")), min_size=1))
@example(["", '"', '그가 "좋다고 했다', "  두 칸  ", '"a" "b"', "줄\u2028바꿈\x0b\x0c\x85끝"])
@settings(deadline=None)
def test_text_is_taken_as_it_stands(texts):
    with tempfile.NamedTemporaryFile(suffix=".tsv") as file:
        file.write("".join(["document\tlabel\n", *(f"{text}\t1\n" for text in texts)]).encode())
        file.flush()
        examples = read_examples(file.name, DATASETS["tsv"], needs_label=True)
    assert [example.text for example in examples] == texts
    assert [example.line for example in examples] == list(range(2, len(texts) + 2))


def test_file_needs_rows_and_labels_only_where_they_are_needed(write):
    path = write("document", "좋다")
    assert read_examples(path, DATASETS["tsv"], needs_label=False)[0].label is None
    message = f"{path}, line 1: no column named label; the header has document; name your columns with `text_column`, "
    with pytest.raises(InputError, match=message):
        read_examples(path, DATASETS["tsv"], needs_label=True)
    for lines in ([], ["document\tlabel"]):
        with pytest.raises(InputError, match=path):
            read_examples(write(*lines), DATASETS["tsv"], needs_label=True)


def test_empty_line_is_a_text_where_texts_are_all_there_is(write):
    path = write("document", "좋다", "")
    assert [example.text for example in read_examples(path, DATASETS["tsv"], needs_label=False)] == ["좋다", ""]


def test_first_object_without_a_label_is_a_row_as_any_other(write, capsys):
    path = write('{"document": "그저 그렇다"}', '{"document": "좋다", "label": 1}', name="train.jsonl")
    with pytest.raises(InputError, match=r"line 1: nothing under label; .* `on_bad_row=skip`"):
        read_examples(path, DATASETS["jsonl"], needs_label=True)
    skipping = dataclasses.replace(DATASETS["jsonl"], on_bad_row="skip")
    assert [example.text for example in read_examples(path, skipping, needs_label=True)] == ["좋다"]
    assert "warning: 1 row left out; " in capsys.readouterr().out


def test_bytes_are_no_texts(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.Table.from_pylist([{"document": "좋다".encode(), "label": 1}]), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="row 1: document holds bytes, not text; write it as strings, or name"):
        read_examples(str(tmp_path / "a.parquet"), DATASETS["parquet"], needs_label=True)


def test_line_that_is_not_utf8_is_named(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_bytes(b"document\tlabel\n" + "좋다\t1\n".encode("cp949"))
    with pytest.raises(InputError, match="line 2: not valid UTF-8"):
        read_examples(str(path), DATASETS["tsv"], needs_label=True)


def classification(*labels):
    return Classification(AlbertConfig(vocab_size=30), labels)


def test_labels_are_numbered_in_the_order_of_the_list(write, sample_tokenizer):
    path = write("document\tlabel", "a\tneutral", "b\tentailment", "c\tneutral")
    task = classification("entailment", "neutral")
    ids = task.encode(task.read(path), sample_tokenizer, 8)["label_ids"]
    np.testing.assert_array_equal(ids, [1, 0, 1])
    assert ids.dtype == np.int32
    assert task.encode([LabelledText("a", None, None, 2)], sample_tokenizer, 8)["label_ids"] == [0]


@pytest.mark.parametrize("label", ["2", "1 ", "-"])
def test_unknown_label_names_file_line_and_what_is_allowed(write, label):
    path = write("document\tlabel", "a\t0", f"b\t{label}")
    message = re.escape(f"{path}, line 3: label {label!r} is not in the list 0, 1 (set the list with `labels`); ")
    with pytest.raises(InputError, match=message):
        classification("0", "1").read(path)


def test_unknown_labels_may_be_left_out(write, capsys):
    path = write("document\tlabel", "a\t0", "b\t2", "c\t1", "d\t ", "e\t2")
    files = dataclasses.replace(DATASETS["tsv"], on_bad_row="skip")
    assert [example.text for example in Classification(AlbertConfig(vocab_size=30), ("0", "1"), files).read(path)] == [
        "a",
        "c",
    ]
    told = f"warning: 3 rows left out; the first: {path}, line 3: label '2' is not in the list 0, 1"
    assert told in capsys.readouterr().out
    with pytest.raises(InputError, match=r"no row with a label that can be used; the last one: label '2' is not in"):
        Classification(AlbertConfig(vocab_size=30), ("a", "b"), files).read(path)
    # Each text to predict is to have an answer.
    with pytest.raises(
        InputError, match=r"line 3: label '2' is not in the list 0, 1 \(set the list with `labels`\); correct the row$"
    ):
        Classification(AlbertConfig(vocab_size=30), ("0", "1"), files).read(path, needs_labels=False)


def test_file_to_predict_may_leave_labels_open(write, sample_tokenizer):
    path = write("document\tlabel", "a\t", "b\t-", "c\t?", "d\t1")
    task = classification("0", "1")
    examples = task.read(path, needs_labels=False)
    np.testing.assert_array_equal(task.encode(examples, sample_tokenizer, 8)["label_ids"], [0, 0, 0, 1])


def test_several_files_are_read_as_one(write):
    paths = (write("document\tlabel", "가\t0", name="a.tsv"), write("label\tdocument", "1\t나", name="b.tsv"))
    examples = read_examples(paths, DATASETS["tsv"], needs_label=True)
    assert [(each.text, each.label, each.path) for each in examples] == [("가", "0", paths[0]), ("나", "1", paths[1])]
    assert line_names(examples) == ["2 of a.tsv", "2 of b.tsv"] and line_names(examples[:1]) == ["2"]


def decoded(tokenizer, features, row):
    pieces = [tokenizer.vocabulary.pieces[piece] for piece in features["input_ids"][row]]
    return pieces, features["input_mask"][row].tolist(), features["segment_ids"][row].tolist()


@pytest.mark.parametrize("texts", [("영화가 참 좋았다.",), ("",), ("비가 온다", "우산을 샀다")])
def test_texts_are_encoded_between_special_tokens(sample_tokenizer, texts):
    features = encode_examples(sample_tokenizer, [LabelledText(*texts, *[None] * (3 - len(texts)), 0)], 24)
    first, *second = ([*sample_tokenizer.tokenize(text), "[SEP]"] for text in texts)
    expected = ["[CLS]", *first, *itertools.chain(*second)]
    padding = 24 - len(expected)
    pieces, mask, segments = decoded(sample_tokenizer, features, 0)
    assert pieces == expected + ["[PAD]"] * padding
    assert mask == [1] * len(expected) + [0] * padding
    assert segments == [0] * (len(first) + 1) + [1] * (len(expected) - len(first) - 1) + [0] * padding
    assert {values.dtype for values in features.values()} == {np.dtype(np.int32)}


LONG, OTHER = "아주 긴 이야기를 하나 들려주고 싶다", "그 이야기는 어제부터 오늘까지 끝나지 않았다"


@pytest.mark.parametrize(
    ("texts", "length", "kept"),
    [((LONG,), 8, 6), ((LONG, "나무"), 12, None), (("나무", LONG), 12, None), ((LONG, OTHER), 13, 5)],
)
def test_longest_text_loses_its_end(sample_tokenizer, texts, length, kept):
    """Of a pair the longer one first, and two long ones alike."""
    if kept is None:
        short = len(sample_tokenizer.tokenize("나무"))
        kept = length - 3 - short
        assert kept > short
    features = encode_examples(sample_tokenizer, [LabelledText(*texts, *[None] * (3 - len(texts)), 0)], length)
    pieces, mask, _ = decoded(sample_tokenizer, features, 0)
    parts = [[*sample_tokenizer.tokenize(text)[:kept], "[SEP]"] for text in texts]
    assert pieces == ["[CLS]", *itertools.chain(*parts)] and mask == [1] * length


def test_texts_that_another_program_has_quoted_are_told_of(write, capsys):
    def said_of(*texts):
        rows = [f"{number}\t{text}\t0" for number, text in enumerate(texts)]
        path = write("id\tdocument\tlabel", *rows)
        assert [each.text for each in read_examples(path, DATASETS["nsmc"], needs_label=True)] == list(texts)
        return "with quotation marks as in CSV" in capsys.readouterr().out

    assert said_of("좋다", '"그는 ""최고""라고"', '"""별로"""')
    assert not said_of('"최고"라고', '"그는 ""최고""라고"')  # the first is not quoted, and so neither is the second
    assert not said_of('"최고"', '최고라는 "말"')


def examples_of(*labels):
    """Returns examples with these labels, on lines 2, 3, ..."""
    return [LabelledText(f"글 {line}", None, label, line, "train.tsv") for line, label in enumerate(labels, start=2)]


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


def test_labels_of_a_file_are_sorted_at_least_two_and_none_empty():
    assert labels_of(examples_of("b", "a", "b")) == ("a", "b")
    with pytest.raises(InputError, match=r"^train.tsv, line 3: the label is empty; give the line one, or remove it$"):
        labels_of(examples_of("b", "", "a"))
    with pytest.raises(InputError, match=r"^train.tsv: 'a' is the only label; a classifier needs two or more$"):
        labels_of(examples_of("a", "a"))


def test_texts_with_different_labels_are_told_of():
    again = [LabelledText("글 2", None, label, line, "train.tsv") for line, label in ((9, "b"), (10, "a"))]
    examples = [*examples_of("a", "b"), *again]
    said = label_report("train.tsv", examples, ("a", "b"))
    assert said[0] == "2 labels in the 4 examples of train.tsv: a (2), b (2)"
    assert said[1:] == ["warning: 1 text of train.tsv with different labels, as on lines 2 and 9"]
    assert len(label_report("train.tsv", [*examples[:2], again[1]], ("a", "b"))) == 1  # twice with one label
