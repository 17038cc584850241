"""Labels and tokenizers go to Hugging Face's transformers and come back."""

import json
import os

import numpy as np
import pytest
from huggingface_conversion import TINY_ALBERT, TINY_BERT, edit_config, randomized, to_ours, to_theirs
from random_models import config_in, read_variables, write_ours
from tiny_config import tiny_config

import albert_tf
from albert_tf.base.errors import InputError
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
def test_tags_are_read_in_any_order(tmp_path, sample_tokenizer):
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
    before = read_variables(tmp_path / "back")
    edit_config(tmp_path / "theirs", id2label=dict(enumerate(["LC-B", "LC-I", "PS-B", "PS-I", "O"])))  # Naver's names
    sentences = to_ours(tmp_path / "theirs", tmp_path / "O last")
    order = "the outputs of the head were put into the order of albert_tf: O, B-LC, I-LC, B-PS, I-PS"
    assert order in sentences
    found = read_variables(tmp_path / "O last")
    for name, value in before.items():
        moved = value[..., [4, 0, 1, 2, 3]] if name.startswith("head/dense/") else value
        np.testing.assert_array_equal(found[name], moved, err_msg=name)
    assert albert_tf.load(tmp_path / "O last").predict(text)
    for labels in (["B-PS", "B-LC", "I-PS", "B-DT", "O"], ["PS", "LC", "DT", "O", "OG"]):
        edit_config(tmp_path / "theirs", id2label=dict(enumerate(labels)))
        sentences = to_ours(tmp_path / "theirs", tmp_path / labels[0])
        assert any("not for albert_tf.load: its labels are not O, and" in sentence for sentence in sentences)
        assert not (tmp_path / labels[0] / "run_settings.json").exists()


@pytest.mark.slow
def test_any_number_of_labels_as_transformers_tells_them(transformers, tmp_path, sample_tokenizer):
    """A BERT whose problem_type is multi_label_classification, such as those of UnSmile, and back."""
    import torch

    labels = ["욕설", "차별", "clean"]
    config = transformers.BertConfig(
        **{**TINY_BERT, "vocab_size": len(sample_tokenizer.vocabulary), "max_position_embeddings": 200},
        problem_type="multi_label_classification",
        id2label=dict(enumerate(labels)),
    )
    theirs = randomized(transformers.BertForSequenceClassification(config))
    theirs.save_pretrained(tmp_path / "theirs")
    sample_tokenizer.vocabulary.to_file(tmp_path / "theirs" / "vocab.txt")
    (tmp_path / "theirs" / "tokenizer_config.json").write_text('{"do_lower_case": true, "strip_accents": false}')
    texts = ["정말 재미있다", "시간이 아깝다 친구가 왔다", "정말 재미있다 " * 50]
    tokenizer = transformers.BertTokenizer.from_pretrained(tmp_path / "theirs")
    for text, found in zip(texts, albert_tf.load(tmp_path / "theirs").predict(texts), strict=True):
        inputs = tokenizer(text, return_tensors="pt", truncation=True, max_length=200)
        expected = torch.sigmoid(theirs(**inputs).logits)[0].tolist()
        assert list(found["probabilities"]) == labels
        np.testing.assert_allclose(list(found["probabilities"].values()), expected, atol=1e-5)
        assert found["labels"] == [label for label, share in zip(labels, expected) if share >= 0.5]
    to_ours(tmp_path / "theirs", tmp_path / "ours")
    to_theirs(tmp_path / "ours", tmp_path / "back")
    assert json.loads((tmp_path / "back" / "config.json").read_text())["problem_type"] == config.problem_type
    to_ours(tmp_path / "back", tmp_path / "once more")
    assert albert_tf.load(tmp_path / "once more").predict(texts) == albert_tf.load(tmp_path / "ours").predict(texts)
    # Thresholds have no place there.
    (tmp_path / "ours" / "thresholds.json").write_text(json.dumps(dict.fromkeys(labels, 0.3)))
    with pytest.raises(InputError, match="thresholds would be lost"):
        to_theirs(tmp_path / "ours", tmp_path / "nothing")


