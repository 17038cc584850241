"""The tokenizer gives, piece for piece, what the plain-Python reference gives."""

import pytest
import reference
from hypothesis import example, given, settings
from hypothesis import strategies as st
from text_strategies import ANY_TEXT, FRAGMENTS, SCHEMES, SETTINGS, TROUBLE, spell, tokenizer_that_knows

from albert_tf.tokenization import KoreanWordPieceTokenizer, Vocabulary

TEXTS = [
    "",
    " ",
    "나는 밥을 먹었다.",
    "ㅋㅋㅋ 진짜 재밌다ㅠㅠ!!",
    "2020년에 GPT-3가 나왔다(오픈AI).",
    "大韓民國은 민주共和國이다",
    "[MASK] [CLS]가 [unused0] 말하길: ##는 _가_ 아니다 __",
    "이메일: hong_gil-dong@example.co.kr ▁ 끝",
    "ΑΣ ΟΔΟΣ. Σ ΑΣΑ ΑΣ'Α",
    "Ὀδυσσεύς İstanbul Straße ﬁn",
    "שלום\u200f, مرحبا بالعالم! 안녕",
    "👨\u200d👩\u200d👧 가족 ❤\ufe0f",
    "a\0b\x1fc\x1ed\ufeffe",
    "ᄒ\u0301ᅡᆫ 한\u302e",
    "가" * 5_000,
    "가 나" * 2_500,
    "한.漢" * 1_000,
    *TROUBLE,
    *FRAGMENTS,
]
OTHER_SWITCHES = ("strip_accents", "squeeze_repeats", "full_width_to_ascii")
# Of the first three settings any two values come together; the texts that are drawn below have all combinations.
PAIRWISE_SETTINGS = [
    {
        "wordpiece_scheme": SCHEMES[first],
        "lower_case": second,
        "split_punctuation": third,
        "split_digits": first != second,
        "keep_emoji": first == third,
        "split_emoji": second != third,
        **dict.fromkeys(OTHER_SWITCHES, first != third),
    }
    for first, second, third in [(True, True, True), (True, False, False), (False, True, False), (False, False, True)]
]


def pieces_of(tokenizer, texts):
    """Returns the pieces of each text, by the fast path."""
    return [[tokenizer.vocabulary.pieces[i] for i in ids] for ids in tokenizer.encode_ids(texts).to_list()]


@pytest.mark.slow
@pytest.mark.parametrize("choice", PAIRWISE_SETTINGS, ids=lambda choice: "-".join(map(str, choice.values())))
def test_hand_picked_texts(choice):
    judge = reference.ReferenceTokenizer(spell(TEXTS, **choice), **choice)
    assert pieces_of(tokenizer_that_knows(TEXTS, **choice), TEXTS) == [judge.tokenize(text) for text in TEXTS]
    # Half of the pieces are taken away, so that many words are unknown.
    pieces = ["[UNK]", *spell(TEXTS, **choice)[::2]]
    judge = reference.ReferenceTokenizer(pieces, **choice)
    tokenizer = KoreanWordPieceTokenizer(Vocabulary(list(dict.fromkeys(pieces))), **choice)
    assert pieces_of(tokenizer, TEXTS) == [judge.tokenize(text) for text in TEXTS]


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(ANY_TEXT, max_size=4), SETTINGS)
def test_any_texts(texts, choice):
    tokenizer = tokenizer_that_knows(texts, **choice)
    judge = reference.ReferenceTokenizer(tokenizer.vocabulary.pieces, **choice)
    assert pieces_of(tokenizer, texts) == [judge.tokenize(text) for text in texts]
    words = [[word.decode() for word in row] for row in tokenizer.split_words(texts).to_list()]
    assert words == [judge.words(text) for text in texts]
    pieces = [
        [[tokenizer.vocabulary.pieces[i] for i in ids] for ids in row]
        for row in tokenizer.encode_words(texts).to_list()
    ]
    assert pieces == [[judge.cut(word) for word in row] for row in words]


SYLLABLES_AND_MARKS = "가나#_"


