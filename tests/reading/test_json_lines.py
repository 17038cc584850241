"""Documents come out of JSON lines, one a line, and lines that hold none are dealt with as asked."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tf.base.errors import InputError
from albert_tf.reading import formats
from albert_tf.reading.blocks import BadCorpusError
from albert_tf.reading.documents import CorpusReader

TEXTS = st.text("가\n ", max_size=4)


@pytest.fixture
def write(write):
    """Writes lines, compressed if the name says so, and returns the path; what is not bytes is written as JSON."""

    def write_lines(lines, name="corpus.jsonl"):
        return write(b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines), name)

    return write_lines


@pytest.mark.parametrize("name", ["corpus.ndjson", "corpus.json.gz"])
def test_each_line_is_a_document_and_its_lines_are_sentences(write, name):
    records = [{"text": "하나\n둘 \n\n셋", "id": 7}, b"", {"id": 8, "text": "넷\r\n다섯"}, {"text": " \n"}]
    reader = CorpusReader([write(records, name)])
    assert list(reader.documents()) == [["하나", "둘", "셋"], ["넷", "다섯"]]
    assert list(reader.sentences()) == ["하나", "둘", "셋", "넷", "다섯"]
    assert reader.num_bad_lines == 0


@given(st.lists(st.fixed_dictionaries({}, optional={"제목": st.none() | TEXTS, "본문": st.none() | TEXTS}), max_size=6))
def test_several_fields_follow_one_another(tmp_path_factory, records):
    path = tmp_path_factory.getbasetemp() / "several.jsonl"
    # The first has both: a field that no object has is refused.
    records = [{"제목": "가", "본문": "나"}, *records]
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    texts = [[record[name] for name in ("본문", "제목") if record.get(name) is not None] for record in records]
    reader = CorpusReader([str(path)], "skip", "본문,제목")
    documents = [[line.strip() for text in each for line in text.split("\n") if line.strip()] for each in texts]
    assert list(reader.documents()) == [document for document in documents if document]
    assert reader.num_bad_lines == sum(not each for each in texts)


def test_field_that_no_object_has_is_missed(write):
    path = write([{"title": None, "text": "하나"}, {"text": "둘"}])
    assert list(CorpusReader([path], text_field="title,text").documents()) == [["하나"], ["둘"]]
    with pytest.raises(InputError, match=r'corpus.jsonl: no object has a "titel"; name the fields with `text_field`$'):
        list(CorpusReader([path], text_field="titel,text").documents())
    path = write([{"title,text": "하나", "title": "둘"}])
    assert list(CorpusReader([path], text_field="title,text").documents()) == [["하나"]]
    with pytest.raises(InputError, match=r'not a JSON object with text in "title,text"'):
        list(CorpusReader([write([{"title": 3, "text": "하나"}])], text_field="title,text").documents())


def test_text_and_json_files_mix(write, tmp_path):
    text = tmp_path / "a.txt"
    text.write_text('{"text": "하나"}', encoding="utf-8")
    assert list(CorpusReader([str(text), write([{"text": "둘"}])]).documents()) == [['{"text": "하나"}'], ["둘"]]


@given(texts=st.lists(st.text(st.one_of(st.sampled_from("\n\r \u2028가"), st.characters(codec="utf-8"))), max_size=5))
def test_any_texts_come_back(texts, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "arbitrary.jsonl"
    path.write_text("\n".join(json.dumps({"text": text}) for text in texts), encoding="utf-8")
    documents = [[line.strip() for line in text.split("\n") if line.strip()] for text in texts]
    assert list(CorpusReader([str(path)]).documents()) == [document for document in documents if document]


def test_line_too_long_for_memory_is_bad(write, monkeypatch):
    monkeypatch.setattr(formats, "MAX_BYTES_PER_DOCUMENT", 3 << 20)
    lines = [{"text": "하나"}, {"text": "가" * 400_000}, {"text": "나" * 1_500_000}, {"text": "둘"}]
    path = write(lines)
    with pytest.raises(InputError, match=f"{path}, line 3: longer than 3 MB; cut the document up, or pass `on_bad"):
        list(CorpusReader([path]).lines())
    reader = CorpusReader([path], "replace")
    assert ["".join(document) for document in reader.documents()] == ["하나", "가" * 400_000, "둘"]
    assert reader.num_bad_lines == 1


BAD_LINES = {
    "cut short": (b'{"text": "\xea\xb0\x80', "not valid JSON"),
    "not an object": (b'"text"', 'not a JSON object with text in "text"; name the field with `text_field`'),
    "another field": ({"body": "가"}, 'not a JSON object with text in "text"; name the field with `text_field`'),
    "not text": ({"text": 3}, 'not a JSON object with text in "text"; name the field with `text_field`'),
    "half a surrogate pair": (b'{"text": "\xea\xb0\x80\\ud800\xeb\x82\x98"}', "half a surrogate pair"),
    "not UTF-8": (b'{"text": "\xea\xb0\x80\xff\xeb\x82\x98"}', "not valid UTF-8; convert the file"),
    "endless nesting": (b"[" * 200_000, "not valid JSON"),
    "endless number": (b'{"text": ' + b"1" * 5_000 + b"}", "not valid JSON"),
}


@pytest.mark.parametrize(("line", "message"), BAD_LINES.values(), ids=BAD_LINES)
def test_bad_line_fails_with_file_line_and_flag_or_is_skipped_or_mended(write, line, message):
    path = write([{"text": "하나"}, b"", line, {"text": "둘"}])
    with pytest.raises(InputError, match="`on_bad_text=skip`") as failure:
        list(CorpusReader([path]).documents())
    assert str(failure.value).startswith(f"{path}, line 3: {message}") and "\n" not in str(failure.value)
    for on_bad_text in ("skip", "replace"):
        reader = CorpusReader([path], on_bad_text)
        can_be_mended = on_bad_text == "replace" and isinstance(line, bytes) and line.endswith('나"}'.encode())
        assert list(reader.documents()) == [["하나"], *([["가\ufffd나"]] if can_be_mended else []), ["둘"]]
        list(reader.lines())
        assert reader.num_bad_lines == 1, "each pass counts anew"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([{"text": "하나"}], "an array, not one object; write one object a line"),
        (b"{", r"not valid JSON \(.*\); correct the line: each must be one whole object"),
    ],
)
def test_json_that_is_not_an_object_a_line_is_refused(write, content, message):
    with pytest.raises(BadCorpusError, match=f"line 1: {message}"):
        list(CorpusReader([write([content], "corpus.json.gz")]).documents())


def test_object_longer_than_a_block_may_begin_a_json_file(write):
    text = "가" * (1 << 16)
    path = write([{"text": f"{text}\n{text}\n{text}"}] * 2, "corpus.json")
    assert list(CorpusReader([path]).documents()) == [[text] * 3] * 2


@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_json_file_may_be_empty(write, content):
    assert list(CorpusReader([write([content], "corpus.json")]).documents()) == []
