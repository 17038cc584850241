"""SentencePiece models as files: special pieces found by name, saved and loaded, and refused where they are damaged."""

import json

import numpy as np
import pytest
import sentencepiece_training
from hypothesis import given, settings
from hypothesis import strategies as st
from sentencepiece_reference import ReferenceTokenizer

from albert_tf.base.errors import InputError
from albert_tf.tokenization import (
    KoreanWordPieceTokenizer,
    SentencePieceModel,
    SentencePieceTokenizer,
    Vocabulary,
    load_tokenizer,
)
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS


@pytest.mark.slow
def test_special_tokens_are_found_by_name(sample_lines):
    options = {
        "pad_id": 3,
        "unk_id": 0,
        "unk_piece": "[UNK]",
        "pad_piece": "[PAD]",
        "control_symbols": "<mask>,[SEP],[CLS]",
    }
    tokenizer = SentencePieceTokenizer(
        SentencePieceModel.from_bytes(sentencepiece_training.train_model(sample_lines[:500], 1000, **options))
    )
    engine_pieces = tokenizer.vocabulary.pieces
    for token, name in (("[PAD]", "[PAD]"), ("[UNK]", "[UNK]"), ("[CLS]", "[CLS]"), ("[MASK]", "<mask>")):
        assert tokenizer.vocabulary.id_of(token) == engine_pieces.index(name)
    assert tokenizer.vocabulary.id_of("[UNK]") == 0 and tokenizer.vocabulary.id_of("[PAD]") == 3


@pytest.mark.slow
def test_no_text_turns_into_a_special_token(sample_lines):
    options = {"control_symbols": "", "user_defined_symbols": "[CLS],[SEP],[MASK],[unused0],!"}
    content = sentencepiece_training.train_model(sample_lines[:500], 1000, **options)
    tokenizer = SentencePieceTokenizer(SentencePieceModel.from_bytes(content), lower_case=False)
    assert "[MASK]" in ReferenceTokenizer(content, lower_case=False)._engine.encode("가 [MASK]", out_type=str)
    assert not {"[MASK]", "[unused0]"} & set(tokenizer.tokenize("가 [MASK] [unused0] [CLS]!"))
    assert "!" in tokenizer.tokenize("가!")
    reserved = {tokenizer.vocabulary.id_of(token) for token in (*SPECIAL_TOKENS, "[unused0]")}
    assert set(range(len(tokenizer))) - set(tokenizer.vocabulary.real_piece_ids.tolist()) == reserved
    assert tokenizer.model.content == content


def test_ids_become_text_again(english_tokenizer):
    assert english_tokenizer.decode(english_tokenizer.encode("The model, 16, (one)").ids) == "the model, 16, (one)"
    inputs = english_tokenizer(["the model", "a"], padding=True, return_tensors="tf")
    assert inputs["input_ids"][1, -1] == 0 and inputs["input_mask"].numpy().sum() == 4 + 3


def test_saved_tokenizer_is_loaded_as_what_it_is(english_tokenizer, tmp_path):
    tokenizer = english_tokenizer.with_unused(2)
    tokenizer.save(tmp_path / "a")
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["spiece.model", "tokenizer.json"]
    loaded = load_tokenizer(tmp_path / "a")
    assert type(loaded) is SentencePieceTokenizer and loaded.to_dict() == tokenizer.to_dict()
    assert loaded.identity == tokenizer.identity != english_tokenizer.identity
    assert loaded.is_saved_as(tmp_path / "a" / "tokenizer.json")
    assert loaded.encode("1,000 dollars") == english_tokenizer.encode("1,000 dollars")
    assert loaded.vocabulary.pieces[-2:] == ["[unused0]", "[unused1]"] and len(loaded) == len(english_tokenizer) + 2
    with pytest.raises(InputError, match=r"tokenizer.json belongs to another kind of tokenizer"):
        KoreanWordPieceTokenizer.load(tmp_path / "a")
    KoreanWordPieceTokenizer(Vocabulary(["[UNK]", "가", "##가"])).save(tmp_path / "b")
    assert type(load_tokenizer(tmp_path / "b")) is KoreanWordPieceTokenizer
    with pytest.raises(InputError, match=r"tokenizer.json belongs to another kind of tokenizer"):
        SentencePieceTokenizer.load(tmp_path / "b")


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"model_sha256": "0"}, "spiece.model is not the model that .*tokenizer.json was written for"),
        ({"lower_case": 1}, "tokenizer.json: lower_case must be true or false. Received: 1"),
        ({"num_unused": -1}, "tokenizer.json: num_unused must be a number from 0 on. Received: -1"),
    ],
)
def test_settings_of_another_tokenizer_are_refused(english_tokenizer, tmp_path, changes, message):
    english_tokenizer.save(tmp_path)
    (tmp_path / "tokenizer.json").write_text(json.dumps({**english_tokenizer.to_dict(), **changes}))
    with pytest.raises(InputError, match=message):
        load_tokenizer(tmp_path)


