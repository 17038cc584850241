"""Reading rows of labelled data: every format, what is malformed, and what is left out."""

import csv
import dataclasses
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import write_table

from albert_tf.base.errors import InputError
from albert_tf.finetuning.datasets import DATASETS
from albert_tf.finetuning.tasks.labelled_text import read_examples
from albert_tf.reading import rows as row_file
from albert_tf.reading.rows import RowFile, write_rows
from albert_tf.reading.values import load_json

ROWS = [{"document": '그가 "좋다, 좋아" 했다', "label": "1"}, {"document": "두 줄\n나쁘다", "label": "0"}]


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def values(path, columns=None):
    rows = list(RowFile(path, columns))
    wrong = next((row.error for row in rows if row.error), None)
    if wrong:
        raise InputError(wrong)
    return [row.values for row in rows]


def test_csv_is_quoted(tmp_path):
    path = write(tmp_path, "a.csv", 'document,label\r\n"그가 ""좋다, 좋아"" 했다",1\r\n"두 줄\n나쁘다",0\r\n')
    assert values(path) == ROWS
    assert [row.number for row in RowFile(path)] == [2, 4]


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_json_is_a_list_or_lines_of_objects(tmp_path, name):
    assert values(write(tmp_path, name, json.dumps(ROWS))) == ROWS
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS)
    assert values(write(tmp_path, name, lines)) == ROWS


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_half_a_surrogate_pair_becomes_a_character_that_can_be_written(tmp_path, name):
    row = r'{"document": "좋\ud83d다 \ud83d\ude00 \uD55C", "labels": {"hate": "\udc00"}}'
    [found] = values(write(tmp_path, name, f"[{row}]" if name == "a.json" else row))
    assert found["document"] == "좋\ufffd다 😀 한" and found["labels.hate"] == "\ufffd"
    write_rows(str(tmp_path / "errors.tsv"), [list(found.values())[::2]])


def test_text_of_csv_may_be_of_any_length(tmp_path):
    path = write(tmp_path, "a.csv", f'document,label\n"{"가나 " * 60_000}",1\n')
    assert len(values(path)[0]["document"]) == 180_000


def test_typed_columns(tmp_path):
    columns = {column: [row[column] for row in ROWS] for column in ROWS[0]}
    assert values(write_table(tmp_path / "a.parquet", columns)) == ROWS
    for name in ("broken.parquet", "broken.parquet.gz"):
        with pytest.raises(InputError, match=f"can't read .*/{name}: not a whole Parquet file"):
            values(write(tmp_path, name, "no table"))


def test_labels_that_are_numbered_are_read_by_their_names(tmp_path, capsys):
    columns = {"document": list("가나다라"), "label": [1, 0, 1, 0], "no": [-1, None, 2, 0]}
    path = write_table(tmp_path / "a.parquet", columns, labels={"label": ["부정", "긍정"], "no": ["x"]})
    found = list(RowFile(path))
    assert [row.values["label"] for row in found if row.values] == ["긍정", "부정", "부정"]
    assert [row.values["no"] for row in found if row.values] == [None, None, "x"]
    assert found[2].error == f"{path}, row 3: no holds 2, but the file names 1 labels, numbered from 0"
    files = dataclasses.replace(DATASETS["parquet"], on_bad_row="skip")
    assert [each.label for each in read_examples(path, files, needs_label=True)] == ["긍정", "부정", "부정"]
    assert "; no not read" in (out := capsys.readouterr().out) and "label the label by its name (부정, 긍정)" in out
    files = dataclasses.replace(files, label_column="no")
    assert [each.label for each in read_examples(path, files, needs_label=True)] == ["x"]
    assert [each.label for each in read_examples(path, files, needs_label=False)] == [None, None, "x"]


@pytest.mark.parametrize("info", ["{", "[]", "{}", '{"info": {"features": {"label": {"_type": "ClassLabel"}}}}'])
def test_names_of_labels_that_cannot_be_read_are_not_passed_over(tmp_path, info):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"document": ["가"], "label": [1]}).replace_schema_metadata({"huggingface": info})
    with pytest.raises(InputError, match=r"a.parquet: the names of labels that datasets has written into it can't be"):
        RowFile(write_table(tmp_path / "a.parquet", table))


WORDS = st.text('가나 ,a"', max_size=5)


