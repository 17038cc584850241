"""Documents come out of text files whole and in order, and what is not UTF-8 is dealt with as asked."""

import gzip
import json

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.base.errors import InputError
from albert_tf.reading import blocks, formats
from albert_tf.reading.blocks import MAX_CHARACTERS_PER_LINE, BadCorpusError
from albert_tf.reading.documents import CorpusReader, read_chunks

GOOD, BAD = "좋은 줄", "나쁜 줄".encode("cp949")


@pytest.mark.parametrize("name", ["corpus.txt", "corpus.txt.gz"])
def test_blank_lines_end_documents(write, name):
    reader = CorpusReader([write("\ufeff하나\r\n둘 \n\n\r\n\t셋\n \u3000 \n넷".encode(), name)])
    assert list(reader.documents()) == [["하나", "둘"], ["셋"], ["넷"]]
    assert list(reader.sentences()) == ["하나", "둘", "셋", "넷"]
    assert reader.num_bad_lines == 0


def test_lines_longer_than_a_block_stay_whole_up_to_the_limit(write):
    lines = ["가" * MAX_CHARACTERS_PER_LINE, "나", "\U0001f600" * MAX_CHARACTERS_PER_LINE] * 3
    assert max(len(line.encode()) for line in lines) >= 1 << 18
    assert list(CorpusReader([write("\n".join(lines).encode())]).documents()) == [lines]


def test_lines_over_the_limit_are_cut_at_spaces(write):
    words = [f"{number}번" for number in range(300_000)]
    pieces = list(CorpusReader([write(" ".join(["처음\n", *words, "\n끝"]).encode(), "corpus.txt.gz")]).lines())
    assert pieces[0] == "처음" and pieces[-2:] == ["끝", ""]
    assert " ".join(pieces[1:-2]).split(" ") == words
    sizes = [len(piece) for piece in pieces[1:-2]]
    assert max(sizes) <= MAX_CHARACTERS_PER_LINE and min(sizes[:-1]) > MAX_CHARACTERS_PER_LINE - len(" 299999번")


