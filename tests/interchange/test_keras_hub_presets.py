"""Presets of KerasHub's AlbertBackbone, in and out: the same numbers, bit-equal round trips."""

import json
import os

import h5py
import numpy as np
import pytest
from random_models import CONFIGS, assert_same_variables, config_in, random_inputs, read_variables, write_ours
from tiny_config import tiny_config

from albert_tf.base.errors import InputError
from albert_tf.interchange.conversion import convert_checkpoint
from albert_tf.modeling import AlbertEncoder

HEADS = ("masked_lm_head/", "sentence_order_head/")
# KerasHub knows GELU alone.
CONFIGS = {name: config.replace(hidden_act="gelu") for name, config in CONFIGS.items()}


@pytest.fixture
def keras_hub():
    return pytest.importorskip("keras_hub", reason="compares with keras-hub")


def to_ours(source, target):
    return convert_checkpoint("keras_hub", "albert_tf", str(source), str(target))


def to_theirs(source, target):
    return convert_checkpoint("albert_tf", "keras_hub", str(source), str(target))


def assert_same_numbers(ours, theirs):
    inputs = random_inputs()
    names = {"input_ids": "token_ids", "input_mask": "padding_mask", "segment_ids": "segment_ids"}
    expected = theirs({names[name]: value for name, value in inputs.items()})
    found = ours(inputs)
    for name in ("sequence_output", "pooled_output"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
def test_our_encoder_computes_the_same_there_and_comes_back_bit_by_bit(keras_hub, tmp_path, name):
    folder, ours = write_ours(tmp_path / "ours", CONFIGS[name])
    sentences = to_theirs(folder, tmp_path / "theirs")
    assert "left, because the format has no place for it: masked_lm_head" in sentences
    theirs = keras_hub.models.AlbertBackbone.from_preset(str(tmp_path / "theirs"))
    assert_same_numbers(ours.encoder, theirs)
    theirs.save_to_preset(str(tmp_path / "saved again"))
    for preset in ("theirs", "saved again"):
        to_ours(tmp_path / preset, tmp_path / f"back from {preset}")
        assert_same_variables(tmp_path / f"back from {preset}", ours, but=HEADS)


@pytest.mark.slow
def test_their_backbone_computes_the_same_here(keras_hub, tmp_path):
    theirs = keras_hub.models.AlbertBackbone(
        vocabulary_size=30,
        num_layers=4,
        num_heads=2,
        embedding_dim=8,
        hidden_dim=16,
        intermediate_dim=24,
        num_groups=2,
        num_inner_repetitions=2,
        dropout=0.1,
        max_sequence_length=12,
        num_segments=3,
    )
    random = np.random.default_rng(0)
    for weight in theirs.weights:
        weight.assign(random.normal(1.0 if "gamma" in weight.path else 0.0, 0.3, weight.shape))
    theirs.save_to_preset(str(tmp_path / "theirs"))
    to_ours(tmp_path / "theirs", tmp_path / "ours")
    config = config_in(tmp_path / "ours")
    assert (config.hidden_dropout_prob, config.type_vocab_size, config.inner_group_num) == (0.1, 3, 2)
    ours = AlbertEncoder.from_pretrained(tmp_path / "ours", verbose=False)
    # Keras computes without dropout unless it is told to train.
    assert_same_numbers(ours, theirs)


@pytest.fixture
def theirs(tmp_path):
    """A preset as we write it."""
    folder, _ = write_ours(tmp_path / "first", CONFIGS["albert"])
    to_theirs(folder, tmp_path / "theirs")
    return tmp_path / "theirs"


def test_encoder_comes_back_without_their_library(theirs, tmp_path):
    to_ours(theirs, tmp_path / "back")
    assert_same_variables(tmp_path / "back", read_variables(tmp_path / "first"), but=HEADS)


def test_tokenizer_travels_beside_the_preset(tmp_path, sample_tokenizer):
    folder, _ = write_ours(tmp_path / "ours", tiny_config(len(sample_tokenizer.vocabulary)), None, sample_tokenizer)
    to_theirs(folder, tmp_path / "theirs")
    assert "tokenizer.json" not in os.listdir(tmp_path / "theirs"), "which KerasHub would take for its own"
    to_ours(tmp_path / "theirs", tmp_path / "back")
    for name in ("vocab.txt", "tokenizer.json"):
        assert (tmp_path / "back" / name).read_bytes() == (tmp_path / "ours" / name).read_bytes()


def test_names_of_the_first_versions_are_known(theirs, tmp_path):
    with h5py.File(theirs / "model.weights.h5", "r+") as file:
        file.move("layers", "_layer_checkpoint_dependencies")
    to_ours(theirs, tmp_path / "back")
    assert_same_variables(tmp_path / "back", read_variables(tmp_path / "first"), but=HEADS)


def edit_config(folder, change):
    values = json.loads((folder / "config.json").read_text())
    change(values)
    (folder / "config.json").write_text(json.dumps(values))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda values: values.update(class_name="BertBackbone"), "BertBackbone can't be converted; an AlbertBackbone"),
        (lambda values: values.update(config=[]), "AlbertBackbone can't be converted"),
        (lambda values: values["config"].pop("num_heads"), "has no num_heads"),
        (lambda values: values["config"].update(num_heads="2"), "num_attention_heads must be a whole number"),
        (lambda values: values["config"].update(num_layers=3, num_groups=2), "num_layers must be a multiple"),
        (lambda values: values["config"].update(num_layers=2, num_groups=2), r"encoder_1/\S+ is missing"),
        (lambda values: values["config"].update(hidden_dim=18), r"has shape \[8, 16\], and .* should have \[8, 18\]"),
        (lambda values: values["config"].update(num_layers=10**9), "1000000000 layers"),
    ],
)
def test_config_of_another_model_is_refused(theirs, tmp_path, change, message):
    edit_config(theirs, change)
    with pytest.raises(InputError, match=message):
        to_ours(theirs, tmp_path / "ours")


