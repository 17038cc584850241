"""Checkpoints as google-research/electra writes them, with its names spelled out here: two networks in each."""

import json

import numpy as np
import pytest
import tensorflow as tf
from huggingface_conversion import relative_difference, torch_inputs
from random_models import config_in, random_inputs, read_variables
from test_google_tf1 import bert_layers, read_tf1, with_slots, write_tf1

from albert_tf.base.errors import InputError
from albert_tf.interchange.conversion import convert_checkpoint
from albert_tf.interchange.portable_model import ReadOptions
from albert_tf.modeling import AlbertForPreTraining

V, E, P, LAYERS = 30, 8, 12, 2
CONFIG = {
    "model_type": "electra",
    "vocab_size": V,
    "embedding_size": E,
    "hidden_size": 16,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": P,
    "hidden_act": "gelu",
    "type_vocab_size": 2,
}
GENERATOR_SIZES = {"hidden_size": 4, "intermediate_size": 6}
GENERATOR_CONFIG = {**CONFIG, **GENERATOR_SIZES, "architectures": ["ElectraForMaskedLM"]}
# Of KoELECTRA-small the networks are equally large.
EQUAL_CONFIG = {**CONFIG, "architectures": ["ElectraForMaskedLM"]}
EMBEDDINGS = {
    "word_embeddings": [V, E],
    "token_type_embeddings": [2, E],
    "position_embeddings": [P, E],
    "LayerNorm/gamma": [E],
    "LayerNorm/beta": [E],
}


def network(prefix, config):
    size, ffn = config["hidden_size"], config["intermediate_size"]
    names = {f"{prefix}/embeddings_project/kernel": [E, size], f"{prefix}/embeddings_project/bias": [size]}
    return names | bert_layers(prefix, LAYERS, size, ffn)


def variables(generator=GENERATOR_CONFIG):
    """Returns the names and shapes of a checkpoint of pre-training."""
    size, width = CONFIG["hidden_size"], generator["hidden_size"]
    return {
        **{f"electra/embeddings/{name}": shape for name, shape in EMBEDDINGS.items()},
        **network("electra", CONFIG),
        "discriminator_predictions/dense/kernel": [size, size],
        "discriminator_predictions/dense/bias": [size],
        "discriminator_predictions/dense_1/kernel": [size, 1],
        "discriminator_predictions/dense_1/bias": [1],
        **network("generator", generator),
        "generator_predictions/dense/kernel": [width, E],
        "generator_predictions/dense/bias": [E],
        "generator_predictions/LayerNorm/gamma": [E],
        "generator_predictions/LayerNorm/beta": [E],
        "generator_predictions/output_bias": [V],
    }


def write(folder, config=CONFIG, shapes=None):
    return write_tf1(folder, shapes or variables(), config, "model.ckpt-1000000", "config.json")


def convert(folder, target, **options):
    return convert_checkpoint("google", "albert_tf", str(folder), str(target), ReadOptions(**options))


def their_outputs(transformers, config, values, prefix):
    """Returns the states and the logits that transformers computes in float64 with the same arrays."""
    import torch

    parts = (f"{prefix}/", "electra/embeddings/", *(["generator_predictions/"] if prefix == "generator" else []))
    state = {
        their_name(name, prefix): torch.tensor(value.T if name.endswith("/kernel") else value)
        for name, value in values.items()
        if name.startswith(parts) and not name.endswith(("/adam_m", "/adam_v"))
    }
    settings = {name: value for name, value in config.items() if name not in ("model_type", "architectures")}
    model = transformers.ElectraForMaskedLM(transformers.ElectraConfig(**settings)).eval()
    report = model.load_state_dict(state, strict=False)
    assert not report.unexpected_keys
    assert all(key.startswith("generator") for key in report.missing_keys)
    assert prefix == "electra" or report.missing_keys in ([], ["generator_lm_head.weight"])
    model.tie_weights()
    found = model.double()(**torch_inputs(random_inputs()), output_hidden_states=True)
    return found.hidden_states[-1].detach().numpy(), found.logits.detach().numpy()


