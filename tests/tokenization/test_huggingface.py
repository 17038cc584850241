"""The exported Hugging Face tokenizer gives the ids of ours."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from text_strategies import ANY_TEXT, EVERY_CHARACTER, SPECIAL_TOKENS, TROUBLE

from albert_tf.base.errors import InputError
from albert_tf.tokenization import KoreanWordPieceTokenizer, Vocabulary
from albert_tf.tokenization.huggingface import export_huggingface, to_tokenizers

TEXTS = [
    "나는 밥을 먹었다.",
    "ㅋㅋㅋㅋㅋ 진짜 재밌다ㅠㅠㅠ!!!! Café ÀB 2020년에 1,000원",
    "大韓民國은 민주共和國이다",
    "[MASK] [CLS]가 [unused0] 말하길: ##는 _가_ 아니다 __",
    "ΑΣ ΟΔΟΣ. Σ ΑΣΑ İstanbul Straße ﬁn",
    "👨\u200d👩\u200d👧 가족 ❤\ufe0f 👍🏽 1\ufe0f\u20e3 a\u200db 🏴\U000e0067\U000e0062\U000e007f",
    "ＡＢＣ１２！\u3000a\0b\x1fc\ufeffe\t\n",
    "ᄒ\u0301ᅡᆫ 한\u302e e\u0301 \u1112\u1161\u11ab",
    TROUBLE,
]
SWITCHES = {
    "lower_case": False,
    "strip_accents": True,
    "split_punctuation": False,
    "squeeze_repeats": True,
    "full_width_to_ascii": True,
    "split_digits": True,
    "keep_emoji": False,
    "split_emoji": True,
}
CHOICES = st.fixed_dictionaries({name: st.booleans() for name in SWITCHES})
# U+1171E is a combining mark of another category in a later version of Unicode.
OTHER_UNICODE = "\U0001171e"


def tokenizer_for(texts, **choice):
    """Returns a tokenizer with pieces for most characters of texts: some words are known, some are not."""
    splitter = KoreanWordPieceTokenizer(Vocabulary(["[UNK]"]), **choice)
    words = sorted({word.decode() for word in splitter.split_words(texts).flat_values.numpy()})
    beginnings = sorted({character for word in words for character in word} | {word[:2] for word in words})
    pieces = [spelled for beginning in beginnings for spelled in (beginning, "##" + beginning)]
    # Every 17th is left out.
    kept = [piece for index, piece in enumerate(pieces) if index % 17 != 16]
    return KoreanWordPieceTokenizer(Vocabulary(list(dict.fromkeys([*SPECIAL_TOKENS, *kept]))), **choice)


def assert_same_ids(peer, tokenizer, texts):
    """Compares the ids of an exported tokenizer with ours, [CLS] and [SEP] included."""
    cls, sep = (tokenizer.vocabulary.id_of(token) for token in ("[CLS]", "[SEP]"))
    ours = [[cls, *ids, sep] for ids in tokenizer.encode_ids(texts).to_list()]
    theirs = [encoding.ids for encoding in peer.encode_batch(texts)]
    different = [row for row in zip(texts, ours, theirs) if row[1] != row[2]]
    assert not different, different[:3]


def without_exceptions(tokenizer, texts):
    """Leaves out texts with words that the document of the module names as exceptions."""
    words = [[word.decode() for word in row] for row in tokenizer.split_words(texts).to_list()]

    def is_expressible(word):
        is_spelled_like_a_piece = word.startswith("##") or re.fullmatch(r"\[[A-Za-z]+\d*\]", word)
        return len(word.encode()) <= 600 and not is_spelled_like_a_piece

    return [text for text, row in zip(texts, words) if all(map(is_expressible, row))]


@pytest.mark.parametrize("switch", [None, *SWITCHES])
def test_each_switch(switch):
    choice = {switch: SWITCHES[switch]} if switch else {}
    tokenizer = tokenizer_for(TEXTS, **choice)
    texts = TEXTS if choice.get("split_punctuation", True) else without_exceptions(tokenizer, TEXTS)
    assert_same_ids(to_tokenizers(tokenizer), tokenizer, texts)


@pytest.mark.slow
@settings(max_examples=50)
@given(st.lists(ANY_TEXT, min_size=1, max_size=4), CHOICES)
def test_any_texts(texts, choice):
    texts = [text.replace(OTHER_UNICODE, "") for text in texts]
    tokenizer = tokenizer_for(texts, **choice)
    assert_same_ids(to_tokenizers(tokenizer), tokenizer, without_exceptions(tokenizer, texts) or [""])


@pytest.mark.slow
@pytest.mark.parametrize("choice", [{}, SWITCHES], ids=["defaults", "switches"])
def test_every_character(choice):
    texts = [f"a{character}a {character} " for character in EVERY_CHARACTER if character != OTHER_UNICODE]
    tokenizer = tokenizer_for(texts, **choice)
    assert_same_ids(to_tokenizers(tokenizer), tokenizer, without_exceptions(tokenizer, texts))


def test_offsets_are_those_of_plain_text():
    text = "나는 밥을 먹었다."
    tokenizer = tokenizer_for([text])
    assert to_tokenizers(tokenizer).encode(text).offsets == tokenizer.encode(text).offsets


@pytest.mark.slow
def test_transformers_loads_it(tmp_path):
    transformers = pytest.importorskip("transformers")
    tokenizer = tokenizer_for(TEXTS)
    export_huggingface(tokenizer, tmp_path, max_seq_length=128)
    by_file = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(tmp_path / "tokenizer.json"), split_special_tokens=True
    )
    loaded = transformers.AutoTokenizer.from_pretrained(str(tmp_path))
    for peer in (by_file, loaded):
        for text in TEXTS:
            assert peer(text)["input_ids"] == tokenizer.encode(text).ids
        pair = peer(TEXTS[0], TEXTS[1], return_token_type_ids=True)
        ours = tokenizer.encode(TEXTS[0], TEXTS[1])
        assert pair["input_ids"] == ours.ids and pair["token_type_ids"] == ours.segment_ids
    assert loaded.pad_token_id == 0 and loaded.mask_token == "[MASK]" and loaded.model_max_length == 128
    assert loaded.decode(tokenizer.encode("나는 밥을").ids, skip_special_tokens=True) == "나는 밥을"


def test_end_of_word_is_refused(tmp_path):
    tokenizer = KoreanWordPieceTokenizer(Vocabulary(SPECIAL_TOKENS), wordpiece_scheme="end_of_word")
    with pytest.raises(InputError, match="wordpiece_scheme=end_of_word can't be expressed"):
        export_huggingface(tokenizer, tmp_path)
    assert not list(tmp_path.iterdir())


def test_missing_special_token_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"has no \[MASK\]"):
        export_huggingface(KoreanWordPieceTokenizer(Vocabulary(SPECIAL_TOKENS[:4])), tmp_path)


def test_our_own_folder_is_refused_and_another_export_replaced(tmp_path):
    tokenizer = tokenizer_for(TEXTS)
    tokenizer.save(tmp_path / "ours")
    with pytest.raises(InputError, match="choose another folder"):
        export_huggingface(tokenizer, tmp_path / "ours")
    assert KoreanWordPieceTokenizer.load(tmp_path / "ours").identity == tokenizer.identity
    export_huggingface(tokenizer_for(["가"]), tmp_path / "theirs")
    export_huggingface(tokenizer, tmp_path / "theirs")
    content = json.loads((tmp_path / "theirs" / "tokenizer.json").read_text(encoding="utf-8"))
    assert len(content["model"]["vocab"]) == len(tokenizer.vocabulary)