@pytest.mark.slow
@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.sampled_from(["", "##"]), st.text(SYLLABLES_AND_MARKS, max_size=4)).map("".join), max_size=14
    ),
    st.lists(st.text(SYLLABLES_AND_MARKS, max_size=12), min_size=1, max_size=10),
    st.sampled_from(SCHEMES),
)
@example(["#", "###_가"], ["##_가"], "continuation")
def test_any_vocabulary_is_matched_longest_first(pieces, texts, scheme):
    choice = {"wordpiece_scheme": scheme, "split_punctuation": False}
    tokenizer = KoreanWordPieceTokenizer(Vocabulary(["[UNK]", *dict.fromkeys(filter(None, pieces))]), **choice)
    judge = reference.ReferenceTokenizer(pieces, **choice)
    assert pieces_of(tokenizer, texts) == [judge.tokenize(text) for text in texts]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("split_punctuation", [True, False])
def test_text_never_turns_into_special_tokens(scheme, split_punctuation):
    texts = ["[MASK]", "[UNK] [PAD]", "[unused0][CLS]"]
    choice = {"wordpiece_scheme": scheme, "split_punctuation": split_punctuation, "lower_case": False}
    tokenizer = tokenizer_that_knows(texts, **choice)
    for text in texts:
        pieces = tokenizer.tokenize(text)
        assert len(pieces) > 1 and not any(piece in text.split() for piece in pieces)


def test_typed_number_signs_never_turn_into_pieces_inside_words():
    tokenizer = KoreanWordPieceTokenizer(Vocabulary(["[UNK]", "##", "##는", "#", "###"]), split_punctuation=False)
    assert tokenizer.tokenize("##는") == ["#", "###", "##는"]


@pytest.mark.parametrize(("scheme", "longest"), [("continuation", 200), ("end_of_word", 199)])
def test_too_long_words_are_unknown(scheme, longest):
    """The mark `_` counts: 199 syllables and it are 598 bytes."""
    tokenizer = KoreanWordPieceTokenizer(Vocabulary(["[UNK]", "한", "##한", "_", "끝"]), wordpiece_scheme=scheme)
    assert "[UNK]" not in tokenizer.tokenize("한" * longest + " 끝")
    assert tokenizer.tokenize("한" * (longest + 1) + " 끝") == ["[UNK]", "끝"]


def test_no_texts_give_no_rows():
    assert tokenizer_that_knows(["가"]).encode_ids([]).shape == (0, None)


def test_lone_surrogates_stand_for_nothing():
    tokenizer = tokenizer_that_knows(["가나"])
    assert tokenizer.tokenize("\ud800가\udfff나") == tokenizer.tokenize("가나")
    assert tokenizer.encode("\ud800가\udfff나").offsets[1:-1] == [(1, 4)]


@pytest.mark.slow
def test_every_line_of_the_sample(sample_tokenizer, sample_lines):
    judge = reference.ReferenceTokenizer(sample_tokenizer.vocabulary.pieces)
    for line, pieces in zip(sample_lines, pieces_of(sample_tokenizer, sample_lines), strict=True):
        assert pieces == judge.tokenize(line), line


PUBLIC_VOCABULARIES = {
    "koelectra_32200.txt": {"lower_case": False},
    "kcbert_30000.txt": {"lower_case": True, "strip_accents": True},
    "krbert_char_16424.txt": {"lower_case": False, "split_punctuation": False},
    "ilhoonkim_nsmc_26383.txt": {"wordpiece_scheme": "end_of_word", "split_punctuation": False},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLIC_VOCABULARIES)
def test_lines_of_real_text(shared_data, real_lines, name):
    choice = PUBLIC_VOCABULARIES[name]
    # The vocabularies share the lines, because the reference takes its time.
    own_lines = real_lines[list(PUBLIC_VOCABULARIES).index(name) :: len(PUBLIC_VOCABULARIES)]
    tokenizer = KoreanWordPieceTokenizer.from_vocab_file(shared_data / "vocabs" / name, **choice)
    judge = reference.ReferenceTokenizer(tokenizer.vocabulary.pieces, **choice)
    for begin in range(0, len(own_lines), 10_000):
        lines = own_lines[begin : begin + 10_000]
        for line, pieces in zip(lines, pieces_of(tokenizer, lines), strict=True):
            assert pieces == judge.tokenize(line), line
