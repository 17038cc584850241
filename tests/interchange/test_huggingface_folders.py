"""Folders of Hugging Face's transformers as they come: other configs, weights, names and shards; what is refused."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf
from huggingface_conversion import edit_config, to_ours, to_theirs
from random_models import CONFIGS, assert_same_variables, read_variables, write_ours

from albert_tf.base.errors import InputError


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"model_type": "t5"},
            "model_type=t5 can't be converted; albert, bert, roberta, electra, distilbert, gpt2, xlm-rob",
        ),
        ({"model_type": ["albert"]}, "model_type="),
        ({"model_type": None}, 'lacks model_type; write it there, as "model_type": "bert"'),
        ({"hidden_act": "silu"}, "hidden_act=silu can't be converted"),
        ({"is_decoder": True}, "is_decoder=True is not"),
        ({"hidden_size": 18}, r"has shape \[16, 8\], and by the config beside it it should have \[18, 8\]"),
        ({"num_hidden_groups": 2, "num_hidden_layers": 2}, r"albert_layer_groups\.1\.\S+ is missing"),
        ({"hidden_dropout_prob": 10**400}, "hidden_dropout_prob must be a number that fits"),
    ],
)
def test_config_of_another_model_is_refused(theirs, tmp_path, changes, message):
    edit_config(theirs, **changes)
    with pytest.raises(InputError, match=message):
        to_ours(theirs, tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


def test_pickle_is_refused_unread(theirs, tmp_path):
    (theirs / "model.safetensors").rename(theirs / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"is a pickle, .* never read; .* safe_serialization=True"):
        to_ours(theirs, tmp_path / "ours")
    (theirs / "pytorch_model.bin").unlink()
    with pytest.raises(InputError, match=r"there is no model\.safetensors in"):
        to_ours(theirs, tmp_path / "ours")


def rewrite(folder, change):
    """Writes the weights of a folder again, changed, with the format's own library."""
    numpy = pytest.importorskip("safetensors.numpy", reason="writes with the format's own library")
    path = str(folder / "model.safetensors")
    weights = {name: array.copy() for name, array in numpy.load_file(path).items()}
    change(weights)
    numpy.save_file(weights, path)
    return weights


def test_missing_misshapen_and_surplus_weights_are_named(theirs, tmp_path):
    name = "albert.encoder.albert_layer_groups.0.albert_layers.0.ffn.weight"
    rewrite(theirs, lambda weights: weights.update({"lm_head.other": np.float32([1])}))
    sentences = to_ours(theirs, tmp_path / "ours")
    assert "left, because it is no part of the model: lm_head.other" in sentences
    surplus = name.replace("groups.0", "groups.1")
    rewrite(theirs, lambda weights: weights.update({surplus: weights[name]}))
    with pytest.raises(InputError, match=f"{surplus} is not part of the encoder"):
        to_ours(theirs, tmp_path / "other")
    rewrite(theirs, lambda weights: [weights.pop(surplus), weights.update({name: np.ones([3, 16], np.float32)})])
    with pytest.raises(InputError, match=rf"{name} has shape \[3, 16\], and .* it should have \[16, 16\]"):
        to_ours(theirs, tmp_path / "other")
    rewrite(theirs, lambda weights: weights.pop(name))
    with pytest.raises(InputError, match=f"the variable {name} is missing"):
        to_ours(theirs, tmp_path / "other")


def test_projection_that_changes_nothing_is_left_out_and_any_other_refused(tmp_path):
    folder, ours = write_ours(tmp_path / "ours", CONFIGS["as wide as its layers"])
    to_theirs(folder, tmp_path / "theirs")
    name = "albert.encoder.embedding_hidden_mapping_in.weight"
    weights = rewrite(tmp_path / "theirs", lambda weights: None)
    np.testing.assert_array_equal(weights[name], np.eye(16))
    to_ours(tmp_path / "theirs", tmp_path / "back")
    assert_same_variables(tmp_path / "back", ours)
    rewrite(tmp_path / "theirs", lambda weights: weights.update({name: weights[name] * np.float32(1.5)}))
    with pytest.raises(InputError, match="embedding_hidden_mapping_in changes embeddings that have the hidden size"):
        to_ours(tmp_path / "theirs", tmp_path / "other")


def test_untied_masked_language_model_is_refused(theirs, tmp_path):
    table = "albert.embeddings.word_embeddings.weight"
    rewrite(theirs, lambda weights: weights.update({"predictions.decoder.weight": weights[table].copy()}))
    to_ours(theirs, tmp_path / "ours")
    rewrite(theirs, lambda weights: weights.update({"predictions.decoder.weight": weights[table] + 1}))
    with pytest.raises(InputError, match="differs from the embedding table"):
        to_ours(theirs, tmp_path / "other")


