"""The tokenizer in the hands of users: encode, decode, save, load, compare."""

import hashlib
import json

import pytest
import reference
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from text_strategies import ANY_TEXT, SETTINGS, SPECIAL_TOKENS, tokenizer_that_knows

from albert_tf.base.errors import InputError
from albert_tf.tokenization import KoreanWordPieceTokenizer, Vocabulary

PIECES = [*SPECIAL_TOKENS, "나", "##는", "밥", "##을", "먹", "##었", "##다", ".", "는_", "밥_", "을_", "다_", "._"]
NOT_THE_DEFAULTS = {
    "wordpiece_scheme": "end_of_word",
    "lower_case": False,
    "strip_accents": True,
    "squeeze_repeats": True,
    "full_width_to_ascii": True,
    "keep_emoji": False,
    "split_punctuation": False,
    "split_digits": True,
    "split_emoji": True,
}


def make_tokenizer(**settings):
    return KoreanWordPieceTokenizer(Vocabulary(PIECES), **settings)


def test_encoding_of_a_pair():
    encoding = make_tokenizer().encode("나", "밥을 먹다")
    assert encoding.tokens == ["[CLS]", "나", "[SEP]", "밥", "##을", "먹", "##다", "[SEP]"]
    assert encoding.segment_ids == [0, 0, 0, 1, 1, 1, 1, 1]
    assert make_tokenizer().encode("나", "").segment_ids == [0, 0, 0, 1]


@settings(max_examples=20)
@given(st.lists(st.tuples(ANY_TEXT, ANY_TEXT), max_size=3), SETTINGS)
def test_a_batch_is_encoded_as_each_pair_alone(pairs, choice):
    texts, text_pairs = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    tokenizer = tokenizer_that_knows([*texts, *text_pairs], **choice)
    assert tokenizer.encode_batch(texts, text_pairs) == [tokenizer.encode(*pair) for pair in pairs]


def test_a_batch_of_any_size_is_encoded():
    tokenizer = make_tokenizer()
    texts = ["나는 밥.", "", "밥을 먹다"] * 700
    encodings = tokenizer.encode_batch(texts)
    assert encodings == [tokenizer.encode(text) for text in texts[:3]] * 700
    with pytest.raises(InputError, match="there are 2100 texts, but 1 text_pairs"):
        tokenizer.encode_batch(texts, ["나"])


@pytest.mark.parametrize("num_copies", [1, 100], ids=["at once", "as a graph"])
def test_texts_that_are_split_differently_keep_their_place_among_others(num_copies):
    texts = ["", "❤\ufe0f 가", "나는 밥을 먹었다.", "1\ufe0f\u20e3", "\ufe0f", "漢字 “가”!", "❤\ufe0f\ufe0f"]
    tokenizer = tokenizer_that_knows(texts)
    judge = reference.ReferenceTokenizer(tokenizer.vocabulary.pieces)
    expected = [[tokenizer.vocabulary.id_of(piece) for piece in judge.tokenize(text)] for text in texts]
    assert tokenizer.encode_ids(texts * num_copies).to_list() == expected * num_copies


def test_encoding_needs_special_tokens_but_tokenizing_does_not():
    tokenizer = KoreanWordPieceTokenizer(Vocabulary(["[UNK]", "나"]))
    assert tokenizer.tokenize("나 너") == ["나", "[UNK]"]
    with pytest.raises(InputError, match=r"has no \[CLS\]"):
        tokenizer.encode("나")


def test_pieces_with_control_characters_are_never_matched_nor_an_error():
    odd = ["\0", "a\0b", "##a\0", "\x1e", "\x1ea", "\x1f", "\x1f[UNK]", "\x1f[MASK]", "##\x1f", "b" * 255 + "\x01"]
    tokenizer = KoreanWordPieceTokenizer(Vocabulary([*SPECIAL_TOKENS, "a", "##a", *odd]), max_characters_per_word=3)
    for text in ["aa \x1f a\x1fa [MASK] aaaa", *odd]:
        assert not {tokenizer.vocabulary.id_of(piece) for piece in odd} & {*tokenizer.encode_ids([text]).values.numpy()}
    assert tokenizer.tokenize("aaaa a") == ["[UNK]", "a"]


def test_scheme_of_the_seed_system():
    """Its author's own example, with the pieces that it needs and single characters that must not win over them."""
    sentence = "이 영화는 정말 기분나쁘고 소름돋아서 다시는 보기 싫었어요."
    pieces = "이_ 영화 는_ 정말_ 기분 나쁘 고_ 소름 돋 아서_ 다시는_ 보기_ 싫 었어 요 ."
    vocabulary = Vocabulary(["[UNK]", "[CLS]", "[SEP]", *dict.fromkeys([*pieces.split(), *sentence.replace(" ", "_")])])
    tokenizer = KoreanWordPieceTokenizer(vocabulary, wordpiece_scheme="end_of_word", split_punctuation=False)
    encoding = tokenizer.encode(sentence)
    assert " ".join(encoding.tokens) == f"[CLS] {pieces} [SEP]"
    assert tokenizer.decode(encoding.ids) == sentence


@pytest.mark.slow
@settings(max_examples=60)
@given(ANY_TEXT, SETTINGS)
def test_ids_give_back_the_normalised_text_or_its_words(text, choice):
    tokenizer = tokenizer_that_knows([text], **choice)
    encoding = tokenizer.encode(text)
    assume("[UNK]" not in encoding.tokens)  # a word may be too long
    judge = reference.ReferenceTokenizer([], **choice)
    is_marked = choice["wordpiece_scheme"] == "end_of_word"
    assert tokenizer.decode(encoding.ids) == (judge.normalize(text) if is_marked else " ".join(judge.words(text)))