@given(
    st.lists(st.tuples(st.none() | WORDS, st.none() | WORDS, st.sampled_from("01")), min_size=1, max_size=8),
    st.sampled_from([".tsv", ".csv", ".json", ".jsonl", ".parquet"]),
)
@settings(max_examples=40)
def test_several_columns_are_one_text_in_every_format(tmp_path_factory, rows, ending):
    path, names = tmp_path_factory.getbasetemp() / f"joined{ending}", ("제목", "본문", "label")
    objects = [dict(zip(names, row)) for row in rows]
    if ending == ".parquet":
        schema = pytest.importorskip("pyarrow").schema([(name, "string") for name in names])
        write_table(path, pytest.importorskip("pyarrow").Table.from_pylist(objects, schema))
    elif ending in (".json", ".jsonl"):
        objects[1:] = [{name: value for name, value in row.items() if value is not None} for row in objects[1:]]
        lines = [json.dumps(row) for row in objects]
        path.write_text("\n".join(lines) if ending == ".jsonl" else f"[{','.join(lines)}]")
    else:
        rows = [tuple(value or "" for value in row) for row in rows]
        if ending == ".csv":
            with path.open("w", newline="") as file:
                csv.writer(file).writerows([names, *rows])
        else:
            write_rows(str(path), [list(names), *map(list, rows)])
    files = dataclasses.replace(DATASETS["tsv"], text_column="제목,본문", on_bad_row="skip")
    expected = [
        (" ".join(text for text in row[:2] if text and text.strip()), row[2]) for row in rows if row[:2] != (None, None)
    ]
    if expected:
        assert [(each.text, each.label) for each in read_examples(str(path), files, needs_label=True)] == expected
    else:
        with pytest.raises(InputError, match="no row that can be used"):
            read_examples(str(path), files, needs_label=True)


def test_columns_that_are_one_text_are_told_and_missed(tmp_path, capsys):
    path = write(tmp_path, "a.jsonl", '{"title": "가", "label": 1}\n{"text": "나", "title": null, "label": 0}\n')
    files = dataclasses.replace(DATASETS["jsonl"], text_column="title,text")
    read_examples(path, files, needs_label=True)
    told = f"{path}: 2 rows, JSON lines; title and text, joined, are the text, label the label\n"
    assert told in capsys.readouterr().out
    pair = dataclasses.replace(files, text_pair_column="label")
    read_examples(path, pair, needs_label=True)
    assert "; title and text, joined, and label are the texts, label the label\n" in capsys.readouterr().out
    with pytest.raises(InputError, match=r"a.jsonl, line 1: no column named body; the header has title, label, text;"):
        read_examples(path, dataclasses.replace(files, text_column="title,body"), needs_label=True)
    missing = write(tmp_path, "b.jsonl", '{"title": null, "text": null, "label": 1}\n')
    with pytest.raises(InputError, match=r"b.jsonl, line 1: nothing under title and text; correct the row"):
        read_examples(missing, files, needs_label=True)
    # A column of just that name is the one that is meant.
    path = write(tmp_path, "a.tsv", "title\ttext\ttitle,text\tlabel\n가\t나\t다\t1\n")
    assert [each.text for each in read_examples(path, files, needs_label=True)] == ["다"]


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
        ("a.csv", "a;b\n1,5;2\n", "line 1: the columns are separated by semicolons, not commas; write the file with"),
        ("a.csv", "a\tb\n1\t2\n", "line 1: the columns are separated by tabs, not commas; give the file a name that"),
        ("a.json", '[{"a": 1},', "line 1: not JSON"),
        ("a.jsonl", '{"a": 1}\n{"a":\n', "line 2: not JSON"),
        ("a.jsonl", "[" * 100_000, "line 1: not JSON"),
        ("a.jsonl", '{"a": 1}\n{"a": ' + "9" * 5000 + "}\n", "line 2: not JSON"),
        ("a.tsv", "a\tb\n1\t2\t3\n", "line 2: 3 columns, but the header has 2"),
        ("a.jsonl", '{"a": 1, "a": 2}', 'line 1: not JSON \\("a" is there twice\\)'),
        ("a.json", '[{"a": {"b": 1}, "a.b": 2}]', 'row 1: "a.b" is there twice, by itself and inside "a"'),
        ("a.jsonl", '{"a": 1}\n\n{"a": 2}\n\n', "line 2: an empty line, not JSON"),
        ("a.tsv", "", "is empty; its first line must name the columns"),
    ],
)
def test_malformed_file_is_named_with_its_line(tmp_path, name, content, message):
    path = write(tmp_path, name, content)
    with pytest.raises(InputError, match=f"{re.escape(path)}.*{message}"):
        values(path)


