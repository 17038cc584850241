"""Reading rows of labelled data: every format, what is malformed, and what is left out."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.errors import InputError
from albert_tf.finetuning.datasets import DATASETS
from albert_tf.finetuning.labelled_text import read_examples
from albert_tf.finetuning.tables import BadRows, read_rows, write_rows

ROWS = [{"document": '그가 "좋다, 좋아" 했다', "label": "1"}, {"document": "두 줄\n나쁘다", "label": "0"}]


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def values(path, columns=None):
    return [row.values for row in read_rows(path, columns, BadRows())]


def test_csv_is_quoted(tmp_path):
    path = write(tmp_path, "a.csv", 'document,label\r\n"그가 ""좋다, 좋아"" 했다",1\r\n"두 줄\n나쁘다",0\r\n')
    assert values(path) == ROWS
    assert [row.number for row in read_rows(path, None, BadRows())] == [2, 4]


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_json_is_a_list_or_lines_of_objects(tmp_path, name):
    assert values(write(tmp_path, name, json.dumps(ROWS))) == ROWS
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS)
    assert values(write(tmp_path, name, lines)) == ROWS


def test_value_inside_an_object_has_a_column_of_its_own(tmp_path):
    path = write(tmp_path, "a.json", json.dumps([{"text": "a", "labels": {"real-label": 3.5}}]))
    assert values(path)[0]["labels.real-label"] == 3.5


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_half_a_surrogate_pair_becomes_a_character_that_can_be_written(tmp_path, name):
    row = r'{"document": "좋\ud83d다 \ud83d\ude00 \uD55C", "labels": {"hate": "\udc00"}}'
    [found] = values(write(tmp_path, name, f"[{row}]" if name == "a.json" else row))
    assert found["document"] == "좋\ufffd다 😀 한" and found["labels.hate"] == "\ufffd"
    write_rows(str(tmp_path / "errors.tsv"), [list(found.values())[::2]])


def test_text_of_csv_may_be_of_any_length(tmp_path):
    path = write(tmp_path, "a.csv", f'document,label\n"{"가나 " * 60_000}",1\n')
    assert len(values(path)[0]["document"]) == 180_000


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "a.parquet")
    assert values(str(tmp_path / "a.parquet")) == ROWS
    with pytest.raises(InputError, match="can't read the labelled data"):
        values(write(tmp_path, "broken.parquet", "no parquet"))


def test_files_without_header_have_the_columns_that_are_named(tmp_path):
    path = write(tmp_path, "train.tsv", "gj04\t1\t\tOur friends.\ngj04\t0\t*\tThem left.\n")
    examples = read_examples(path, DATASETS["cola"], needs_label=True)
    assert [(example.text, example.label, example.line) for example in examples] == [
        ("Our friends.", "1", 1),
        ("Them left.", "0", 2),
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", 'a,b\n1,"2\n', "line 2: not CSV"),
        ("a.csv", "a;b\n1,5;2\n", "line 1: semicolons between the columns, not commas; write the file with commas"),
        ("a.csv", "a\tb\n1\t2\n", "line 1: tabs between the columns, not commas; let its name end in .tsv, and pass "),
        ("a.csv", "a,b\n1\n", "line 2: 1 columns, but the header has 2"),
        ("a.json", '[{"a": 1},', "line 1: not JSON"),
        ("a.json", "[1]", "row 1: not a JSON object"),
        ("a.jsonl", '{"a": 1}\n{"a":\n', "line 2: not JSON"),
        ("a.jsonl", "[" * 100_000, "line 1: not JSON"),
        ("a.jsonl", '{"a": 1}\n{"a": ' + "9" * 5000 + "}\n", "line 2: not JSON"),
        ("a.tsv", "a\tb\n1\t2\t3\n", "line 2: 3 columns, but the header has 2"),
        ("a.jsonl", "", "has no lines below its header"),
    ],
)
def test_malformed_file_is_named_with_its_line(tmp_path, name, content, message):
    path = write(tmp_path, name, content)
    with pytest.raises(InputError, match=f"{re.escape(path)}.*{message}"):
        values(path)


def test_bad_rows_are_left_out_and_counted(tmp_path, capsys):
    path = write(tmp_path, "a.tsv", "document\tlabel\n좋다\t1\n한 칸\na\tb\tc\n나쁘다\t0\n")
    bad_rows = BadRows("skip")
    assert [row.number for row in read_rows(path, None, bad_rows)] == [2, 5]
    bad_rows.warn()
    warned = capsys.readouterr().out
    assert warned == f"warning: 2 rows left out; the first: {path}, line 3: 1 columns, but the header has 2\n"


def test_row_without_text_is_refused(tmp_path):
    path = write(tmp_path, "a.jsonl", '{"document": "a", "label": 1}\n{"document": null, "label": 0}\n')
    with pytest.raises(InputError, match="line 2: nothing under document; correct the row, or pass --on_bad_row=skip"):
        read_examples(path, DATASETS["tsv"], needs_label=True)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=5))
@settings(deadline=None)
def test_what_is_written_has_a_line_for_each_row(tmp_path_factory, texts):
    path = str(tmp_path_factory.mktemp("written") / "a.tsv")
    write_rows(path, [["text", "label"], *([text, "1"] for text in texts)])
    found = [row.values["text"] for row in read_rows(path, None, BadRows())]
    assert found == [re.sub("[\t\n\r]", " ", text) for text in texts]


def test_published_files_are_read_whole(shared_data):
    for name, path, count in (
        ("klue_nli", "klue/klue-nli-v1.1_dev.json", 3000),
        ("korsts", "korsts/sts-train.tsv", 5749),
        ("question_pair", "question_pair/train.tsv", 6136),
        ("kornli", "kornli/xnli.test_part.ko.tsv", 3500),
    ):
        assert len(read_examples(str(shared_data / path), DATASETS[name], needs_label=True)) == count
