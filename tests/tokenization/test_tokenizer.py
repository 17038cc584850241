"""What users do with the tokenizer: encode, decode, save, load, compare."""

import json

import pytest
import reference
from hypothesis import assume, given
from hypothesis import strategies as st
from text_strategies import ANY_TEXT, SETTINGS, SPECIAL_TOKENS, tokenizer_that_knows

from albert_tf.errors import InputError
from albert_tf.tokenization import KoreanWordPieceTokenizer, Vocabulary

PIECES = [*SPECIAL_TOKENS, "나", "##는", "밥", "##을", "먹", "##었", "##다", "."]
NOT_THE_DEFAULTS = {
    "wordpiece_scheme": "end_of_word",
    "lower_case": False,
    "strip_accents": True,
    "split_punctuation": False,
}


def make_tokenizer(**settings):
    return KoreanWordPieceTokenizer(Vocabulary(PIECES), **settings)


def test_encoding_of_one_text():
    encoding = make_tokenizer().encode("나는 밥을.")
    assert encoding.tokens == ["[CLS]", "나", "##는", "밥", "##을", ".", "[SEP]"]
    assert encoding.ids == [PIECES.index(token) for token in encoding.tokens]
    assert encoding.segment_ids == [0] * 7


def test_encoding_of_a_pair():
    encoding = make_tokenizer().encode("나", "밥을 먹다")
    assert encoding.tokens == ["[CLS]", "나", "[SEP]", "밥", "##을", "먹", "##다", "[SEP]"]
    assert encoding.segment_ids == [0, 0, 0, 1, 1, 1, 1, 1]
    assert make_tokenizer().encode("나", "").segment_ids == [0, 0, 0, 1]


def test_encoding_needs_special_tokens_but_tokenizing_does_not():
    tokenizer = KoreanWordPieceTokenizer(Vocabulary(["[UNK]", "나"]))
    assert tokenizer.tokenize("나 너") == ["나", "[UNK]"]
    with pytest.raises(InputError, match=r"has no \[CLS\]"):
        tokenizer.encode("나")


def test_scheme_of_the_seed_system(shared_data):
    """Its author's own example, with the vocabulary published with it, which has no [PAD]."""
    tokenizer = KoreanWordPieceTokenizer.from_vocab_file(
        shared_data / "vocabs" / "ilhoonkim_nsmc_26383.txt", wordpiece_scheme="end_of_word", split_punctuation=False
    )
    sentence = "이 영화는 정말 기분나쁘고 소름돋아서 다시는 보기 싫었어요."
    pieces = "이_ 영화 는_ 정말_ 기분 나쁘 고_ 소름 돋 아서_ 다시는_ 보기_ 싫 었어 요 ."
    assert " ".join(tokenizer.tokenize(sentence)) == pieces
    encoding = tokenizer.encode(sentence)
    assert " ".join(encoding.tokens) == f"[CLS] {pieces} [SEP]"
    assert tokenizer.decode(encoding.ids) == sentence


@given(ANY_TEXT, SETTINGS.filter(lambda settings: settings["wordpiece_scheme"] == "end_of_word"))
def test_end_of_word_gives_back_the_normalised_text(text, settings):
    tokenizer = tokenizer_that_knows([text], **settings)
    encoding = tokenizer.encode(text)
    assume("[UNK]" not in encoding.tokens)  # a word may be too long
    assert tokenizer.decode(encoding.ids) == reference.ReferenceTokenizer([], **settings).normalize(text)


@given(ANY_TEXT, SETTINGS.filter(lambda settings: settings["wordpiece_scheme"] == "continuation"))
def test_continuation_gives_back_the_words(text, settings):
    tokenizer = tokenizer_that_knows([text], **settings)
    encoding = tokenizer.encode(text)
    assume("[UNK]" not in encoding.tokens)
    assert tokenizer.decode(encoding.ids) == " ".join(reference.ReferenceTokenizer([], **settings).words(text))


