"""Presets of KerasHub's AlbertBackbone, in and out: the same numbers, bit-equal round trips."""

import json

import h5py
import numpy as np
import pytest
from random_models import CONFIGS, assert_same_variables, config_in, random_inputs, read_variables, write_ours

from albert_tf.base.errors import InputError
from albert_tf.interchange.conversion import convert_checkpoint

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
@pytest.mark.parametrize("name", ["two groups of two", "bert"])
def test_our_encoder_computes_the_same_there_and_comes_back_bit_by_bit(keras_hub, tmp_path, name):
    dropouts = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
    folder, ours = write_ours(tmp_path / "ours", CONFIGS[name].replace(**dropouts))
    sentences = to_theirs(folder, tmp_path / "theirs")
    assert "left, because the format has no place for it: masked_lm_head" in sentences
    theirs = keras_hub.models.AlbertBackbone.from_preset(str(tmp_path / "theirs"))
    assert_same_numbers(ours.encoder, theirs)
    theirs.save_to_preset(str(tmp_path / "saved again"))
    for preset in ("theirs", "saved again"):
        to_ours(tmp_path / preset, tmp_path / f"back from {preset}")
        assert_same_variables(tmp_path / f"back from {preset}", ours, but=HEADS)
        config = config_in(tmp_path / f"back from {preset}")
        assert {field: getattr(config, field) for field in dropouts} == dropouts


@pytest.fixture
def theirs(tmp_path):
    """A preset as we write it."""
    folder, _ = write_ours(tmp_path / "first", CONFIGS["albert"])
    to_theirs(folder, tmp_path / "theirs")
    return tmp_path / "theirs"


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
    ],
)
def test_config_of_another_model_is_refused(theirs, tmp_path, change, message):
    edit_config(theirs, change)
    with pytest.raises(InputError, match=message):
        to_ours(theirs, tmp_path / "ours")


def test_misshapen_arrays_and_those_of_no_model_are_named(theirs, tmp_path):
    name = "layers/transformer_encoder/_self_attention_layer/key_dense/vars/0"
    with h5py.File(theirs / "model.weights.h5", "r+") as file:
        file.create_dataset("optimizer/vars/0", data=1.0)
    assert "left, because it is no part of the model: optimizer/vars/0" in to_ours(theirs, tmp_path / "ours")
    with h5py.File(theirs / "model.weights.h5", "r+") as file:
        del file[name]
        file.create_dataset(name, data=np.ones([16, 16]))
    with pytest.raises(InputError, match=rf"{name} has shape \[16, 16\], and .* should have \[16, 2, 8\]"):
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
    for damaged in (b"", content[: len(content) // 2]):
        (theirs / "model.weights.h5").write_bytes(damaged)
        with pytest.raises(InputError, match=r"model\.weights\.h5 is damaged: .*; fetch it again"):
            to_ours(theirs, tmp_path / "ours")
