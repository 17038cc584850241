"""Offsets of pieces count characters of the text as it was given, before normalisation."""

import unicodedata

import pytest
import reference
from hypothesis import assume, given
from hypothesis import strategies as st
from text_strategies import ANY_TEXT, SCHEMES, SETTINGS, SPECIAL_TOKENS, tokenizer_that_knows

from albert_tf.tokenization import KoreanWordPieceTokenizer, Vocabulary

KOREAN_PIECES = ["한국", "##어", "나", "나_", "##는", "_", "!"]
PIECES = [*SPECIAL_TOKENS, *KOREAN_PIECES, "é", "e", "i", "i\u0307", "x", "##x"]


def tokenizer_with(**settings):
    return KoreanWordPieceTokenizer(Vocabulary(PIECES), **settings)


def decomposed(text):
    return unicodedata.normalize("NFD", text)


def pieces_and_offsets(tokenizer, text, text_pair=None):
    encoding = tokenizer.encode(text, text_pair)
    return list(zip(encoding.tokens, encoding.offsets))


@pytest.mark.parametrize(
    ("text", "settings", "expected"),
    [
        ("한국어", {}, [("한국", (0, 2)), ("##어", (2, 3))]),
        (decomposed("한국어"), {}, [("한국", (0, 6)), ("##어", (6, 8))]),
        ("  한국\u3000\t 나는!", {}, [("한국", (2, 4)), ("나", (7, 8)), ("##는", (8, 9)), ("!", (9, 10))]),
        ("\ufeff한\u200b국어", {}, [("한국", (1, 4)), ("##어", (4, 5))]),
        ("Ｅ É", {"strip_accents": True}, [("[UNK]", (0, 1)), ("e", (2, 3))]),
        ("E\u0301x", {"strip_accents": True}, [("e", (0, 2)), ("##x", (2, 3))]),
        ("E\u0301", {}, [("é", (0, 2))]),
        ("İx", {}, [("i\u0307", (0, 1)), ("##x", (1, 2))]),
        ("İx", {"strip_accents": True}, [("i", (0, 1)), ("##x", (1, 2))]),
        ("모르는 한국", {}, [("[UNK]", (0, 3)), ("한국", (4, 6))]),
        ("가" * 3_000 + "나", {}, [("[UNK]", (0, 3_001))]),
        ("나  나", {"wordpiece_scheme": "end_of_word"}, [("나_", (0, 1)), ("나", (3, 4))]),
        # A mark that is a piece of its own stands for no character; it lies behind the word that it marks.
        ("x  나", {"wordpiece_scheme": "end_of_word"}, [("x", (0, 1)), ("_", (1, 1)), ("나", (3, 4))]),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_offsets_point_into_the_text_as_given(text, settings, expected):
    assert pieces_and_offsets(tokenizer_with(**settings), text)[1:-1] == expected


def test_offsets_of_a_pair_point_into_each_text_of_it():
    assert pieces_and_offsets(tokenizer_with(), " 나", "  한국!") == [
        ("[CLS]", (0, 0)),
        ("나", (1, 2)),
        ("[SEP]", (0, 0)),
        ("한국", (2, 4)),
        ("!", (4, 5)),
        ("[SEP]", (0, 0)),
    ]


@pytest.mark.slow
@given(ANY_TEXT, SETTINGS)
def test_pieces_follow_each_other_and_leave_out_nothing_but_spaces_and_removed_characters(text, settings):
    tokenizer = tokenizer_that_knows([text], **settings)
    encoding = tokenizer.encode(text)
    assert encoding.ids[1:-1] == tokenizer.encode_ids([text])[0].numpy().tolist()
    covered, last = set(), (0, 0)
    for begin, end in encoding.offsets[1:-1]:
        assert last[0] <= begin <= end <= len(text) and last[1] <= end
        covered.update(range(begin, end))
        last = begin, end
    left_out = "".join(character for i, character in enumerate(text) if i not in covered)
    judge = reference.ReferenceTokenizer([], **settings)
    assert judge.normalize(left_out) == ""


# Each becomes the same normalised characters alone as among others.
INDEPENDENT = ["한국어", "값", "ㅋㅠ", "éÉ", "Å", "ñ가각", "Straße", "漢\uf900", "אב", *".,!#_", "\u200b\0", "\u3000\n"]
SEVERAL_FORMS = st.one_of(
    st.sampled_from(INDEPENDENT), st.sampled_from(INDEPENDENT).map(decomposed), st.sampled_from(" \t\u00a0")
)


@pytest.mark.slow
@given(st.lists(SEVERAL_FORMS, max_size=15).map("".join), SETTINGS)
def test_text_that_a_piece_covers_is_that_piece_once_normalised(text, settings):
    encoding = tokenizer_that_knows([text], **settings).encode(text)
    judge = reference.ReferenceTokenizer([], **settings)
    unsqueezed = reference.ReferenceTokenizer([], **{**settings, "squeeze_repeats": False})
    assume(judge.normalize(text) == unsqueezed.normalize(text))  # a piece that stands for a run covers all of it
    for piece, (begin, end) in zip(encoding.tokens[1:-1], encoding.offsets[1:-1]):
        assert judge.normalize(text[begin:end]) == surface(piece, settings["wordpiece_scheme"])


def surface(piece, scheme):
    """Returns the normalised text that a piece stands for."""
    if scheme == "continuation":
        return piece.removeprefix("##")
    return piece.removesuffix("_").replace("\ufffd", "_")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("text", ["", " \u3000", "\0\u200b"], ids=ascii)
def test_text_without_words_has_no_pieces(text, scheme):
    encoding = tokenizer_with(wordpiece_scheme=scheme).encode(text)
    assert encoding.tokens == ["[CLS]", "[SEP]"] and encoding.offsets == [(0, 0), (0, 0)]
