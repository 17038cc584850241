"""A new family of encoders is a class in one file, as the one here is, and a line in `FAMILIES`."""
# ruff: noqa: RUF012  (tables of a class, which no method changes)

import json
import shutil

import pytest
from huggingface_conversion import edit_config, to_ours, to_theirs
from random_models import assert_same_variables, config_in, write_ours
from tiny_config import tiny_config

from albert_tf.base.errors import InputError
from albert_tf.config import FAMILIES, AlbertConfig, Registered
from albert_tf.interchange.families.family import Family, masked_lm_names
from albert_tf.interchange.huggingface import read_safetensors, write_safetensors
from albert_tf.interchange.portable_model import ReadOptions
from albert_tf.interchange.tokenizers.files import find_tokenizer
from albert_tf.interchange.tokenizers.sentencepiece import ALBERT, HUGGINGFACE


def read_tokenizer(path, folder, options, settings, library):
    tokenizer, notes = ALBERT.reader(path, folder, options, settings, library)
    return tokenizer, ("a Twin's", *notes)


class Twin(Family):
    """BERT with other names."""

    class_prefix = "Twin"
    prefix = "twin."
    decoder = "guess.decoder."
    pretraining_heads = {
        **masked_lm_names("guess.dense", "guess.norm", "guess.bias"),
        "sentence_order_head/dense": "order",
    }
    text_head = choice_head = {"head/transform": "answer.first", "head/dense": "answer.last"}
    piece_head = {"head/dense": "label"}
    span_head = {"head/dense": "span"}
    config_names = {"hidden_size": "width", "num_hidden_layers": "depth"}
    fixed = {"type_vocab_size": 1, "classification_head": "dense_relu"}
    only_values = {"clockwise": (True,)}
    obeyed = ("tower",)
    sentencepiece = ALBERT._replace(classes=("TwinTokenizer",), files=("twin.model",), reader=read_tokenizer)

    def read_weights(self, found, source):
        return super().read_weights({name.replace("tower.", "twin."): weight for name, weight in found.items()}, source)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(FAMILIES, "twin", Registered("A Twin", f"{__name__}.Twin"))


@pytest.fixture
def config(sample_tokenizer):
    sizes = {
        "vocab_size": len(sample_tokenizer),
        "num_hidden_layers": 2,
        "embedding_size": 16,
        "hidden_act": "gelu_erf",
    }
    return tiny_config(**sizes, sharing="none", model_type="twin", **Twin.fixed)


@pytest.mark.parametrize("task", [None, "classify", "tag", "squad"])
def test_models_go_out_under_its_names_and_come_back_from_both_spellings(tmp_path, config, task):
    folder, model = write_ours(tmp_path / "ours", config, task)
    class_name = {None: "ForPreTraining", "classify": "ForSequenceClassification"}
    assert any(
        sentence.startswith(f"transformers knows it as Twin{class_name.get(task, 'For')}")
        for sentence in to_theirs(folder, tmp_path / "theirs", task=task)
    )
    values = json.loads((tmp_path / "theirs" / "config.json").read_text())
    assert (values["model_type"], values["width"], values["depth"]) == ("twin", 16, 2)
    assert not {"hidden_size", "num_hidden_layers", "type_vocab_size"} & values.keys()
    weights = read_safetensors(str(tmp_path / "theirs" / "model.safetensors"))
    assert {name.partition(".")[0] for name in weights} <= {"twin", "guess", "order", "answer", "label", "span"}

    to_ours(tmp_path / "theirs", tmp_path / "back", task=task)
    assert_same_variables(tmp_path / "back", model)
    assert config_in(tmp_path / "back") == config

    shutil.copytree(tmp_path / "theirs", tmp_path / "other")
    other = {name.replace("twin.", "tower."): weight for name, weight in weights.items()}
    assert other.keys() != weights.keys()
    write_safetensors(str(tmp_path / "other" / "model.safetensors"), other)
    edit_config(tmp_path / "other", tower=1)
    sentences = to_ours(tmp_path / "other", tmp_path / "back from other", task=task)
    assert not [sentence for sentence in sentences if "unknown" in sentence]
    assert_same_variables(tmp_path / "back from other", model)


@pytest.mark.parametrize(
    ("file", "config", "tokenizer_config"),
    [
        ("twin.model", {}, {}),
        ("spiece.model", {"model_type": "twin"}, {}),
        ("spiece.model", {}, {"tokenizer_class": "TwinTokenizerFast"}),
    ],
)
def test_its_tokenizer_is_known_by_the_file_the_family_or_the_class(
    tmp_path, english_model_file, english_tokenizer, file, config, tokenizer_config
):
    shutil.copy(english_model_file, tmp_path / file)
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(tokenizer_config))
    found = find_tokenizer(str(tmp_path), ReadOptions(), len(english_tokenizer), HUGGINGFACE)
    assert found.notes[0] == "a Twin's"
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "AlbertTokenizer"}))
    if file == "spiece.model":
        assert "a Twin's" not in find_tokenizer(str(tmp_path), ReadOptions(), len(english_tokenizer), HUGGINGFACE).notes


def test_what_it_refuses_and_what_is_known_of_it(tmp_path, config, monkeypatch):
    folder, _ = write_ours(tmp_path / "ours", config)
    to_theirs(folder, tmp_path / "theirs")
    edit_config(tmp_path / "theirs", clockwise=False)
    with pytest.raises(
        InputError, match="clockwise=False is not supported: models of albert_tf compute only clockwise="
    ):
        to_ours(tmp_path / "theirs", tmp_path / "nothing")
    with pytest.raises(InputError, match="can't express type_vocab_size=2 of a model of model_type=twin: its models"):
        to_theirs(write_ours(tmp_path / "other", config.replace(type_vocab_size=2))[0], tmp_path / "nothing")
    monkeypatch.delitem(FAMILIES, "twin")
    with pytest.raises(InputError, match="model_type=twin can't be converted; albert, bert, roberta"):
        to_ours(tmp_path / "theirs", tmp_path / "nothing")
    with pytest.raises(InputError, match="model_type must be one of albert, roberta"):
        AlbertConfig.from_dict(config.to_dict())