def test_missing_misshapen_and_surplus_arrays_are_named(theirs, tmp_path):
    name = "layers/transformer_encoder/_self_attention_layer/key_dense/vars/0"

    def changed(change):
        with h5py.File(theirs / "model.weights.h5", "r+") as file:
            change(file)

    changed(lambda file: file.create_dataset("optimizer/vars/0", data=1.0))
    assert "left, because it is no part of the model: optimizer/vars/0" in to_ours(theirs, tmp_path / "ours")
    surplus = name.replace("transformer_encoder", "transformer_encoder_1")
    changed(lambda file: file.create_dataset(surplus, data=np.ones([16, 2, 8])))
    with pytest.raises(InputError, match=f"{surplus} is not part of the encoder"):
        to_ours(theirs, tmp_path / "other")
    changed(lambda file: [file.pop(surplus), file.pop(name), file.create_dataset(name, data=np.ones([16, 16]))])
    with pytest.raises(InputError, match=rf"{name} has shape \[16, 16\], and .* should have \[16, 2, 8\]"):
        to_ours(theirs, tmp_path / "other")
    changed(lambda file: file.pop(name))
    with pytest.raises(InputError, match=f"the variable {name} is missing"):
        to_ours(theirs, tmp_path / "other")


def test_arrays_in_other_files_are_not_followed(theirs, tmp_path):
    name = "layers/dense/vars/1"
    with h5py.File(tmp_path / "elsewhere.h5", "w") as file:
        file["secret"] = np.ones(16, np.float32)
    (tmp_path / "secret").write_bytes(bytes(64))
    with h5py.File(theirs / "model.weights.h5", "r+") as file:
        del file[name]
        file[name] = h5py.ExternalLink(str(tmp_path / "elsewhere.h5"), "secret")
    with pytest.raises(InputError, match=f"the variable {name} is missing"):
        to_ours(theirs, tmp_path / "ours")
    with h5py.File(theirs / "model.weights.h5", "r+") as file:
        del file[name]
        file.create_dataset(name, [16], "f4", external=[(str(tmp_path / "secret"), 0, 64)])
    with pytest.raises(InputError, match=f"{name} is in another file"):
        to_ours(theirs, tmp_path / "ours")
    with h5py.File(theirs / "model.weights.h5", "r+") as file:
        del file[name]
        layout = h5py.VirtualLayout((16,), "f4")
        layout[:] = h5py.VirtualSource(str(tmp_path / "elsewhere.h5"), "secret", (16,))
        file.create_virtual_dataset(name, layout)
    with pytest.raises(InputError, match=f"{name} is in another file"):
        to_ours(theirs, tmp_path / "ours")


def test_array_that_is_larger_than_its_file_is_refused(theirs, tmp_path):
    edit_config(theirs, lambda values: values["config"].update(vocabulary_size=2**30))
    with h5py.File(theirs / "model.weights.h5", "r+") as file:
        del file["layers/reversible_embedding/vars/0"]
        file.create_dataset("layers/reversible_embedding/vars/0", (2**30, 8), "f4", chunks=(1024, 8))
    with pytest.raises(InputError, match="vars/0 has more values than the file"):
        to_ours(theirs, tmp_path / "ours")


def test_damaged_weights_cost_a_sentence(theirs, tmp_path):
    content = (theirs / "model.weights.h5").read_bytes()
    for damaged in (b"", b"not HDF5", content[:100], content[: len(content) // 2]):
        (theirs / "model.weights.h5").write_bytes(damaged)
        with pytest.raises(InputError, match=r"model\.weights\.h5 is damaged: .*; fetch it again"):
            to_ours(theirs, tmp_path / "ours")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_act": "relu"}, "can't express hidden_act=relu"),
        ({"layer_norm_eps": 1e-5}, "can't express layer_norm_eps=1e-05"),
        ({"num_hidden_layers": 3, "num_hidden_groups": 2}, "can't express num_hidden_layers=3 in 2 groups"),
        ({"num_hidden_layers": 2, "sharing": "attention"}, "`to=keras_hub` can't express sharing=attention"),
    ],
)
def test_what_the_backbone_does_not_compute_is_refused(tmp_path, changes, message):
    folder, _ = write_ours(tmp_path / "ours", tiny_config(**changes))
    with pytest.raises(InputError, match=message):
        to_theirs(folder, tmp_path / "theirs")


def test_fields_that_they_do_not_know_come_back(tmp_path):
    config = tiny_config(
        position_initializer="sinusoidal",
        classifier_pooling="mean",
        classifier_dropout_prob=0.3,
        initializer_range=0.05,
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.2,
    )
    folder, _ = write_ours(tmp_path / "ours", config)
    sentences = to_theirs(folder, tmp_path / "theirs")
    assert "KerasHub has one dropout, 0.1: attention_probs_dropout_prob=0.2 is known to albert_tf alone" in sentences
    to_ours(tmp_path / "theirs", tmp_path / "back")
    assert config_in(tmp_path / "back") == config