# The last one is a piece whose text is a number.
@pytest.mark.parametrize(
    "content", [b"", b"[PAD]\n[UNK]\n", b"\x0a\x03abc", b"\x80" * 40, "한국어".encode() * 9, b"\x0a\x02\x08\x01"]
)
def test_file_that_is_no_model_is_refused(content, tmp_path):
    (tmp_path / "a.model").write_bytes(content)
    with pytest.raises(InputError, match=r"a.model is not a SentencePiece model; name the .model file"):
        SentencePieceTokenizer.from_model_file(tmp_path / "a.model")
    with pytest.raises(InputError, match=r"can't read the SentencePiece model .*b.model: no such file"):
        SentencePieceTokenizer.from_model_file(tmp_path / "b.model")


def test_settings_beside_a_model_are_not_left_out(tmp_path, english_model_file):
    SentencePieceTokenizer.from_model_file(english_model_file, lower_case=False).save(tmp_path)
    path = tmp_path / "spiece.model"
    assert SentencePieceTokenizer.from_model_file(path, lower_case=False).to_dict()["lower_case"] is False
    with pytest.raises(InputError, match=r"has other values of lower_case; use SentencePieceTokenizer\.load"):
        SentencePieceTokenizer.from_model_file(path)


def test_pieces_in_another_order_have_other_ids_and_the_same_texts(english_model):
    model = SentencePieceModel.from_bytes(english_model)
    texts = [piece.text for piece in model.pieces]
    moved = ["<url>", *reversed(texts)]
    arranged = model.arranged(moved, "<unk>")
    assert [piece.text for piece in arranged.pieces] == moved and arranged.normalizer == model.normalizer
    lines = ["the model costs 1,000 dollars", "뷁 <url> (one)"]
    found, given = (SentencePieceTokenizer(each).encode_ids(lines).to_list() for each in (arranged, model))
    assert found == [[moved.index(texts[number]) for number in row] for row in given]
    renamed = model.arranged(["[UNK]" if text == "<unk>" else text for text in texts], "[UNK]")
    assert SentencePieceTokenizer(renamed).encode_ids(lines).to_list() == given
    with pytest.raises(InputError, match=r"its piece .* is not in the vocabulary that goes with it"):
        model.arranged(texts[:-1], "<unk>")


def test_model_made_of_its_unigrams_is_the_same(english_model):
    model = SentencePieceModel.from_bytes(english_model)
    made = SentencePieceModel.of_unigrams(model.pieces, model.normalizer, "tokenizer.json")
    assert made.pieces == model.pieces and made.normalizer == model.normalizer and made.composes and made.is_unigram
    assert not SentencePieceModel.of_unigrams(model.pieces, b"", "tokenizer.json").composes
    lines = ["ｔｈｅ model, Ⅷ", "\u1112\u1161\u11ab"]
    found, given = (SentencePieceTokenizer(each).encode_ids(lines).to_list() for each in (made, model))
    assert found == given


def test_piece_that_begins_with_nul_does_not_end_the_process(english_model):
    content = english_model.replace("▁model".encode(), b"\0" + "▁mode".encode())
    with pytest.raises(InputError, match=r"x.model is not a SentencePiece model"):
        SentencePieceModel.from_bytes(content, "x.model")


@given(data=st.data())
@settings(max_examples=40)
def test_damaged_model_is_refused_with_a_sentence_or_encodes(english_model, data):
    content = bytearray(english_model)
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content))) :]
    for _ in range(data.draw(st.integers(0, 5))):
        place = data.draw(st.integers(0, max(0, min(len(content), 60_000) - 1)))
        content[place : place + 1] = bytes([data.draw(st.integers(0, 255))])
    try:
        tokenizer = SentencePieceTokenizer(SentencePieceModel.from_bytes(bytes(content), "x.model"))
    except InputError as error:
        assert "x.model" in str(error) and "\n" not in str(error)
        return
    assert np.all(tokenizer.encode_ids(["a model"]).values < len(tokenizer))


@pytest.mark.slow
@pytest.mark.parametrize("missing, names", [("[CLS]", r"\[CLS\] or <cls> or <s>"), ("[MASK]", r"\[MASK\] or <mask>")])
def test_model_without_a_special_piece_is_refused(sample_lines, missing, names):
    symbols = ",".join({"[CLS]", "[SEP]", "[MASK]"} - {missing})
    content = sentencepiece_training.train_model(sample_lines[:500], 1000, control_symbols=symbols)
    with pytest.raises(InputError, match=f"x.model has no piece {names}, which ALBERT needs; train one with"):
        SentencePieceTokenizer(SentencePieceModel.from_bytes(content, "x.model"))
