"""Documents come out of text files whole and in order, and what is not UTF-8 is dealt with as asked."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tf.errors import InputError
from albert_tf.pretraining_data.corpus import CorpusReader

GOOD, BAD = "좋은 줄", "나쁜 줄".encode("cp949")


@pytest.fixture
def write(tmp_path):
    """Writes bytes, compressed if the name says so, and returns the path."""

    def write_file(content, name="corpus.txt"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return str(path)

    return write_file


@pytest.mark.parametrize("name", ["corpus.txt", "corpus.txt.gz"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("byte_order_mark", ["", "\ufeff"])
def test_blank_lines_end_documents(write, name, newline, byte_order_mark):
    lines = ["하나", "둘 ", "", "", "\t셋", " \u3000 ", "넷"]
    reader = CorpusReader([write((byte_order_mark + newline.join(lines)).encode(), name)])
    assert list(reader.documents()) == [["하나", "둘"], ["셋"], ["넷"]]
    assert list(reader.sentences()) == ["하나", "둘", "셋", "넷"]
    assert reader.num_bad_lines == 0


def test_byte_order_mark_alone_is_a_blank_line(write):
    assert list(CorpusReader([write("\ufeff\n하나".encode())]).documents()) == [["하나"]]


@pytest.mark.parametrize("content", [b"", b"\n \n\r\n"])
def test_file_without_text_has_no_documents(write, content):
    assert list(CorpusReader([write(content)]).documents()) == []


def test_lines_longer_than_any_buffer_stay_whole(write):
    lines = ["가" * 2_000_000, "나" * 1_500_000]
    assert list(CorpusReader([write("\n".join(lines).encode())]).documents()) == [lines]


def test_documents_never_span_two_files(write):
    paths = [write("하나\n둘".encode(), "a.txt"), write("셋".encode(), "b.txt.gz")]
    assert list(CorpusReader(paths).documents()) == [["하나", "둘"], ["셋"]]


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


@pytest.mark.parametrize("name", ["corpus.txt", "corpus.txt.gz"])
def test_bad_text_fails_with_file_line_and_flag(write, name):
    path = write(b"\n".join([GOOD.encode(), b"", BAD]), name)
    with pytest.raises(InputError, match=r"--on_bad_text=skip") as failure:
        list(CorpusReader([write(GOOD.encode(), "good.txt"), path]).documents())
    assert str(failure.value).startswith(f"{path}, line 3: not valid UTF-8")


def test_skipped_bad_line_leaves_its_document_together(write):
    reader = CorpusReader([write(b"\n".join([GOOD.encode(), BAD, BAD, GOOD.encode()]))], on_bad_text="skip")
    assert list(reader.documents()) == [[GOOD, GOOD]]
    assert reader.num_bad_lines == 2


def test_replaced_bad_line_keeps_what_can_be_read(write, tiny_tokenizer):
    reader = CorpusReader([write("가나".encode() + b"\xff\xfe" + "다".encode())], on_bad_text="replace")
    [[sentence]] = reader.documents()
    assert sentence == "가나\ufffd\ufffd다"
    assert reader.num_bad_lines == 1
    assert tiny_tokenizer.tokenize(sentence) == ["가", "##나", "##다"]


def test_utf16_file_fails_at_its_first_line(write):
    path = write(GOOD.encode("utf-16"))
    with pytest.raises(InputError, match="line 1: not valid UTF-8"):
        list(CorpusReader([path]).documents())


def _cut_short(compressed):
    return compressed[:-12]


def _damage_inside(compressed):
    return compressed[:40] + bytes(20) + compressed[60:]


def _not_compressed(compressed):
    return gzip.decompress(compressed)


@pytest.mark.parametrize("damage", [_cut_short, _damage_inside, _not_compressed])
def test_damaged_gzip_file_is_named(tmp_path, damage):
    path = tmp_path / "corpus.txt.gz"
    content = "\n".join(f"{number}번 줄" for number in range(500)).encode()
    path.write_bytes(damage(gzip.compress(content)))
    with pytest.raises(InputError, match=f"can't read {path}: not a whole gzip file"):
        list(CorpusReader([str(path)]).documents())


def test_file_that_went_away_is_named(tmp_path):
    with pytest.raises(InputError, match=f"can't read {tmp_path}/gone.txt"):
        list(CorpusReader([f"{tmp_path}/gone.txt"]).documents())
