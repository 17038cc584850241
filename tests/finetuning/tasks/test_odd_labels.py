"""Labels as programs write them mean the same to `fit`, to the commands in every form of file, and to score-text."""

import csv
import dataclasses
import json
import math

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from tiny_config import tiny_config

from albert_tf.base.errors import InputError
from albert_tf.finetuning import Classification, MultiLabel
from albert_tf.finetuning.datasets import DATASETS
from albert_tf.finetuning.tasks.labelled_text import LabelSetReader, labels_of, labels_of_sets, read_examples
from albert_tf.runs.from_python import settings_for, write_given
from albert_tf.runs.given_data import read_given
from albert_tf.serving.choosing import GIVEN_LABEL, describe_accuracy, draw_examples


def task_of(given, path):
    """Returns the task that `fit` makes of examples that were written to a file."""
    settings, config = settings_for(given, {}).placed([path]), tiny_config(100)
    return settings.completed(config, is_known=False).make_task(config)


class NotAvailable:
    """Behaves as pandas.NA: comparing it says neither yes nor no."""

    def __ne__(self, other):
        return self

    def __eq__(self, other):
        return self

    def __bool__(self):
        raise TypeError("boolean value of NA is ambiguous")

    __hash__ = object.__hash__


NAN, NA = math.nan, NotAvailable()
REFUSED = "refused"
# Values of a column, and the labels that they are; or that whoever reads them names the first one that is none.
ONE_LABEL = {
    "texts": (["가", "나"], ["가", "나"]),
    "whole": ([1, 0], ["1", "0"]),
    "whole with a fraction": ([1.0, 2.0], ["1", "2"]),
    "written with a fraction": (["1.0", "2.0"], ["1", "2"]),
    "truth": ([True, False], ["true", "false"]),
    "of numpy": (list(np.array([3, 4])), ["3", "4"]),
    "a gap": ([1.0, NAN], REFUSED),
    "null": (["가", None], REFUSED),
    "pandas' gap": (["가", NA], REFUSED),
    "nothing": (["가", ""], REFUSED),
    "a list": ([["가"], ["나"]], REFUSED),
}
SEVERAL = {
    "lists": ([["가", "나"], []], [("가", "나"), ()]),
    "a gap": ([["가", "나"], None], REFUSED),
    "a gap inside": ([["가", "나"], [None]], REFUSED),
    "twice": ([["가", "나"], ["가", "가"]], REFUSED),
}


def by_fit(values, kind, folder):
    given = read_given([f"글 {number}" for number in range(len(values))], values, kind=kind)
    path = write_given(given, str(folder), "train")
    return task_of(given, path).read(path)


def by_command(path, task_name, kind):
    files = DATASETS[task_name]
    if kind == "labels":
        return Classification(tiny_config(100), labels_of(read_examples(path, files, True)), files).read(path)
    examples = read_examples(path, files, True, LabelSetReader(","))
    return MultiLabel(tiny_config(100), labels_of_sets(examples), files).read(path)