def test_names_of_older_versions_are_known(theirs, tmp_path):
    def age(weights):
        for name in list(weights):
            old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
            if not name.startswith(("predictions", "sop")):
                weights[old.removeprefix("albert.")] = weights.pop(name)
        weights["embeddings.position_ids"] = np.arange(64)[None]

    to_ours(theirs, tmp_path / "ours")
    rewrite(theirs, age)
    sentences = to_ours(theirs, tmp_path / "old")
    assert "left, because it follows from the config: albert.embeddings.position_ids" in sentences
    assert_same_variables(tmp_path / "old", read_variables(tmp_path / "ours"))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_other_precisions_become_float32(theirs, tmp_path, dtype):
    kind = tf.as_dtype(dtype).as_numpy_dtype
    before = rewrite(theirs, lambda weights: weights.update({k: v.astype(kind) for k, v in weights.items()}))
    to_ours(theirs, tmp_path / "ours")
    found = read_variables(tmp_path / "ours")["encoder/pooler/bias"]
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, before["albert.pooler.bias"].astype(np.float32))


def split(folder):
    """Makes two shards and an index of the one file of a folder."""
    numpy = pytest.importorskip("safetensors.numpy", reason="writes with the format's own library")
    weights = numpy.load_file(str(folder / "model.safetensors"))
    names = sorted(weights)
    shards = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for file, part in shards.items():
        numpy.save_file({name: weights[name] for name in part}, str(folder / file))
    (folder / "model.safetensors").unlink()
    places = {name: file for file, part in shards.items() for name in part}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return places


def test_shards_are_read_as_one_file(theirs, tmp_path):
    to_ours(theirs, tmp_path / "one")
    split(theirs)
    to_ours(theirs, tmp_path / "two")
    assert_same_variables(tmp_path / "two", read_variables(tmp_path / "one"))


def test_part_that_is_missing_is_named(theirs, tmp_path):
    split(theirs)
    (theirs / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(InputError, match=r"names model-00002-of-00002\.safetensors, which is not beside it; fetch all"):
        to_ours(theirs, tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("../theirs/model-00001-of-00002.safetensors", "which is not a file in"),
        ("..", "which is not a file in"),
        ("model.safetensors.index.json", "which is not a safetensors file"),
        ("pytorch_model.bin", "which is not a safetensors file"),
        ("gone.safetensors", r"index\.json names gone\.safetensors, which is not beside it; fetch all parts"),
        (7, "which is not a file in"),
    ],
)
def test_index_leads_to_no_file_elsewhere(theirs, tmp_path, file, message):
    places = split(theirs)
    index = theirs / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {**places, next(iter(places)): file}}))
    with pytest.raises(InputError, match=message):
        to_ours(theirs, tmp_path / "ours")


def test_index_that_names_the_wrong_shard_is_refused(theirs, tmp_path):
    places = split(theirs)
    files = sorted(set(places.values()))
    name = next(name for name, file in places.items() if file == files[0])
    index = theirs / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {**places, name: files[1]}}))
    with pytest.raises(InputError, match=f"says that '{name}' is in {files[1]}, which does not hold it"):
        to_ours(theirs, tmp_path / "ours")
    index.write_text(json.dumps({"weight_map": []}))
    with pytest.raises(InputError, match="has no weight_map"):
        to_ours(theirs, tmp_path / "ours")


CARD = "---\nlicense: cc-by-sa-4.0\n---\n# A model\n"


def test_card_goes_where_the_weights_go_and_back(theirs, tmp_path):
    (theirs / "README.md").write_text(CARD)
    to_ours(theirs, tmp_path / "ours")
    assert (tmp_path / "ours" / "README.md").read_text() == CARD
    to_theirs(tmp_path / "ours", tmp_path / "again")
    assert (tmp_path / "again" / "README.md").read_text() == CARD


def test_without_a_card_there_is_none(theirs, tmp_path):
    (theirs / "README.md").unlink(missing_ok=True)
    to_ours(theirs, tmp_path / "ours")
    assert not (tmp_path / "ours" / "README.md").exists()


def test_base_model_that_is_no_name_of_the_hub_is_not_told(theirs, tmp_path):
    (theirs / "README.md").write_text(CARD)
    for number, name in enumerate(["./models/bert", "/data/bert", "bert", "../bert/base", 7]):
        edit_config(theirs, _name_or_path=name)
        to_ours(theirs, tmp_path / str(number))
        assert (tmp_path / str(number) / "README.md").read_text() == CARD


def test_base_model_is_known_by_the_config_or_the_place_in_the_cache(theirs, tmp_path, monkeypatch):
    (theirs / "README.md").write_text(CARD)
    edit_config(theirs, _name_or_path="klue/bert-base")
    to_ours(theirs, tmp_path / "by_config")
    assert "\nbase_model: klue/bert-base\n---\n" in (tmp_path / "by_config" / "README.md").read_text()
    cached = tmp_path / "hub" / "models--klue--roberta-base" / "snapshots" / "02f94ba5e3fcb7e2a58a390b8639b0fac974a8da"
    cached.parent.mkdir(parents=True)
    theirs.rename(cached)
    to_ours(cached, tmp_path / "by_place")
    assert "\nbase_model: klue/roberta-base\n---\n" in (tmp_path / "by_place" / "README.md").read_text()
    # A folder of that name is no model of the hub.
    monkeypatch.chdir(tmp_path)
    (tmp_path / "klue" / "bert-base").mkdir(parents=True)
    shutil.copytree(cached, tmp_path / "copy")
    to_ours(tmp_path / "copy", tmp_path / "by_folder")
    assert (tmp_path / "by_folder" / "README.md").read_text() == CARD