def test_records_have_places_and_other_rows_are_told(tmp_path):
    path = write(tmp_path, "a.jsonl", '{"a": 1}\n\n5\n{"b"\n{"a": 2}\n')
    told = []
    found = list(RowFile(path).records(told.append, skips_empty_lines=True))
    assert [(str(place), values) for place, values in found] == [
        (f"{path}, line {1 + 4 * n}", {"a": 1 + n}) for n in (0, 1)
    ]
    assert told == [f"{path}, line 3: not a JSON object", f"{path}, line 4: not JSON (Expecting ':' delimiter)"]
    with pytest.raises(InputError, match="line 2: an empty line, not JSON"):
        list(RowFile(path).records())
    table = RowFile(write(tmp_path, "a.tsv", "a\tb\n1\t2\n\n3\t4\n"))
    with pytest.raises(InputError, match="line 3: 1 columns, but the header has 2"):
        list(table.records(skips_empty_lines=True))  # a row of a table is never skipped


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('{"document": NaN, "label": 0}', "nothing under document but NaN"),
        ('{"document": "a", "label": NaN}', "nothing under label but NaN"),
        ('{"document": "a", "label": null}', "nothing under label"),
        ('{"document": Infinity, "label": 0}', "document holds inf, which is not a number"),
        ('{"document": "a", "label": -1e999}', "label holds -inf, which is not a number"),
        ('{"document": true, "label": 0}', "document holds true, not text"),
        ('{"document": null, "label": 0}', "nothing under document"),
    ],
)
def test_values_that_say_nothing_are_bad_rows(tmp_path, row, message):
    path = write(tmp_path, "a.jsonl", '{"document": "b", "label": 1}\n' + row + "\n")
    with pytest.raises(InputError, match=re.escape(f"{path}, line 2: {message}") + ".* `on_bad_row=skip`"):
        read_examples(path, DATASETS["jsonl"], needs_label=True)
    skipping = dataclasses.replace(DATASETS["jsonl"], on_bad_row="skip")
    assert [(each.text, each.label) for each in read_examples(path, skipping, needs_label=True)] == [("b", "1")]


def test_gaps_of_parquet_are_bad_rows_and_leave_the_labels_as_they_are(tmp_path):
    columns = {"document": ["a", "b", None, "c"], "label": [1.0, float("nan"), 0.0, 0.0]}
    path = write_table(tmp_path / "a.parquet", {**columns, "flag": [True, False, True, False]})
    files = dataclasses.replace(DATASETS["parquet"], on_bad_row="skip")
    examples = read_examples(path, files, needs_label=True)
    assert [(each.text, each.label) for each in examples] == [("a", "1"), ("c", "0")]
    flags = dataclasses.replace(files, label_column="flag")
    examples = read_examples(path, flags, needs_label=True)
    assert [each.label for each in examples] == ["true", "false", "false"]


def test_column_that_is_there_twice_is_refused_where_it_is_read(tmp_path):
    path = write(tmp_path, "a.csv", "document,label,label,x,x\n좋다,1,0,,\n")
    with pytest.raises(InputError, match=f"{re.escape(path)}, line 1: two columns are called label; give each a diff"):
        read_examples(path, DATASETS["csv"], needs_label=True)
    assert len(read_examples(path, dataclasses.replace(DATASETS["csv"], label_column="document"), True)) == 1


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=5))
@settings(deadline=None)
def test_what_is_written_has_a_line_for_each_row(tmp_path_factory, texts):
    path = str(tmp_path_factory.mktemp("written") / "a.tsv")
    write_rows(path, [["text", "label"], *([text, "1"] for text in texts)])
    found = [row.values["text"] for row in RowFile(path)]
    assert found == [re.sub("[\t\n\r]", " ", text) for text in texts]


def test_published_files_are_read_whole(shared_data):
    for name, path, count in (
        ("nsmc", "nsmc/ratings_train.txt", 20_000),
        ("klue_nli", "klue/klue-nli-v1.1_dev.json", 3000),
        ("korsts", "korsts/sts-train.tsv", 5749),
        ("question_pair", "question_pair/train.tsv", 6136),
        ("kornli", "kornli/xnli.test_part.ko.tsv", 3500),
    ):
        assert len(read_examples(str(shared_data / path), DATASETS[name], needs_label=True)) == count


def test_hostile_objects_are_read_in_linear_time():
    names = ",".join(f'"n{number % 39_999}":1' for number in range(40_000))
    nested = '{"a":' * 900 + "1" + "}" * 900
    with pytest.raises(json.JSONDecodeError, match='"n0" is there twice'):
        load_json(f"{{{names}}}")
    assert len(row_file._flatten(load_json(nested))) == 900


def test_name_that_is_there_twice_is_found_at_every_depth():
    flat = row_file._flatten({"a": {"b": {"c": 1}, "d": 2}})
    assert flat["a.b.c"] == 1 and flat["a.d"] == 2 and flat["a"] == {"b": {"c": 1}, "d": 2}
    for value, name in (({"a.b": 1, "a": {"b": 2}}, "a.b"), ({"x": {"a": {"b": 2}, "a.b": 1}}, "x.a.b")):
        with pytest.raises(InputError, match=f'"{name}" is there twice'):
            row_file._flatten(value)