@pytest.mark.parametrize(
    "character", ["\u1112\u1161\u11ab", "e\u0301", "👩🏽\u200d🚀"], ids=["jamo", "accent", "emoji"]
)
def test_without_spaces_cuts_part_no_character(write, character):
    num_characters = 200_000
    pieces = list(CorpusReader([write((character * num_characters).encode())]).sentences())
    assert len(pieces) > 1
    for piece in pieces:
        assert len(piece) <= MAX_CHARACTERS_PER_LINE and piece == character * (len(piece) // len(character))
    assert sum(map(len, pieces)) == len(character) * num_characters


@pytest.mark.parametrize("num_spaces", [10, 1_000_000])
def test_only_a_line_of_nothing_but_spaces_ends_a_document(write, num_spaces):
    spaces = " " * num_spaces
    text = f"하나\n{spaces}둘{spaces}\n셋\n{spaces}\n넷{spaces}다섯"
    [first, second] = CorpusReader([write(text.encode())]).documents()
    assert first == ["하나", "둘", "셋"] and " ".join(second).split() == ["넷", "다섯"]


@settings(max_examples=50)
@given(
    text=st.text(st.one_of(st.sampled_from("\n  \u3000가e\u0301\u1100\u1161\u11a8"), st.characters(codec="utf-8"))),
    bytes_per_block=st.integers(4, 40),
)
def test_blocks_of_any_size_give_the_same_lines(text, bytes_per_block, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "blocks.txt"
    path.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        for module in (blocks, formats):
            patch.setattr(module, "MAX_CHARACTERS_PER_LINE", 8)
        patch.setattr(blocks, "_CHARACTERS_TO_LOOK_BACK", 4)
        expected = list(CorpusReader([str(path)]).lines())
        for module in (blocks, formats):
            patch.setattr(module, "BYTES_PER_BLOCK", bytes_per_block)
        assert list(CorpusReader([str(path)]).lines()) == expected
    assert "".join("".join(expected).split()) == "".join(text.removeprefix("\ufeff").split())
    assert all(len(line) <= 8 and line == line.strip() for line in expected)


def test_reads_what_is_on_no_disk(write):
    paths = ["ram://corpus/plain.txt", "ram://corpus/compressed.txt.gz"]
    for path, content in zip(paths, [GOOD.encode(), gzip.compress(GOOD.encode())]):
        with tf.io.gfile.GFile(path, "wb") as file:
            file.write(content)
    assert list(CorpusReader(paths).documents()) == [[GOOD], [GOOD]]


@given(text=st.text(st.one_of(st.sampled_from("\n\r \t\ufeff\u2028\x0b\x85\x00가a"), st.characters(codec="utf-8"))))
def test_agrees_with_splitting_the_whole_text_at_blank_lines(text, tmp_path_factory):
    paths = [tmp_path_factory.getbasetemp() / name for name in ("arbitrary.txt", "arbitrary.txt.gz")]
    paths[0].write_bytes(text.encode())
    paths[1].write_bytes(gzip.compress(text.encode()))
    # Only a line feed ends a line: text from the web holds other characters that Python's splitlines() would split at.
    lines = [line.strip() for line in text.removeprefix("\ufeff").split("\n")]
    paragraphs = "\n".join(lines).strip("\n").split("\n\n")
    expected = [paragraph.strip("\n").split("\n") for paragraph in paragraphs if paragraph.strip("\n")]
    for path in paths:
        assert list(CorpusReader([str(path)]).documents()) == expected


@pytest.mark.parametrize("on_bad_text", ["skip", "replace"])
def test_bad_lines_among_many_blocks_are_found_where_they_are(write, on_bad_text):
    lines = [f"{number}번째 줄".encode() for number in range(60_000)]
    for number in (7, 8, 30_000, 59_999):
        lines[number] += b"\xff\xfe"
    reader = CorpusReader([write(b"\n".join(lines))], on_bad_text)
    expected = [line.decode(errors="replace") for line in lines if on_bad_text == "replace" or b"\xff" not in line]
    assert list(reader.documents()) == [expected] and reader.num_bad_lines == 4


@pytest.mark.parametrize("name", ["corpus.txt", "corpus.txt.gz"])
def test_bad_text_fails_with_file_line_and_flag(write, name):
    path = write(b"\n".join([*[GOOD.encode()] * 50_000, b"", BAD]), name)
    with pytest.raises(InputError, match=r"`on_bad_text=skip`") as failure:
        list(CorpusReader([write(GOOD.encode(), "good.txt"), path]).documents())
    assert str(failure.value).startswith(f"{path}, line 50002: not valid UTF-8")


def test_bad_part_of_an_endless_line_does_not_cost_the_rest_of_it(write):
    line = b"a" * 2_000_000 + b"\xff" + b"b" * 2_000_000
    reader = CorpusReader([write(b"\n".join([GOOD.encode(), line, GOOD.encode()]))], "skip")
    first, *pieces, last = reader.sentences()
    assert (first, last) == (GOOD, GOOD) and reader.num_bad_lines == 1
    assert 3_400_000 < len("".join(pieces)) < 4_000_000 and set("".join(pieces)) == {"a", "b"}


@pytest.mark.parametrize(
    "damage",
    [lambda content: content[:-12], lambda content: content[:40] + bytes(20) + content[60:], gzip.decompress],
    ids=["cut short", "damaged inside", "not compressed"],
)
def test_damaged_gzip_file_is_named(tmp_path, damage):
    path = tmp_path / "corpus.txt.gz"
    content = "\n".join(f"{number}번 줄" for number in range(500)).encode()
    path.write_bytes(damage(gzip.compress(content)))
    with pytest.raises(InputError, match=f"can't read {path}: not a whole gzip file"):
        list(CorpusReader([str(path)]).documents())


def test_file_that_went_away_is_named(tmp_path):
    with pytest.raises(InputError, match=f"can't read {tmp_path}/gone.txt"):
        list(CorpusReader([f"{tmp_path}/gone.txt"]).documents())


KOREAN = "오늘은 날씨가 좋아서 공원에 갔다. It was fine, 2020!"


@pytest.mark.parametrize(
    ("encoding", "name", "on_bad_text", "num_lines"),
    [
        ("cp949", "CP949", "fail", 12),
        ("euc-kr", "CP949", "skip", 30_000),
        ("utf-16", "UTF-16", "replace", 12),
        ("utf-16-le", "UTF-16LE", "skip", 12),
        ("utf-16-be", "UTF-16BE", "replace", 30_000),
    ],
)
def test_file_in_another_encoding_is_refused_by_its_name(write, encoding, name, on_bad_text, num_lines):
    path = write("\n".join([KOREAN, ""] * num_lines).encode(encoding))
    with pytest.raises(BadCorpusError) as failure:
        list(CorpusReader([path], on_bad_text).lines())
    message = f"{path}, line 1: not valid UTF-8 but, by its looks, {name}; convert the file (iconv -f {name} -t UTF-8)"
    assert str(failure.value).startswith(message)
    assert on_bad_text == "fail" or f"too much for `on_bad_text={on_bad_text}`" in str(failure.value)


def test_bad_lines_among_more_good_ones_are_no_reason_to_refuse(write):
    path = write(b"\n".join([GOOD.encode(), BAD, GOOD.encode()] * 3000))
    reader = CorpusReader([path], "skip")
    assert sum(1 for _ in reader.sentences()) == 6000
    assert reader.num_bad_lines == 3000


@pytest.mark.parametrize(("name", "blank", "expected"), [("a.txt", "", 1), ("a.txt", "\n", 0), ("a.jsonl", "", 0)])
def test_text_without_any_blank_line_is_noticed(write, monkeypatch, name, blank, expected):
    monkeypatch.setattr("albert_tf.reading.documents.CHARACTERS_PER_CHUNK", 100)
    line = json.dumps({"text": "\\n".join(["가나"] * 1000)}) if name.endswith("l") else "\n".join(["가나"] * 600)
    path = write(f"{line}\n{blank}{line}".encode(), name)
    assert sum(chunk.counts["undivided_files"] for chunk in read_chunks(path)) == expected