@pytest.mark.parametrize("text", ["_", "a_b", "_ _", "a _", "__ a__ b", "▁", "a▁ b_", "[mask]_ ##a"], ids=ascii)
def test_underscores_of_the_text_are_kept_apart_from_marks(text):
    tokenizer = tokenizer_that_knows([text], wordpiece_scheme="end_of_word")
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_decoding_leaves_out_special_tokens_but_shows_what_is_unknown():
    tokenizer = make_tokenizer()
    pieces = ["[CLS]", "나", "##는", "[MASK]", "[UNK]", "[unused0]", ".", "[SEP]", "[PAD]"]
    ids = [PIECES.index(piece) for piece in pieces]
    assert tokenizer.decode(ids) == "나는 [UNK] ."
    assert tokenizer.decode([]) == ""


def test_a_part_of_a_text_can_be_decoded():
    assert make_tokenizer().decode([PIECES.index("##는"), PIECES.index("밥")]) == "##는 밥"
    tokenizer = KoreanWordPieceTokenizer(Vocabulary(["[UNK]", "나_", "는_"]), wordpiece_scheme="end_of_word")
    assert tokenizer.decode([1, 2]) == "나 는"


@pytest.mark.parametrize("settings", [{}, NOT_THE_DEFAULTS], ids=["defaults", "others"])
def test_saved_tokenizer_loads_as_the_same(tmp_path, settings):
    tokenizer = make_tokenizer(**settings)
    tokenizer.save(tmp_path / "new" / "folder")
    loaded = KoreanWordPieceTokenizer.load(tmp_path / "new" / "folder")
    assert loaded.to_dict() == tokenizer.to_dict() and loaded.identity == tokenizer.identity
    assert loaded.vocabulary.pieces == PIECES
    text = "나는 É밥. 먹다"
    assert loaded.encode(text) == tokenizer.encode(text)
    assert loaded.normalization == tokenizer.normalization and loaded.split_punctuation == tokenizer.split_punctuation


@pytest.mark.parametrize("name", NOT_THE_DEFAULTS)
def test_identity_changes_with_every_setting(name):
    assert make_tokenizer(**{name: NOT_THE_DEFAULTS[name]}).identity != make_tokenizer().identity


@given(st.permutations(PIECES))
def test_identity_changes_with_the_order_of_pieces(pieces):
    is_same = KoreanWordPieceTokenizer(Vocabulary(pieces)).identity == make_tokenizer().identity
    assert is_same == (pieces == PIECES)


def test_identity_does_not_depend_on_where_the_vocabulary_lies(tmp_path):
    path = tmp_path / "pieces.txt"
    path.write_text("\r\n".join(PIECES), encoding="utf-8-sig")
    assert KoreanWordPieceTokenizer.from_vocab_file(path).identity == make_tokenizer().identity


def change_settings(folder, **changes):
    path = folder / "tokenizer.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_loading_refuses_another_vocabulary(tmp_path):
    make_tokenizer().save(tmp_path)
    with open(tmp_path / "vocab.txt", "a", encoding="utf-8") as file:
        file.write("새로\n")
    with pytest.raises(InputError, match=r"vocab\.txt is not the vocabulary that .*tokenizer\.json was written for"):
        KoreanWordPieceTokenizer.load(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mood": "good"}, r"tokenizer\.json: .*mood.*; remove the unknown setting"),
        ({"wordpiece_scheme": "prefix"}, "must be one of continuation, end_of_word. Received: prefix"),
    ],
)
def test_loading_refuses_unknown_settings(tmp_path, changes, message):
    make_tokenizer().save(tmp_path)
    change_settings(tmp_path, **changes)
    with pytest.raises(InputError, match=message):
        KoreanWordPieceTokenizer.load(tmp_path)


@pytest.mark.parametrize("name", ["tokenizer.json", "vocab.txt"])
def test_loading_names_the_file_that_is_missing(tmp_path, name):
    make_tokenizer().save(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(InputError, match=f"{name}: no such file"):
        KoreanWordPieceTokenizer.load(tmp_path)
