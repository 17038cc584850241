"""Labels and tokenizers go to Hugging Face's transformers and come back."""

import json
import os

import pytest
from huggingface_conversion import TINY_ALBERT, edit_config, randomized, to_ours, to_theirs
from random_models import (
    config_in,
    write_ours,
)
from tiny_config import tiny_config

import albert_tf
from albert_tf.errors import InputError
from albert_tf.finetuning import Classification, Entities
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary


@pytest.mark.slow
def test_labels_of_a_fine_tuned_folder_go_there_and_come_back(tmp_path, sample_tokenizer):
    config = tiny_config(len(sample_tokenizer.vocabulary))
    task = Classification(config, ("부정", "중립", "긍정"))
    settings = {"objective": "Classification", "max_seq_length": 32, "command": "run_classifier", **task.settings()}
    folder, _ = write_ours(tmp_path / "ours", config, "classify", sample_tokenizer, settings)
    to_theirs(folder, tmp_path / "theirs")
    written = json.loads((tmp_path / "theirs" / "config.json").read_text())
    assert written["id2label"] == {"0": "부정", "1": "중립", "2": "긍정"}
    assert written["label2id"] == {"부정": 0, "중립": 1, "긍정": 2}
    sentences = to_ours(tmp_path / "theirs", tmp_path / "back")
    assert "albert_tf.load answers from it; run_settings.json says how" in sentences
    texts = ["정말 재미있다", "시간이 아깝다"]
    expected = albert_tf.load(folder).predict(texts)
    assert albert_tf.load(tmp_path / "back").predict(texts) == expected
    # Without what we wrote there for ourselves, as in a folder of theirs.
    edit_config(tmp_path / "theirs", albert_tf_settings=None)
    to_ours(tmp_path / "theirs", tmp_path / "of theirs")
    assert albert_tf.load(tmp_path / "of theirs").predict(texts) == expected


@pytest.mark.slow
def test_tags_are_read_where_they_are_in_the_order_of_ours(tmp_path, sample_tokenizer):
    config = tiny_config(len(sample_tokenizer.vocabulary))
    task = Entities(config, ("PS", "LC"))
    settings = {"objective": "Entities", "max_seq_length": 32, **task.settings()}
    folder, _ = write_ours(tmp_path / "ours", config, "tag", sample_tokenizer, settings)
    to_theirs(folder, tmp_path / "theirs")
    edit_config(tmp_path / "theirs", albert_tf_settings=None)
    assert json.loads((tmp_path / "theirs" / "config.json").read_text())["id2label"]["1"] == "B-PS"
    to_ours(tmp_path / "theirs", tmp_path / "back")
    text = ["이순신은 서울에서 태어났다"]
    assert albert_tf.load(tmp_path / "back").predict(text) == albert_tf.load(folder).predict(text)
    labels = {"0": "B-PS", "1": "I-PS", "2": "B-LC", "3": "I-LC", "4": "O"}
    edit_config(tmp_path / "theirs", id2label=labels)
    sentences = to_ours(tmp_path / "theirs", tmp_path / "other order")
    assert any("not for albert_tf.load: its labels are not O, and" in sentence for sentence in sentences)
    assert not (tmp_path / "other order" / "run_settings.json").exists()


@pytest.mark.slow
def test_questions_are_answered_without_a_pooler(transformers, tmp_path, sample_tokenizer):
    config = transformers.AlbertConfig(**{**TINY_ALBERT, "vocab_size": len(sample_tokenizer.vocabulary)})
    randomized(transformers.AlbertForQuestionAnswering(config)).save_pretrained(tmp_path / "theirs")
    sample_tokenizer.vocabulary.to_file(tmp_path / "theirs" / "vocab.txt")
    sentences = to_ours(tmp_path / "theirs", tmp_path / "ours", strip_accents=False)
    at_random = "not in it, and so initialized at random where it is needed: encoder/pooler"
    assert any(sentence.startswith(at_random) for sentence in sentences)
    [answer] = albert_tf.load(tmp_path / "ours").predict([("누가 왔나?", "어제 친구가 왔다.")])
    assert answer["text"] in "어제 친구가 왔다."


TEXTS = ["나는 어제 밥을 먹었다!", "ＡＢＣ Café ㅋㅋㅋ 2020년", "정말 재미있는 영화였다...", "한국어 漢字 mixed", ""]