def write_jsonl(path, values):
    rows = [{"document": f"글 {n}", "label": None if value is NA else _plain(value)} for n, value in enumerate(values)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_csv(path, values):
    """Writes values as pandas does."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["document", "label"])
        writer.writerows(
            [f"글 {n}", "" if value is NA or value in (None, NAN) else value] for n, value in enumerate(values)
        )


def write_parquet(path, values):
    values = [None if value is NA else _plain(value) for value in values]
    table = {"document": [f"글 {number}" for number in range(len(values))], "label": values}
    pyarrow.parquet.write_table(pyarrow.table(table), path)


def _plain(value):
    return value.item() if isinstance(value, np.generic) else value


WRITERS = {"jsonl": write_jsonl, "csv": write_csv, "parquet": write_parquet}


def read_by(reader, values, kind, folder):
    """Returns the labels that a reader finds, or `REFUSED`."""
    try:
        if reader == "fit":
            return [example.label for example in by_fit(values, kind, folder)]
        path = folder / f"train.{reader}"
        WRITERS[reader](path, values)
        return [example.label for example in by_command(str(path), reader, kind)]
    except InputError as error:
        assert "label" in str(error)
        return REFUSED


@pytest.mark.parametrize("reader", ["fit", *WRITERS])
@pytest.mark.parametrize("name", ONE_LABEL)
def test_one_label(name, reader, tmp_path):
    values, wanted = ONE_LABEL[name]
    assert read_by(reader, values, "labels", tmp_path) == wanted


@pytest.mark.parametrize("reader", ["fit", *WRITERS])
@pytest.mark.parametrize("name", SEVERAL)
def test_several_labels(name, reader, tmp_path):
    values, wanted = SEVERAL[name]
    if reader == "csv" and name == "a gap":
        wanted = [("가", "나"), ()]  # nothing between two commas is no label
    assert read_by(reader, values, "multi_label", tmp_path) == wanted


@pytest.mark.parametrize("name", [name for name, (_, wanted) in ONE_LABEL.items() if wanted != REFUSED])
def test_labels_of_a_template_are_those_of_training(name, tmp_path):
    values, wanted = ONE_LABEL[name]
    answers = {label: {"pmi": 0.0, "score": 0.0, "per_character": 0.0} for label in wanted}
    found = [{"answers": answers, GIVEN_LABEL: _plain(value)} for value in [*values, None, NAN]]
    assert describe_accuracy(found).startswith("of 2 labels right: 50.0% by pmi")
    for ending, write in WRITERS.items():
        write(tmp_path / f"train.{ending}", values)
        drawn = draw_examples(str(tmp_path / f"train.{ending}"), "document", "label", wanted, 2, seed=0)
        assert {label for _, label in drawn} == set(wanted)


@pytest.mark.parametrize("text", ["['가' '나']", "[1 2]", "['가', nan]", "['가'", "['가', '나"])
def test_list_that_cannot_be_read_is_refused_or_no_list(text, tmp_path):
    path = tmp_path / "train.csv"
    write_csv(path, [text, "가,나"])
    if text.endswith("]"):
        with pytest.raises(InputError, match="a list written as text that can't be read"):
            by_command(str(path), "csv", "multi_label")
    else:
        assert by_command(str(path), "csv", "multi_label")


def test_labels_in_brackets_are_labels(tmp_path):
    write_csv(tmp_path / "train.csv", ["[광고]", "[공지],[광고]"])
    found = by_command(str(tmp_path / "train.csv"), "csv", "multi_label")
    assert [example.label for example in found] == [("[광고]",), ("[공지]", "[광고]")]


def test_labels_of_several_files_are_read_alike(tmp_path):
    parts = {"train-0": [1.0, 2.0, 3.0], "train-1": [1.0, 1.5, 2.0], "dev": [2.0, 1.0, 1.0], "whole": [1, 2, 3]}
    for name, values in parts.items():
        write_parquet(tmp_path / f"{name}.parquet", values)
    paths = tuple(str(tmp_path / f"{name}.parquet") for name in ("train-0", "train-1"))
    labels = labels_of(read_examples(paths, DATASETS["parquet"], True))
    assert labels == ("1.0", "1.5", "2.0", "3.0")
    task = Classification(tiny_config(100), labels, DATASETS["parquet"])
    for name in parts:
        values = [f"{value:.1f}" for value in parts[name]]
        assert [example.label for example in task.read(str(tmp_path / f"{name}.parquet"))] == values


def test_column_of_a_label_that_no_text_has_keeps_its_label(tmp_path):
    lines = ["document,욕설,차별,깨끗함", "가,1,0,0", "나,0,0,1"]
    (tmp_path / "train.csv").write_text("\n".join(lines))
    columns = ("욕설", "차별", "깨끗함")
    files = dataclasses.replace(DATASETS["csv"], label_column=",".join(columns))
    examples = read_examples(str(tmp_path / "train.csv"), files, True, LabelSetReader(","))
    assert labels_of_sets(examples, columns) == tuple(sorted(columns))
    pandas = pytest.importorskip("pandas")
    given = read_given(pandas.read_csv(tmp_path / "train.csv"), list(columns), ("document",))
    path = write_given(given, str(tmp_path / "given"), "train")
    assert task_of(given, path).labels == tuple(sorted(columns))


@pytest.mark.parametrize("form", ["List", "Sequence", "older"])
def test_lists_of_class_labels_have_their_names(form, tmp_path):
    inner = {"names": ["행복", "분노", "슬픔"], "_type": "ClassLabel"}
    feature = [inner] if form == "older" else {"feature": inner, "_type": form}
    info = json.dumps({"info": {"features": {"label": feature}}})

    def read(labels):
        table = pyarrow.table({"document": ["글"] * len(labels), "label": labels})
        pyarrow.parquet.write_table(table.replace_schema_metadata({"huggingface": info}), tmp_path / "train.parquet")
        return [example.label for example in by_command(str(tmp_path / "train.parquet"), "parquet", "multi_label")]

    assert read([[0, 2], [], [1]]) == [("행복", "슬픔"), (), ("분노",)]
    with pytest.raises(InputError, match="row 1: nothing under label"):
        read([[0, -1]])


def test_pandas_gaps_are_refused_by_name():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(InputError, match=r"labels\[1\] must be a string"):
        read_given(["가", "나", "다"], pandas.Series([1, None, 0], dtype="Int64"))


def test_characters_with_blanks_among_them_are_a_text(tmp_path):
    tokens, tags = list("영동고속도로 강릉"), ["B-LC", *["I-LC"] * 5, "O", "B-LC", "I-LC"]
    given = read_given([tokens, list("강릉 감")], [tags, ["B-LC", "I-LC", "O", "O"]])
    assert given.texts[0] == "영동고속도로 강릉" and given.labels[0] == [(0, 6, "LC"), (7, 9, "LC")]
    path = write_given(given, str(tmp_path), "train")
    read = task_of(given, path).read(path)
    assert read[0].text == "영동고속도로 강릉" and list(read[0].tags) == [
        tag for t, tag in zip(tokens, tags) if t != " "
    ]
    assert "keep its blanks" not in given.describe()
    assert "keep its blanks" in read_given([list("강릉")], [["B-LC", "I-LC"]]).describe()


def test_any_of_several_answers_is_right(tmp_path):
    context = "조선의 수도는 한양이며 지금의 서울이다."
    gold = {"text": ["한양", "서울"], "answer_start": [context.index("한양"), context.index("서울")]}
    given = read_given([("수도는 어디인가?", context)], [gold], kind="answers")
    path = write_given(given, str(tmp_path), "dev")
    task = task_of(given, path)
    examples = task.read(path)
    for answer, score in (("서울", 100.0), ("한양", 100.0), ("조선", 0.0)):
        assert task.score(examples, [{"id": "0", "text": answer, "nbest": []}])["exact_match"] == score
