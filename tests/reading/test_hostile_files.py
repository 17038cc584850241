"""Files that would fill the memory, take hours or never end are refused in a sentence."""

import json
import os

import pytest
from tables import write_table

from albert_tf.base.errors import InputError
from albert_tf.reading import formats
from albert_tf.reading.documents import CorpusReader, read_chunks
from albert_tf.reading.rows import RowFile

LINE = '{"text": "하나"}\n'.encode()


def refused(read, path):
    """Returns what is said of a file instead of reading it."""
    with pytest.raises(InputError) as failure:
        for _ in read(path):
            pass
    assert "\n" not in str(failure.value)
    return str(failure.value)


def read_corpus(path):
    """Reads lines as for a vocabulary."""
    return CorpusReader([path], "skip").lines()


@pytest.mark.parametrize("read", [read_corpus, read_chunks, RowFile])
def test_pipe_folder_and_device_are_refused_at_once(tmp_path, read):
    message = "a pipe or device, which can't be read twice; save its output to a file, and name that file"
    for name in ("corpus.txt", "corpus.jsonl", "table.parquet"):
        os.mkfifo(tmp_path / name)
        assert refused(read, str(tmp_path / name)) == f"can't read {tmp_path}/{name}: {message}"
    assert "/null: a pipe or device, which can't be read twice" in refused(read, "/dev/null")
    (tmp_path / "corpus.parquet").mkdir()
    assert "/corpus.parquet: a folder, not a file; name a file in it" in refused(read, str(tmp_path / "corpus.parquet"))


def test_blank_lines_without_end_are_one_and_lines_keep_their_numbers(write):
    content = "하나\n".encode() + b"\n" * 3_000_000 + "둘\n".encode()
    assert list(CorpusReader([write(content)]).documents()) == [["하나"], ["둘"]]
    path = write(content + b"\xff\n")
    assert f"{path}, line 3000003: not valid UTF-8" in refused(read_chunks, path)
    path = write(LINE + b"\n" * 3_000_000 + LINE + b"bad\n", "corpus.jsonl")
    assert f"{path}, line 3000003: not valid JSON" in refused(read_chunks, path)


def test_empty_rows_without_end_are_refused(write):
    for name in ("rows.jsonl", "rows.tsv", "rows.csv"):
        path = write((b"a\tb\n" if name.endswith("v") else LINE * 2) + b"\n" * 300_000, name)
        assert refused(RowFile, path).startswith(f"{path}, line ")
        assert refused(RowFile, path).endswith(": 65,536 empty lines in a row; take them out")


@pytest.mark.parametrize("read", [read_corpus, RowFile])
@pytest.mark.parametrize("name", ["corpus.txt.gz", "corpus.jsonl"])
def test_zeros_are_no_text(write, read, name):
    path = write(LINE * 3 + bytes(1 << 18), name)
    expected = (
        f"{path}: 65,536 zero bytes in a row, from byte {3 * len(LINE)} on, which is not text; copy the file again"
    )
    assert refused(read, path).startswith(expected)


def test_few_zeros_are_text(write):
    assert list(CorpusReader([write("하나\0".encode() * 3)]).sentences()) == ["하나\0" * 3]


def test_line_of_json_after_one_too_long_has_its_number(write, monkeypatch):
    monkeypatch.setattr(formats, "MAX_BYTES_PER_DOCUMENT", 1 << 20)
    long = json.dumps({"text": "a" * 3_000_000}).encode() + b"\n"
    path = write(LINE + long, "corpus.jsonl")
    assert f"{path}, line 2: longer than 1 MB" in refused(read_chunks, path)
    path = write(LINE * 2 + long + LINE + b"bad\n" + LINE, "corpus.jsonl")
    file, told = formats.CorpusFile(path, "text", "skip"), []
    monkeypatch.setattr(file, "_count_bad_line", lambda error, unit, number: told.append(number))
    assert len([lines for lines in file.batches() if lines]) == 4 and told == [3, 5]


def test_row_whose_quotation_mark_is_never_closed_does_not_fill_the_memory(write, monkeypatch):
    monkeypatch.setattr("albert_tf.reading.rows.MAX_BYTES_PER_LINE", 1 << 20)
    path = write(b'a,b\n1,2\n3,"4\n' + b"5,6\n" * 100_000, "rows.csv")
    assert refused(RowFile, path) == f"{path}, line 3: a row of more than 1 MB begins here; close its quotation marks"


def test_empty_lines_between_rows_are_told_by_their_numbers(write):
    rows = list(RowFile(write(b"a\tb\n1\t2\n\n\n3\t4\n\n\n", "rows.tsv")))
    assert [(row.number, row.error is None) for row in rows] == [(2, True), (3, False), (4, False), (5, True)]
    rows = list(RowFile(write(LINE + b" \n\n" + LINE + b"\n\n", "rows.jsonl")))
    assert [(row.number, row.error is None) for row in rows] == [(1, True), (2, False), (3, False), (4, True)]


def test_row_too_long_for_memory_is_bad(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "MAX_BYTES_PER_DOCUMENT", 1 << 20)
    path = write_table(tmp_path / "corpus.parquet", {"text": ["하나", "가" * 400_000, "둘"]})
    assert f"{path}, row 2: longer than 1 MB; cut the document up, or pass `on_bad_text=skip`" in refused(
        read_chunks, path
    )
    assert list(CorpusReader([path], "skip").sentences()) == ["하나", "둘"]


def test_two_columns_of_one_name_are_told(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table([["가"], ["나"], ["다"]], names=["text", "text", "body"])
    path = write_table(tmp_path / "corpus.parquet", table)
    for read in (read_chunks, RowFile):
        assert refused(read, path) == f'{path} has two columns "text"; give each a different name'
    assert list(CorpusReader([path], text_field="body").sentences()) == ["다"]
