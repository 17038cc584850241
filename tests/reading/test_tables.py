"""Documents come out of Parquet files, one a row, in bounded memory, and what is no text is named."""

import contextlib
import functools
import os
import pathlib
import sys
import tracemalloc

import pytest
import tensorflow as tf
from tables import write_table

from albert_tf.base.errors import InputError
from albert_tf.reading.blocks import BadCorpusError
from albert_tf.reading.documents import CorpusReader, read_chunks
from albert_tf.reading.tables import open_table, read_texts


@pytest.fixture
def pyarrow():
    module = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    return module


@pytest.fixture
def write(tmp_path):
    """Writes columns and returns the path."""
    return functools.partial(write_table, tmp_path / "corpus.parquet")


@pytest.fixture
def counting_memory(pyarrow):
    """Counts the memory that pyarrow takes while a context lasts."""

    @contextlib.contextmanager
    def count():
        default = pyarrow.default_memory_pool()
        pool = pyarrow.proxy_memory_pool(default)
        pyarrow.set_memory_pool(pool)
        try:
            yield pool
        finally:
            pyarrow.set_memory_pool(default)

    return count


def test_each_row_is_a_document_and_its_lines_are_sentences(write):
    path = write({"id": [1, 2, 3, 4], "text": ["하나\n둘 \n\n셋", " \n", "", "넷\r\n다섯"]})
    reader = CorpusReader([path])
    assert list(reader.documents()) == [["하나", "둘", "셋"], ["넷", "다섯"]]
    assert reader.num_bad_lines == 0


@pytest.mark.parametrize("as_type", ["string", "large_string", "string_view", "dictionary"])
def test_every_type_of_text_is_read(write, pyarrow, as_type):
    texts = pyarrow.array(["하나", "둘", "하나"])
    texts = texts.dictionary_encode() if as_type == "dictionary" else texts.cast(getattr(pyarrow, as_type)())
    path = write({"text": texts})
    with open_table(path) as table:
        assert table.schema.field("text").type == texts.type
    assert list(CorpusReader([path]).sentences()) == ["하나", "둘", "하나"]


@pytest.mark.parametrize("column", ["본문", "a.b", "text", "other,text.more"])
def test_text_is_in_the_column_that_is_named(write, column):
    columns = {"other": ["가"], "text.more": ["나"], "a": [{"b": "다"}]}
    path = write({**columns, column: ["하나"]})
    assert list(CorpusReader([path], text_field=column).documents()) == [["하나"]]


def test_texts_of_several_columns_follow_one_another_and_nulls_are_left_out(write, pyarrow):
    columns = {"title": ["제목", None, "", None], "text": ["하나\n둘", "셋", "넷", None], "none": pyarrow.nulls(4)}
    path = write(columns)
    reader = CorpusReader([path], "skip", "title,none,text")
    assert list(reader.documents()) == [["제목", "하나", "둘"], ["셋"], ["넷"]] and reader.num_bad_lines == 1
    assert next(CorpusReader([path], "skip", "text, title").documents()) == ["하나", "둘", "제목"]
    for setting, message in (
        ("titel,text", 'has no column "titel"; name one of title, text, none with `text_field`'),
        ("title,,text", 'the columns "title,,text": a name between its commas is missing'),
        ("text,text", 'the columns "text,text": text is there twice'),
    ):
        with pytest.raises(InputError, match=message):
            list(CorpusReader([path], text_field=setting).lines())


def test_row_groups_and_batches_do_not_matter(write):
    texts = [f"{number}번" for number in range(1_000)]
    for rows_per_group in (1, 100, 999, 1_000):
        path = write({"text": texts}, rows_per_group=rows_per_group)
        assert [document for [document] in CorpusReader([path]).documents()] == texts


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"body": ["가"], "id": [1]}, 'has no column "text"; name one of body, id with `text_field`'),
        ({"text": [1]}, ': column "text" holds int64, not text; name a column of strings with `text_field`'),
        ({"text": [["가"]]}, ': column "text" holds list<'),
        ({"text": [b"a"]}, ': column "text" holds binary, not text'),
        ({"text": [{"text": "가"}]}, ': column "text" holds struct<text: string>, not text'),
    ],
    ids=["missing", "number", "list", "bytes", "struct"],
)
def test_column_without_text_is_named(write, column, message):
    path = write(column)
    with pytest.raises(InputError) as failure:
        list(CorpusReader([path], on_bad_text="skip").lines())
    assert str(failure.value).removeprefix(path).strip().startswith(message.strip())


def test_null_fails_with_file_row_and_flag(write):
    path = write({"text": ["하나"] * 200 + [None]})
    with pytest.raises(InputError) as failure:
        list(CorpusReader([path]).lines())
    assert str(failure.value).startswith(f'{path}, row 201: null instead of text in column "text"; fill it in')
    assert "`on_bad_text=skip` to leave such rows out" in str(failure.value)


