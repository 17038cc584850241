"""Running text is split where sentences end, nowhere else, and no character gets lost."""

import sys
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from albert_tf.base.errors import InputError
from albert_tf.reading.documents import CorpusReader, make_sentence_splitter

# A bar stands where a sentence ends.
CASES = [
    "나는 밥을 먹었다. | 너는? | 벌써 먹었구나! | 그래… | 알았어。 | 좋다！ | 정말？ | 응",
    "정말?! | 놀랍다!!! | 음... | 그렇군.",
    # No space follows.
    "그는 떠났다.그리고 돌아왔다. | 끝",
    '"좋다."라고 말했다. | 다음 날',
    # Numbers.
    "1. 개요 2. 역사",
    "값은 3.14이다. | 판은 v2.0.1 이다. | 2024. 3. 1. 삼일절",
    "2024년이다! | 10명? | 그렇다.",
    # Abbreviations and initials.
    "J. K. 롤링과 로버트 E. 리 대령은 U.S. 시민이다. | e.g. 이것",
    "Mr. 김과 Dr. 이 vs. Prof. 박 등 etc. 여럿. | No. 5 향수",
    "ABC. | 다음은 Word. | 끝",
    # Addresses and names of files.
    "https://example.com/a.b?c=d#!e 를 보라. | config.json 은 .NET 파일이다.",
    # Closing quotes, brackets and references belong to the sentence before.
    "“가자.” | ‘그래!’ | (끝났다.) | 「책이다.」 | 『책이다.』 | **굵다.** | 있다.[12][3] | 다음",
    '그는 말했다. | "가자." | 나는 갔다.',
    # A quotation goes on.
    '"좋다." 라고 말했다. | “가자!” 하고 외쳤다. | \'어디?\' 라는 물음. | "응!" 하며 웃었다.',
    '"아니?" 했다. | "그래." 하였다. | “왜?” 는 물음이고 “책?” 이란 말은 "뭐?" 고 답했다.',
    "“가자!” | 하지만 그는 남았다. | ‘응.’ | 한 사람이 했던 말이다.",
    "끝났다. | 이란 축구는 강하다. | 하고 싶은 말이 많다. | 했던 말이다.",
    # Web text.
    "재밌어요ㅋㅋ | 또 보고 싶다 ㅠㅠ | 정말 좋음ㅎㅎㅎ | 최고죠^^ | 네",
    "진짜 ㅋㅋ 웃겨 ㅋ 아하하 그런데ㅎㅎ | 또 ㅠㅠ 봤다",
    "뭐야?ㅋㅋㅋ | 헐ㅋㅋ! | 알았어ㅋㅋ. | 응",
    "아ㅋㅋㅋ진짜 한 포기를?! | ㅋㅋㅋ 응",
]


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_rule_splits_at_the_ends_of_sentences(case):
    sentences = case.split(" | ")
    assert make_sentence_splitter("rule")([" ".join(sentences)]) == sentences


def test_no_sentence_spans_two_lines():
    assert make_sentence_splitter("rule")(["하나. 둘", "셋", "", "넷. 다섯."]) == ["하나.", "둘", "셋", "넷.", "다섯."]


def test_none_leaves_lines_as_they_are():
    lines = ["하나. 둘", "셋."]
    assert make_sentence_splitter("none")(lines) == lines


TELLING_CHARACTERS = ".!?…。 \t\u3000\u2028\n\"'”)]1aA다요ㅋㅠ^라고하"
TEXTS = st.text(st.one_of(st.sampled_from(TELLING_CHARACTERS), st.characters(codec="utf-8")))


@given(text=TEXTS)
@example(text="다.  라고 하고")
@example(text="“다.”   하고")
def test_rule_loses_no_character_but_spaces(text):
    sentences = make_sentence_splitter("rule")([text])
    assert " ".join(" ".join(sentences).split()) == " ".join(text.split())
    assert all(sentence and sentence == sentence.strip() for sentence in sentences)
    assert make_sentence_splitter("rule")(sentences) == sentences, "splitting twice changes nothing"


@pytest.mark.parametrize("pattern", ["!", "ㅋ", '"', " ", '다."', "다. ", "다.[1]", "다ㅋ!"])
def test_rule_takes_linear_time(pattern):
    # A search that looks at all that follows from everywhere would take hours.
    text = "다." + pattern * 200_000 + "라"
    assert " ".join(make_sentence_splitter("rule")([text])) == " ".join(text.split())


def test_rule_finds_the_sentences_of_the_sample_again(sample_corpus):
    split = make_sentence_splitter("rule")
    expected, found = set(), set()
    for number, document in enumerate(CorpusReader(sample_corpus).documents()):
        for sentences, borders in ((document, expected), (split([" ".join(document)]), found)):
            text = ""
            for sentence in sentences[:-1]:
                text += sentence.replace(" ", "")
                borders.add((number, len(text)))
    assert len(expected) > 3_000
    # A stop that no rule would miss is in 97% of the sample's lines; dialogues hold lines of two sentences.
    assert len(found & expected) / len(found) > 0.98 and len(found & expected) / len(expected) > 0.99


@pytest.fixture
def kiwi():
    pytest.importorskip("kiwipiepy")
    return make_sentence_splitter("kiwi")


@pytest.mark.slow
def test_kiwi_splits_where_no_mark_tells(kiwi):
    lines = ["여러 문장으로 된 글이네 이걸 나눠 보자", "", "하나다. 둘이다."]
    assert kiwi(lines) == ["여러 문장으로 된 글이네", "이걸 나눠 보자", "하나다.", "둘이다."]


@pytest.mark.slow
@settings(max_examples=25)
@given(text=TEXTS)
def test_kiwi_loses_no_character_but_spaces(text):
    pytest.importorskip("kiwipiepy")
    for form in ("NFC", "NFD"):
        text = unicodedata.normalize(form, text)
        sentences = make_sentence_splitter("kiwi")([text, "👩🏽‍🚀 가요. " + text])
        assert "".join("".join(sentences).split()) == "".join(f"{text} 👩🏽‍🚀 가요. {text}".split())


@pytest.mark.slow
def test_kiwi_takes_lines_as_long_as_the_reader_gives_them(kiwi):
    for line in ("나는 밥을 먹었다 " * 6_553, "가" * 65_536):
        assert "".join(kiwi([line])).replace(" ", "") == line.replace(" ", "")


def test_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "kiwipiepy", None)
    with pytest.raises(InputError, match=r"`sentence_splitter=kiwi` needs kiwipiepy, .*install .*\[vocab\]"):
        make_sentence_splitter("kiwi")
    assert make_sentence_splitter("rule")(["가. 나"]) == ["가.", "나"]