@pytest.mark.slow
def test_labels_are_those_of_the_config_or_it_is_said(transformers, tmp_path):
    config = transformers.ElectraConfig(**{**TINY_BERT, "embedding_size": 8}, num_labels=3)
    transformers.ElectraForSequenceClassification(config).save_pretrained(tmp_path / "theirs")
    Vocabulary([*SPECIAL_TOKENS, *(f"##{number}" for number in range(25))]).to_file(tmp_path / "theirs" / "vocab.txt")
    values, numbered = json.loads((tmp_path / "theirs" / "config.json").read_text()), ["LABEL_0", "LABEL_1", "LABEL_2"]
    for number, (changes, labels, told) in enumerate(
        [
            ({"id2label": {"2": "c", "0": "a", "1": "b"}}, ["a", "b", "c"], None),
            ({"id2label": {"0": 0, "1": 1, "2": 2}}, ["0", "1", "2"], None),
            ({"id2label": None}, numbered, None),
            ({"id2label": {"0": "a", "1": "b"}}, numbered, "id2label does not name the 3 outputs"),
            ({"id2label": {"1": "a", "2": "b", "3": "c"}}, numbered, "by the ids 0 to 2"),
            ({"problem_type": "regression"}, None, "problem_type=regression, and the head gives 3 numbers for a text"),
            ({"architectures": ["ElectraForHateSpeech"]}, None, "the head is left out, and so not for albert_tf.load"),
        ]
    ):
        (tmp_path / "theirs" / "config.json").write_text(json.dumps(values))
        edit_config(tmp_path / "theirs", **changes)
        ours = tmp_path / str(number)
        sentences = to_ours(tmp_path / "theirs", ours)
        assert told is None or any(told in sentence for sentence in sentences), sentences
        assert told is not None or not any("id2label" in sentence for sentence in sentences)
        settings = ours / "run_settings.json"
        assert (json.loads(settings.read_text())["labels"] if settings.exists() else None) == labels
        if labels is None:  # what is said of the head is so
            assert not any(name.startswith("head/") for name in read_variables(ours))


@pytest.mark.slow
def test_what_tells_entailment_reads_pairs(transformers, tmp_path, sample_tokenizer):
    import torch

    labels = ("not_entailment", "entailment")
    sizes = {**TINY_BERT, "vocab_size": len(sample_tokenizer.vocabulary)}
    config = transformers.BertConfig(**sizes, id2label=dict(enumerate(labels)))
    theirs = randomized(transformers.BertForSequenceClassification(config))
    theirs.save_pretrained(tmp_path / "theirs")
    sample_tokenizer.vocabulary.to_file(tmp_path / "theirs" / "vocab.txt")
    (tmp_path / "theirs" / "tokenizer_config.json").write_text('{"do_lower_case": true, "strip_accents": false}')
    tokenizer = transformers.BertTokenizer.from_pretrained(tmp_path / "theirs")
    model = albert_tf.load(tmp_path / "theirs")
    (found,) = model.predict([("비가 온다", "날씨가 맑다")])
    expected = torch.softmax(theirs(**tokenizer("비가 온다", "날씨가 맑다", return_tensors="pt")).logits, -1)[0]
    np.testing.assert_allclose([found["probabilities"][label] for label in labels], expected.tolist(), atol=1e-5)
    with pytest.raises(InputError, match="input 0 must be a tuple of two strings"):
        model.predict(["비가 온다"])


@pytest.mark.slow
@pytest.mark.parametrize("files", ["vocabulary", "backend"])
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
    if files == "vocabulary":
        os.replace(tmp_path / "vocab.txt", tmp_path / "theirs" / "vocab.txt")
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