@pytest.mark.parametrize("on_bad_text", ["skip", "replace"])
def test_bad_rows_are_skipped_or_mended_and_counted(write, pyarrow, on_bad_text):
    values = ["하나".encode(), None, b"\xff" + "둘".encode(), "셋".encode()]
    # pyarrow lets bytes pass for a string unchecked, and so do the writers of other libraries.
    binary = pyarrow.array(values, pyarrow.binary())
    texts = pyarrow.StringArray.from_buffers(len(binary), binary.buffers()[1], binary.buffers()[2], binary.buffers()[0])
    reader = CorpusReader([write({"text": texts})], on_bad_text)
    mended = ["\ufffd둘"] if on_bad_text == "replace" else []
    assert list(reader.sentences()) == ["하나", *mended, "셋"]
    assert reader.num_bad_lines == 2


@pytest.mark.parametrize("damage", [lambda content: content[:-20], lambda content: b"text", lambda content: b""])
def test_file_that_is_not_whole_is_named(tmp_path, write, damage):
    with open(write({"text": ["하나"] * 100}), "rb") as file:
        content = damage(file.read())
    path = tmp_path / f"damaged{os.path.splitext(file.name)[1]}"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"can't read {path}: not a whole Parquet file") as failure:
        list(CorpusReader([str(path)]).lines())
    assert "\n" not in str(failure.value)


def test_damage_inside_is_found(write):
    path = write({"text": [f"{number}번 문서" for number in range(5_000)]})
    with open(path, "r+b") as file:
        file.seek(2_000)
        file.write(bytes(10_000))
    with pytest.raises(InputError, match=f"can't read {path}: not a whole Parquet file"):
        list(CorpusReader([path]).lines())


def test_missing_library_is_named(tmp_path, monkeypatch):
    path = tmp_path / "corpus.parquet"
    path.write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"corpus.parquet needs pyarrow.*; pip install .*\[parquet\]'$"):
        list(CorpusReader([str(path)]).lines())


def test_file_that_went_away_is_named(tmp_path, pyarrow):
    with pytest.raises(InputError, match=f"can't read {tmp_path}/corpus.parquet"):
        list(CorpusReader([f"{tmp_path}/corpus.parquet"]).lines())


def test_reads_what_is_on_no_disk(write):
    tf.io.gfile.makedirs("ram://tables")
    tf.io.gfile.copy(write({"text": ["하나", "둘"]}), "ram://tables/corpus.parquet", overwrite=True)
    assert list(CorpusReader(["ram://tables/corpus.parquet"]).documents()) == [["하나"], ["둘"]]


@pytest.mark.slow
def test_file_of_any_size_never_fills_the_memory(write, pyarrow, counting_memory):
    texts = [f"{number}번 문서: " + "가나다라 " * 1_000 for number in range(6_000)]
    path = write({"text": texts}, rows_per_group=len(texts), compression="none", use_dictionary=False)
    assert pyarrow.parquet.ParquetFile(path).num_row_groups == 1
    size = sum(len(text.encode()) for text in texts)
    assert size > 75e6
    del texts
    with counting_memory() as pool:
        tracemalloc.start()
        try:
            assert sum(chunk.num_bytes for chunk in read_chunks(path)) == size
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    # A page, which is read whole, is 13 MB here.
    assert peak + pool.max_memory() < 50e6


def test_text_that_a_small_file_repeats_never_fills_the_memory(tmp_path, pyarrow, counting_memory):
    texts = pyarrow.array(["가" * 1_000_000, "나"])
    column = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 250 + [1, None], pyarrow.int32()), texts)
    path = str(tmp_path / "corpus.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"text": column}), path, dictionary_pagesize_limit=1 << 24)
    assert pathlib.Path(path).stat().st_size < 200_000
    with counting_memory() as pool:
        assert [text and len(text) for text, _ in read_texts(path, "text")] == [3_000_000] * 250 + [3, None]
    assert pool.max_memory() < 500e6


def test_column_that_unpacks_to_very_much_is_refused(tmp_path, pyarrow):
    path = str(tmp_path / "corpus.parquet")
    column = ["가" * 1_000_000] * 60
    pyarrow.parquet.write_table(pyarrow.table({"text": column}), path, use_dictionary=False, compression="zstd")
    with pytest.raises(BadCorpusError, match=r"corpus\.parquet: the column text unpacks to more than 1,000 times its"):
        list(read_texts(path, "text"))


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "in a struct"])
def test_text_that_can_not_stay_coded_never_fills_the_memory(tmp_path, pyarrow, counting_memory, encoding):
    path = str(tmp_path / "corpus.parquet")
    if encoding == "in a struct":
        texts = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 180, pyarrow.int32()), ["가" * 1_000_000])
        table = pyarrow.table({"text": pyarrow.StructArray.from_arrays([texts], ["inner"])})
        pyarrow.parquet.write_table(table, path, dictionary_pagesize_limit=1 << 24, store_schema=False)
    else:
        table = pyarrow.table({"text": ["가" * 1_000_000] * 180})
        pyarrow.parquet.write_table(table, path, use_dictionary=False, column_encoding={"text": encoding})
    with counting_memory() as pool, open_table(path) as table:
        assert sum(len(batch) for batch, _ in table.batches()) == 180
    assert pool.max_memory() < 500e6