def their_name(name, prefix):
    if name == "generator_predictions/output_bias":
        return "generator_lm_head.bias"
    name = name.replace(f"{prefix}/", "electra/", 1).replace("layer_", "layer.").replace("/", ".")
    for end, theirs in ((".kernel", ".weight"), (".gamma", ".weight"), (".beta", ".bias"), ("gs", "gs.weight")):
        if name.endswith(end):
            return name.removesuffix(end) + theirs
    return name


def difference(ours, theirs):
    """Returns how far outputs are from theirs where there are pieces, relative to their norm."""
    kept = random_inputs()["input_mask"].numpy().astype(bool)
    return relative_difference(ours.numpy()[kept], theirs[kept])


def outputs_of(folder):
    inputs = random_inputs()
    positions = tf.tile(tf.range(inputs["input_ids"].shape[1])[None], [inputs["input_ids"].shape[0], 1])
    return AlbertForPreTraining.from_pretrained(folder, verbose=False)({**inputs, "masked_lm_positions": positions})


@pytest.mark.parametrize(("config", "prefix"), [(CONFIG, "electra"), (GENERATOR_CONFIG, "generator")])
def test_each_network_computes_what_it_does_in_transformers(transformers, tmp_path, config, prefix):
    generator = GENERATOR_CONFIG if prefix == "electra" else config
    values = write(tmp_path / "google", config, with_slots(variables(generator)))
    sentences = convert(tmp_path / "google", tmp_path / "ours")
    states, logits = their_outputs(transformers, config, values, prefix)
    found = outputs_of(tmp_path / "ours")
    # Sums of at most 24 products in float32, through two layers.
    assert difference(found["sequence_output"], states) < 1e-5
    if prefix == "generator":
        assert difference(found["masked_lm_logits"], logits) < 1e-5
        assert "read the generator, and left 38 variables of the discriminator" in sentences
    else:
        at_random = "not in it, and so initialized at random where it is needed: masked_lm_head"
        assert any(at_random in each for each in sentences)
    assert "left, because only training needs them: 164 of the optimizer (adam_m, adam_v), global_step" in sentences


