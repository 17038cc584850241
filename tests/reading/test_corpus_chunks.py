"""Chunks hold every document once, are of bounded size, and depend on nothing but the file's content."""

import collections
import gzip
import hashlib
import itertools
import json
import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import write_table

from albert_tf.base.errors import InputError
from albert_tf.reading import blocks, formats
from albert_tf.reading.blocks import MAX_CHARACTERS_PER_LINE
from albert_tf.reading.documents import CHARACTERS_PER_CHUNK, Chunk, read_chunks

DOCUMENTS = st.lists(st.lists(st.text("가나다라", min_size=1, max_size=12), min_size=1, max_size=8), max_size=12)


def text_of(documents):
    return "\n\n".join("\n".join(lines) for lines in documents).encode()


def characters(documents):
    return sum(len(line) for lines in documents for line in lines)


@settings(max_examples=50)
@given(documents=DOCUMENTS, limit=st.integers(1, 60), bytes_per_block=st.integers(1, 200))
def test_chunks_are_documents_in_order_cut_where_the_limit_is_reached(
    documents, limit, bytes_per_block, tmp_path_factory
):
    path = tmp_path_factory.getbasetemp() / "chunks.txt"
    path.write_bytes(text_of(documents))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("albert_tf.reading.documents.CHARACTERS_PER_CHUNK", limit)
        chunks = list(read_chunks(str(path)))
        for module in (blocks, formats):
            patch.setattr(module, "BYTES_PER_BLOCK", bytes_per_block)
        again = list(read_chunks(str(path)))
    assert [(chunk.documents, chunk.continues) for chunk in again] == [
        (chunk.documents, chunk.continues) for chunk in chunks
    ]

    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    assert sum(chunk.num_bytes for chunk in chunks) == len(path.read_bytes())
    assert chunks[-1].file_start == (len(path.read_bytes()), hashlib.sha256(path.read_bytes()).hexdigest())
    whole, chunks = [], chunks if chunks[-1].documents else chunks[:-1]
    for chunk in chunks:
        first, *others = chunk.documents
        whole[len(whole) - chunk.continues :] = [whole[-1] + first if chunk.continues else first]
        whole += others
    assert whole == documents
    for chunk, following in itertools.zip_longest(chunks, chunks[1:]):
        assert characters(chunk.documents[:-1]) < limit
        assert characters([chunk.documents[-1][:-1]]) < limit, "a document goes on after it filled a chunk"
        if following:
            assert characters(chunk.documents) >= limit
            # Only what fills a chunk by itself is cut.
            assert not following.continues or characters(chunk.documents[-1:]) >= limit
    assert sum(chunk.counts["long_documents"] for chunk in chunks) == sum(
        characters([document[:-1]]) >= limit for document in documents
    )


@pytest.mark.parametrize("name", ["corpus.txt.gz", "corpus.jsonl", "corpus.parquet"])
def test_formats_give_the_same_chunks(write, tmp_path, monkeypatch, name):
    limit = 20_000
    monkeypatch.setattr("albert_tf.reading.documents.CHARACTERS_PER_CHUNK", limit)
    documents = [[f"{number}번 문서의 {line}번 줄" for line in range(100)] for number in range(120)]
    texts = ["\n".join(lines) for lines in documents]
    if name.endswith(".parquet"):
        path = write_table(tmp_path / name, {"text": texts})
    elif ".jsonl" in name:
        path = write("\n".join(json.dumps({"text": text}) for text in texts).encode(), name)
    else:
        path = write(text_of(documents), name)
    chunks = list(read_chunks(path, file_index=3))

    assert [document for chunk in chunks for document in chunk.documents] == documents
    ends = list(itertools.accumulate(characters([document]) for document in documents))
    expected, begin = [], 0
    while begin < len(documents):
        before = ends[begin - 1] if begin else 0
        end = next((i for i, size in enumerate(ends) if size - before >= limit), len(documents) - 1)
        expected.append(documents[begin : end + 1])
        begin = end + 1
    assert [chunk.documents for chunk in chunks] == expected and len(chunks) > 3
    assert {chunk.file_index for chunk in chunks} == {3} and not any(chunk.continues for chunk in chunks)
    positions = [chunk.file_position for chunk in chunks]
    with open(path, "rb") as file:
        assert positions == sorted(positions) and positions[-1] == len(file.read())