@pytest.mark.slow
def test_their_tokenizer_gives_the_same_ids_for_ours(transformers, tmp_path, sample_tokenizer, sample_lines):
    folder, _ = write_ours(tmp_path / "ours", tiny_config(len(sample_tokenizer.vocabulary)), None, sample_tokenizer)
    to_theirs(folder, tmp_path / "theirs")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    texts = [*TEXTS, *sample_lines[:300]]
    for text, encoding in zip(texts, sample_tokenizer.encode_batch(texts), strict=True):
        assert theirs(text)["input_ids"] == encoding.ids, text
    to_ours(tmp_path / "theirs", tmp_path / "back")
    assert KoreanWordPieceTokenizer.load(tmp_path / "back").to_dict() == sample_tokenizer.to_dict()


@pytest.mark.slow
@pytest.mark.parametrize("files", ["all", "vocabulary", "backend"])
def test_korean_albert_with_berts_tokenizer_converts_with_it(
    transformers, tmp_path, sample_lines, files, sample_tokenizer
):
    """Published with BertTokenizer(do_lower_case=True, strip_accents=False), and a table larger than the vocabulary."""
    size = len(sample_tokenizer.vocabulary)
    config = transformers.AlbertConfig(**{**TINY_ALBERT, "vocab_size": size + 8})
    randomized(transformers.AlbertForMaskedLM(config)).save_pretrained(tmp_path / "theirs")
    sample_tokenizer.vocabulary.to_file(tmp_path / "vocab.txt")
    theirs = transformers.BertTokenizer(str(tmp_path / "vocab.txt"), do_lower_case=True, strip_accents=False)
    theirs.save_pretrained(tmp_path / "theirs")
    if files != "backend":
        os.replace(tmp_path / "vocab.txt", tmp_path / "theirs" / "vocab.txt")
    if files == "vocabulary":
        (tmp_path / "theirs" / "tokenizer.json").unlink()
        settings = {"do_lower_case": True, "strip_accents": False, "tokenizer_class": "BertTokenizer"}
        (tmp_path / "theirs" / "tokenizer_config.json").write_text(json.dumps(settings))
    sentences = to_ours(tmp_path / "theirs", tmp_path / "ours")
    assert any("filled up with 8 [unused] pieces" in sentence for sentence in sentences)
    ours = KoreanWordPieceTokenizer.load(tmp_path / "ours")
    assert len(ours.vocabulary) == size + 8 == config_in(tmp_path / "ours").vocab_size
    texts = sample_lines[:300]
    for text, encoding in zip(texts, ours.encode_batch(texts), strict=True):
        assert theirs(text)["input_ids"] == encoding.ids, text


def test_tokenizer_that_can_not_be_read_is_no_obstacle(theirs, tmp_path):
    (theirs / "spiece.model").write_bytes(b"sentencepiece")
    (theirs / "tokenizer.json").write_text(json.dumps({"model": {"type": "Unigram", "vocab": [["a", 0.0]]}}))
    sentences = to_ours(theirs, tmp_path / "ours")
    assert any(sentence.startswith("no tokenizer: ") for sentence in sentences)
    assert (tmp_path / "ours" / "spiece.model").read_bytes() == b"sentencepiece"
    assert not (tmp_path / "ours" / "vocab.txt").exists()
    pieces = [*SPECIAL_TOKENS, *(f"##{number}" for number in range(25))]
    Vocabulary(pieces).to_file(tmp_path / "vocab.txt")
    to_ours(theirs, tmp_path / "with one", vocab_file=str(tmp_path / "vocab.txt"), do_lower_case=False)
    tokenizer = KoreanWordPieceTokenizer.load(tmp_path / "with one")
    assert tokenizer.to_dict()["lower_case"] is tokenizer.to_dict()["strip_accents"] is False


def test_vocabulary_larger_than_the_model_is_refused(theirs, tmp_path):
    Vocabulary([*SPECIAL_TOKENS, *(f"##{number}" for number in range(26))]).to_file(tmp_path / "vocab.txt")
    with pytest.raises(InputError, match="has 31 pieces, and the model 30; name the vocabulary"):
        to_ours(theirs, tmp_path / "ours", vocab_file=str(tmp_path / "vocab.txt"))
    (tmp_path / "vocab.txt").rename(theirs / "vocab.txt")
    with pytest.raises(InputError, match=r"theirs/vocab\.txt has 31 pieces, and the model 30; name the vocabulary"):
        to_ours(theirs, tmp_path / "ours")
    assert not (tmp_path / "ours").exists()
