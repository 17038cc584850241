"""The model config: the original's JSON files are read as they are, and mistakes end in one sentence."""

import dataclasses
import json
import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.tokenization import Vocabulary

CONFIGS = pathlib.Path(__file__).resolve().parent.parent / "configs"
FIELDS = [field.name for field in dataclasses.fields(AlbertConfig)]

# What differs between the original's released files, and how v1 differs from v2 (google-research/albert#23).
RELEASED_SIZES = {
    "base": {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072},
    "large": {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096},
    "xlarge": {"hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 8192},
    "xxlarge": {"hidden_size": 4096, "num_hidden_layers": 12, "num_attention_heads": 64, "intermediate_size": 16384},
}
RELEASED = [(size, version) for size in RELEASED_SIZES for version in ("v1", "v2")]


def released_keys(size, version):
    """Returns what the original's albert_config.json holds, with the keys that its code reads."""
    dropout = 0.1 if version == "v1" and size != "xxlarge" else 0
    return {
        "attention_probs_dropout_prob": dropout,
        "hidden_act": "gelu",
        "hidden_dropout_prob": dropout,
        "embedding_size": 128,
        "initializer_range": 0.02,
        "max_position_embeddings": 512,
        "num_hidden_groups": 1,
        "inner_group_num": 1,
        "type_vocab_size": 2,
        "vocab_size": 30000,
        **RELEASED_SIZES[size],
    }


UNUSED_RELEASED_KEYS = {
    "net_structure_type": 0,
    "layers_to_keep": [],
    "gap_size": 0,
    "num_memory_blocks": 0,
    "down_scale_factor": 1,
}


def tiny_keys(**changes):
    return {"vocab_size": 30, "hidden_size": 16, "num_attention_heads": 4, **changes}


def error_of(function, *arguments):
    """Returns the message of the error that the call must end in: one sentence on one line."""
    with pytest.raises(InputError) as caught:
        function(*arguments)
    message = str(caught.value)
    assert message
    assert "\n" not in message
    return message


@pytest.mark.parametrize(("size", "version"), RELEASED)
def test_released_json_is_read_unchanged_and_our_copy_is_the_original(tmp_path, size, version):
    path, expected = tmp_path / "albert_config.json", released_keys(size, version)
    path.write_text(json.dumps({**expected, **UNUSED_RELEASED_KEYS}))
    config = AlbertConfig.from_json_file(path)
    assert config == AlbertConfig.from_json_file(CONFIGS / f"albert_{size}_{version}.json")
    config = config.to_dict()
    assert {name: config[name] for name in expected} == expected
    assert isinstance(config["hidden_dropout_prob"], float), "also where it is 0 in the file"
    # What the original fixes in its code.
    rest = {name: value for name, value in config.items() if name not in expected}
    assert rest == {
        "classifier_dropout_prob": 0.1,
        "layer_norm_eps": 1e-12,
        "sharing": "all",
        "position_initializer": "normal",
        "attention_initializer": "normal",
        "classifier_pooling": "first",
        "question_alignment": "none",
    }


def test_defaults_are_those_of_the_original_code():
    assert AlbertConfig(vocab_size=30000) == AlbertConfig.from_dict(released_keys("xxlarge", "v2"))


@pytest.mark.parametrize("path", sorted(CONFIGS.rglob("*.json")), ids=lambda path: path.name)
def test_every_config_of_the_project_loads(path):
    AlbertConfig.from_json_file(path)
    assert set(json.loads(path.read_text())) <= set(FIELDS)  # no key without effect


def test_unknown_keys_are_refused_by_name():
    message = error_of(AlbertConfig.from_dict, tiny_keys(hiden_size=16, masked_lm_is_shifted=False))
    assert "hiden_size, masked_lm_is_shifted" in message  # one that no model has, and one that the library dropped
    assert "hidden_size" in message  # what the user may have meant


@pytest.mark.parametrize(
    ("changes", "received"),
    [
        ({"hidden_size": 18}, "hidden_size=18, num_attention_heads=4"),
        ({"num_hidden_layers": 2, "num_hidden_groups": 3}, "num_hidden_groups=3, num_hidden_layers=2"),
        ({"hidden_act": "swish"}, "swish"),
        ({"sharing": True}, "True"),
        ({"vocab_size": 0}, "0"),
        ({"num_hidden_layers": 2.0}, "2.0"),
        ({"num_hidden_layers": True}, "True"),
        ({"hidden_dropout_prob": "0.1"}, "'0.1'"),
        ({"hidden_dropout_prob": 1.0}, "1.0"),
        ({"attention_probs_dropout_prob": -0.1}, "-0.1"),
        ({"initializer_range": 0}, "0"),
        ({"layer_norm_eps": float("nan")}, "nan"),
    ],
)
def test_bad_value_is_named_with_what_was_received(changes, received):
    message = error_of(AlbertConfig.from_dict, tiny_keys(**changes))
    key = next(iter(changes))
    assert key in message
    assert received in message.partition("Received: ")[2]


def test_choices_are_listed():
    assert "all, attention, ffn, none" in error_of(AlbertConfig.from_dict, tiny_keys(sharing="some"))
    acts = error_of(AlbertConfig.from_dict, tiny_keys(hidden_act="silu"))
    assert "gelu, gelu_new, gelu_erf, relu, tanh, linear" in acts


def test_error_in_a_file_names_the_file_and_dropouts_may_be_whole_numbers(tmp_path):
    path = tmp_path / "wrong.json"
    for text, expected in (
        (json.dumps(tiny_keys()), "for a BERT to hidden_size"),
        ('{"vocab_size": 30,\n "hidden_size" 16}', "line 2"),
        ("[30, 16]", "one JSON object"),
    ):
        path.write_text(text)
        message = error_of(AlbertConfig.from_json_file, path)
        assert str(path) in message and expected in message
    assert isinstance(AlbertConfig.from_dict(tiny_keys(hidden_dropout_prob=0)).hidden_dropout_prob, float)


@pytest.mark.parametrize("key", ["is_causal", "character_ngrams"])
def test_later_key_is_written_only_where_it_is_not_the_default(key):
    assert key not in AlbertConfig.from_dict(tiny_keys(**{key: False})).to_dict()
    changed = AlbertConfig.from_dict(tiny_keys(**{key: True}))
    assert changed.to_dict()[key] is True and AlbertConfig.from_dict(changed.to_dict()) == changed
    assert f"{key} must be true or false" in error_of(AlbertConfig.from_dict, tiny_keys(**{key: 1}))


def test_keys_of_other_families_are_checked_and_written_only_where_they_are_used():
    keys = {"model_type": "roberta", "position_offset": 2, "pooler": False, "classification_head": "dense_tanh"}
    keys |= {"norm_position": "pre", "language_model_head": "tied"}
    assert not keys.keys() & AlbertConfig.from_dict(tiny_keys()).to_dict().keys()
    config = AlbertConfig.from_dict(tiny_keys(type_vocab_size=0, max_position_embeddings=66, embedding_size=16, **keys))
    assert AlbertConfig.from_dict(config.to_dict()) == config and config.longest_sequence == 64
    with pytest.raises(InputError, match="max_position_embeddings, 66 less its position_offset, 2"):
        config.check_max_seq_length(65)
    for name, value, message in (
        ("position_offset", -1, "position_offset must be a whole number of at least 0"),
        ("position_offset", 66, "max_position_embeddings must be more than position_offset"),
        ("type_vocab_size", -1, "type_vocab_size must be a whole number of at least 0"),
        ("pooler", 1, "pooler must be true or false"),
        ("classification_head", "dense", "classification_head must be one of pooled, dense_tanh"),
        ("norm_position", "first", "norm_position must be one of post, pre"),
        ("language_model_head", "none", "language_model_head must be one of dense, tied, tied_bias"),
        ("language_model_head", "tied", "language_model_head=tied needs embedding_size to be hidden_size. Received: "),
        ("model_type", "t5", "model_type must be one of albert, roberta"),
    ):
        assert message in error_of(AlbertConfig.from_dict, tiny_keys(max_position_embeddings=66, **{name: value}))


def test_keys_of_distances_are_checked_and_written_only_where_they_are_used():
    keys = {"position_buckets": 8, "max_relative_positions": 12, "share_att_key": True, "norm_rel_ebd": "layer_norm"}
    keys |= {"position_biased_input": False}
    assert not ({"relative_attention"} | keys.keys()) & AlbertConfig.from_dict(tiny_keys()).to_dict().keys()
    for name, value in keys.items():
        message = error_of(AlbertConfig.from_dict, tiny_keys(**{name: value}))
        assert message == f"{name}={json.dumps(value)} needs relative_attention. Received: relative_attention=none"
    keys["relative_attention"] = "p2c|c2p"
    config = AlbertConfig.from_dict(tiny_keys(**keys))
    assert AlbertConfig.from_dict(config.to_dict()) == config and config.longest_distance == 12
    assert config.replace(max_relative_positions=0).longest_distance == 512
    for changes, message in (
        ({"relative_attention": "p2p"}, "relative_attention must be one of none, c2p, p2c, p2c|c2p"),
        ({"norm_rel_ebd": "batch_norm"}, "norm_rel_ebd must be one of none, layer_norm"),
        ({"position_buckets": 7}, "position_buckets must be even, and its half less than max_relative_positions - 1"),
        ({"position_buckets": 22}, "Received: position_buckets=22, max_relative_positions=12"),
        ({"is_causal": True}, "relative_attention=p2c|c2p needs is_causal=false"),
        (
            {"attention_initializer": "neighbors", "position_initializer": "sinusoidal"},
            "attention_initializer=neighbors finds neighbours by the positions that are added to pieces",
        ),
    ):
        assert message in error_of(AlbertConfig.from_dict, tiny_keys(**{**keys, **changes}))


@pytest.mark.parametrize(("pieces", "pad_id"), [(["[CLS]", "[PAD]", "[UNK]"], 1), (["[PAD]", "[CLS]", "[UNK]"], 0)])
def test_vocabulary_must_have_the_padding_that_positions_are_counted_by(pieces, pad_id):
    config = AlbertConfig.from_dict(tiny_keys(vocab_size=3, position_offset=pad_id + 1))
    config.check_vocabulary(Vocabulary(pieces))
    with pytest.raises(InputError, match=rf"\[PAD\] has the id {pad_id} in the vocabulary, but position_offset=3"):
        config.replace(position_offset=3).check_vocabulary(Vocabulary(pieces))
    config.replace(position_offset=0).check_vocabulary(Vocabulary(["[UNK]", "a", "b"]))


def test_replace_checks_again():
    config = AlbertConfig.from_dict(tiny_keys())
    assert config.replace(num_attention_heads=8).num_attention_heads == 8
    assert config.num_attention_heads == 4
    with pytest.raises(InputError, match="num_attention_heads"):
        config.replace(num_attention_heads=5)


json_values = (
    st.none() | st.booleans() | st.integers(-5, 5000) | st.floats() | st.text(max_size=5) | st.just([]) | st.just({})
)


@given(st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=5), json_values))
def test_any_json_object_is_a_config_or_an_input_error(values):
    try:
        config = AlbertConfig.from_dict({"vocab_size": 30, **values})
    except InputError:
        return
    assert AlbertConfig.from_dict(config.to_dict()) == config