@pytest.mark.parametrize("content", [b"", "\ufeff\n \n".encode()])
def test_file_without_text_gives_no_document(write, content):
    chunks = list(read_chunks(write(content)))
    assert not [document for chunk in chunks for document in chunk.documents]
    assert sum(chunk.num_bytes for chunk in chunks) == len(content)


def test_what_follows_the_last_document_is_counted_too(write):
    document = ["가" * 1000] * (CHARACTERS_PER_CHUNK // 1000 + 1)
    content = text_of([document]) + b"\n\n" + b"\n" * 2_000_000 + b"\xff\n"
    first, last = read_chunks(write(content), 5, on_bad_text="skip")
    assert first.documents == [document]
    whole = (len(content), hashlib.sha256(content).hexdigest())
    counts = collections.Counter(bad_lines=1, undivided_files=1)
    assert last == Chunk(5, 1, [], False, len(content) - first.num_bytes, counts, len(content), whole)


def test_bad_lines_are_counted_once(write):
    lines = [b"\xff" if number % 1000 == 0 else "좋은 줄".encode() for number in range(300_000)]
    path = write(b"\n".join(lines))
    chunks = list(read_chunks(path, on_bad_text="skip"))
    assert len(chunks) > 1 and sum(chunk.counts["bad_lines"] for chunk in chunks) == 300
    assert sum(characters(chunk.documents) for chunk in chunks) == 4 * 299_700
    with pytest.raises(InputError, match=f"{path}, line 1: not valid UTF-8"):
        next(read_chunks(path))


@pytest.mark.slow
def test_sentence_of_any_length_never_fills_the_memory(tmp_path):
    # One line of 100 MB: a hundred times the same member of a gzip file.
    words = ("가나다", "라마바", "사")
    part = "".join(f"{word} " for word in random.Random(1).choices(words, k=3 * 44_000))
    path = tmp_path / "corpus.txt.gz"
    path.write_bytes(gzip.compress(part.encode()) * 100)
    continues, num_words, num_bytes, num_long_lines, num_long_documents = [], 0, 0, 0, 0
    tracemalloc.start()
    try:
        for chunk in read_chunks(str(path)):
            [lines] = chunk.documents
            assert max(map(len, lines)) <= MAX_CHARACTERS_PER_LINE
            assert all(line.startswith(words) and line.endswith(words) for line in lines)
            assert characters([lines]) < CHARACTERS_PER_CHUNK + MAX_CHARACTERS_PER_LINE
            num_words += sum(line.count(" ") + 1 for line in lines)
            continues.append(chunk.continues)
            num_bytes += chunk.num_bytes
            num_long_lines += chunk.counts["long_lines"]
            num_long_documents += chunk.counts["long_documents"]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert num_bytes == 100 * len(part.encode()) > 100e6
    assert num_words == 100 * 44_000 * 3
    assert (num_long_lines, num_long_documents) == (1, 1)
    assert len(continues) > 30 and continues == [False] + [True] * (len(continues) - 1)
    assert peak < 15e6


def test_long_lines_are_counted_in_every_format(write):
    long_line = "가나 " * MAX_CHARACTERS_PER_LINE
    for name, content in {
        "corpus.txt": "\n".join(["하나", long_line, "둘", long_line * 4]),
        "corpus.jsonl": json.dumps({"text": "\n".join(["하나", long_line, "둘", long_line * 4])}),
    }.items():
        chunks = list(read_chunks(write(content.encode(), name)))
        assert sum(chunk.counts["long_lines"] for chunk in chunks) == 2