def test_config_decides_which_network_is_read_and_the_other_is_left(tmp_path):
    values = write(tmp_path / "google", None)
    (tmp_path / "generator.json").write_text(json.dumps(GENERATOR_CONFIG))
    with pytest.raises(
        InputError, match=r"no config\.json in .*, and ELECTRA's code writes no config; name that of the"
    ):
        convert(tmp_path / "google", tmp_path / "ours")
    convert(tmp_path / "google", tmp_path / "generator", albert_config_file=str(tmp_path / "generator.json"))
    (tmp_path / "google" / "config.json").write_text(json.dumps(CONFIG))
    sentences = convert(tmp_path / "google", tmp_path / "discriminator")
    assert any(
        "read the discriminator, and left 39 variables of the generator; the generator's config, with " in sentence
        for sentence in sentences
    )
    head = read_variables(tmp_path / "discriminator")
    for name, theirs in {"transform": "dense", "dense": "dense_1"}.items():
        for end in ("kernel", "bias"):
            expected = values[f"discriminator_predictions/{theirs}/{end}"]
            np.testing.assert_array_equal(head[f"replaced_token_head/{name}/{end}"], expected)
    for folder, prefix in (("discriminator", "electra"), ("generator", "generator")):
        config, ours = config_in(tmp_path / folder), read_variables(tmp_path / folder)
        assert (config.model_type, config.hidden_act, config.pooler) == ("electra", "gelu_erf", False)
        for name, theirs in {
            "encoder/embeddings/word_embeddings": "electra/embeddings/word_embeddings",
            "encoder/embedding_hidden_mapping_in/kernel": f"{prefix}/embeddings_project/kernel",
            "encoder/attention_layers/1/query/kernel": f"{prefix}/encoder/layer_1/attention/self/query/kernel",
            "encoder/feed_forward_layers/1/layer_norm/gamma": f"{prefix}/encoder/layer_1/output/LayerNorm/gamma",
        }.items():
            np.testing.assert_array_equal(ours[name], values[theirs], err_msg=name)
        assert ("masked_lm_head/output_bias" in ours) is (prefix == "generator")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {**CONFIG, "architectures": ["ElectraForMaskedLM"]},
            r"hidden_size=16 is not that of the generator, for which .*config\.json asks with architectures="
            r"ElectraForMaskedLM: in .* the discriminator has \[16\] and the generator has \[4\]; name",
        ),
        (
            {**CONFIG, **GENERATOR_SIZES},
            r"hidden_size=4 is not that of the discriminator, for which .*config\.json asks without architectures="
            r"ElectraForMaskedLM: in .* the discriminator has \[16\] and the generator has \[4\]; name",
        ),
        ({**CONFIG, "num_hidden_layers": 1}, r"electra/encoder/layer_1/.* is not part of the encoder"),
        ({**CONFIG, "model_type": "bert"}, r"model_type=bert, and .* is of ELECTRA; name the config of that"),
        ({**CONFIG, "hidden_act": "swish"}, r"hidden_act=swish can't be converted; gelu"),
    ],
)
def test_config_of_another_network_is_refused_in_a_sentence_that_names_both(tmp_path, config, message):
    write(tmp_path / "google", config)
    with pytest.raises(InputError, match=message):
        convert(tmp_path / "google", tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


def test_checkpoint_without_generator_holds_none(tmp_path):
    shapes = {name: shape for name, shape in variables().items() if not name.startswith("generator")}
    write(tmp_path / "google", GENERATOR_CONFIG, shapes)
    with pytest.raises(InputError, match=r"does not hold the generator, for which .* name the config of the network"):
        convert(tmp_path / "google", tmp_path / "ours")


def test_generator_may_have_embeddings_or_layers_of_its_own_or_not(tmp_path):
    """The settings `untied_generator_embeddings` and `untied_generator` of ELECTRA's code."""
    own = {f"generator/embeddings/{name}": shape for name, shape in EMBEDDINGS.items()}
    values = write(tmp_path / "untied", GENERATOR_CONFIG, {**variables(), **own})
    convert(tmp_path / "untied", tmp_path / "of untied")
    found = read_variables(tmp_path / "of untied")["encoder/embeddings/word_embeddings"]
    np.testing.assert_array_equal(found, values["generator/embeddings/word_embeddings"])
    shapes = {name: shape for name, shape in variables(CONFIG).items() if not name.startswith("generator/")}
    values = write(tmp_path / "tied", EQUAL_CONFIG, shapes)
    convert(tmp_path / "tied", tmp_path / "of tied")
    found = read_variables(tmp_path / "of tied")
    name = "attention/self/query/kernel"
    np.testing.assert_array_equal(
        found["encoder/attention_layers/0/query/kernel"], values[f"electra/encoder/layer_0/{name}"]
    )
    assert "masked_lm_head/output_bias" in found


@pytest.mark.parametrize("config", [CONFIG, GENERATOR_CONFIG])
def test_it_goes_back_with_the_same_bits(tmp_path, config):
    values = write(tmp_path / "google", config)
    convert(tmp_path / "google", tmp_path / "ours")
    sentences = convert_checkpoint("albert_tf", "google", str(tmp_path / "ours"), str(tmp_path / "back"))
    is_generator = "architectures" in config
    assert f"written as {'the generator' if is_generator else 'the discriminator'} of ELECTRA alone" in sentences
    back = read_tf1(tmp_path / "back" / "model.ckpt-best")
    of_network = (
        ("generator/", "generator_predictions/") if is_generator else ("electra/", "discriminator_predictions/")
    )
    assert back.keys() == {name for name in variables() if name.startswith((*of_network, "electra/embeddings/"))}
    for name, value in back.items():
        np.testing.assert_array_equal(value, values[name], err_msg=name)
    convert(tmp_path / "back", tmp_path / "again")
    assert config_in(tmp_path / "again") == config_in(tmp_path / "ours")