def test_underscores_of_the_text_are_kept_apart_from_marks():
    texts = ["_", "a_b", "_ _", "a _", "__ a__ b", "▁", "a▁ b_", "[mask]_ ##a"]
    tokenizer = tokenizer_that_knows(texts, wordpiece_scheme="end_of_word")
    assert [tokenizer.decode(encoding.ids) for encoding in tokenizer.encode_batch(texts)] == texts


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


@pytest.mark.parametrize("choice", [{}, NOT_THE_DEFAULTS], ids=["defaults", "others"])
def test_saved_tokenizer_loads_as_the_same(tmp_path, choice):
    tokenizer = make_tokenizer(**choice)
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


def change_settings(folder, **changes):
    path = folder / "tokenizer.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mood": "good"}, r"tokenizer\.json: .*mood.*; remove the unknown setting"),
        (
            {"wordpiece_scheme": "prefix"},
            r"tokenizer\.json: .*must be one of continuation, end_of_word. Received: prefix",
        ),
        ({"lower_case": "false"}, r"tokenizer\.json: lower_case must be true or false. Received: 'false'"),
        ({"vocab_sha256": "0"}, r"vocab\.txt is not the vocabulary that .*tokenizer\.json was written for"),
    ],
    ids=ascii,
)
def test_loading_refuses_unknown_settings_and_values(tmp_path, changes, message):
    make_tokenizer().save(tmp_path)
    change_settings(tmp_path, **changes)
    with pytest.raises(InputError, match=message) as error:
        KoreanWordPieceTokenizer.load(tmp_path)
    assert "\n" not in str(error.value)


def remove_settings(folder, *names):
    path = folder / "tokenizer.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps({name: value for name, value in settings.items() if name not in names}))


def test_settings_without_the_hash_of_the_vocabulary_are_refused(tmp_path):
    make_tokenizer().save(tmp_path)
    remove_settings(tmp_path, "vocab_sha256")
    with pytest.raises(InputError, match=r"tokenizer\.json has no vocab_sha256"):
        KoreanWordPieceTokenizer.load(tmp_path)


def test_settings_beside_a_vocabulary_are_not_left_out(tmp_path):
    make_tokenizer(split_emoji=True).save(tmp_path)
    path = tmp_path / "vocab.txt"
    assert KoreanWordPieceTokenizer.from_vocab_file(path, split_emoji=True).split_emoji
    with pytest.raises(InputError, match=r"tokenizer\.json, beside .* has other values of split_emoji; use .*\.load"):
        KoreanWordPieceTokenizer.from_vocab_file(path)
    path.write_text("\n".join([*PIECES, "또"]) + "\n", encoding="utf-8")  # no longer the vocabulary that it is of
    assert not KoreanWordPieceTokenizer.from_vocab_file(path).split_emoji


LATER_SETTINGS = ["squeeze_repeats", "full_width_to_ascii", "keep_emoji", "split_digits", "split_emoji"]


def test_settings_saved_before_there_were_more_stand_for_the_same_tokenizer(tmp_path):
    tokenizer = make_tokenizer()
    tokenizer.save(tmp_path)
    remove_settings(tmp_path, *LATER_SETTINGS)
    loaded = KoreanWordPieceTokenizer.load(tmp_path)
    assert loaded.to_dict() == tokenizer.to_dict()
    assert tokenizer.is_saved_as(tmp_path / "tokenizer.json")
    for name in NOT_THE_DEFAULTS:
        assert not make_tokenizer(**{name: NOT_THE_DEFAULTS[name]}).is_saved_as(tmp_path / "tokenizer.json")
    # The identity that data made with such a file carries.
    old = {"wordpiece_scheme": "continuation", "lower_case": True, "strip_accents": False, "split_punctuation": True}
    old = json.dumps({**old, "vocab_sha256": tokenizer.vocabulary.sha256}, sort_keys=True)
    assert loaded.identity == hashlib.sha256(old.encode()).hexdigest()


@pytest.mark.parametrize(
    ("pieces", "scheme", "message"),
    [
        (["이_", "는_", "."], "continuation", r"no piece that starts with ##: it looks like .*end_of_word"),
        (["▁이", "는"], "continuation", r"no piece that starts with ##: it looks like SentencePiece's"),
        (["이", "는"], "continuation", r"no piece that starts with ##: a word of more than one piece"),
        (
            ["이", "##는", "_"],
            "end_of_word",
            r"looks like .* continuation scheme, because more .* ## \(1\) than end in _ \(0\)",
        ),
    ],
)
def test_a_vocabulary_of_another_scheme_is_told_by_its_looks(tmp_path, pieces, scheme, message):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join([*SPECIAL_TOKENS, *pieces]), encoding="utf-8")
    with pytest.raises(InputError, match=rf"vocab\.txt.*{message}") as error:
        KoreanWordPieceTokenizer.from_vocab_file(path, wordpiece_scheme=scheme)
    assert "\n" not in str(error.value)
    KoreanWordPieceTokenizer(Vocabulary([*SPECIAL_TOKENS, *pieces]), wordpiece_scheme=scheme).save(tmp_path)
    with pytest.raises(InputError, match=message):
        KoreanWordPieceTokenizer.load(tmp_path)


@pytest.mark.parametrize("name", ["tokenizer.json", "vocab.txt"])
def test_loading_names_the_file_that_is_missing(tmp_path, name):
    make_tokenizer().save(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(InputError, match=f"{name}: no such file"):
        KoreanWordPieceTokenizer.load(tmp_path)


def test_a_vocabulary_never_lies_there_without_its_settings(tmp_path, monkeypatch, sample_tokenizer):
    def die(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(sample_tokenizer, "_save_vocabulary", die)
    with pytest.raises(KeyboardInterrupt):
        sample_tokenizer.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["tokenizer.json"]
