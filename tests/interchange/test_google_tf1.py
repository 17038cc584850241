"""Checkpoints as google-research/albert and google-research/bert write them, with their names spelled out here."""

import json
import pathlib
import shutil

import numpy as np
import pytest
import tensorflow as tf
from random_models import CONFIGS, assert_same_variables, config_in, read_variables, write_ours

from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.interchange.conversion import convert_checkpoint
from albert_tf.interchange.portable_model import ReadOptions
from albert_tf.interchange.variables import variable_shapes
from albert_tf.modeling import AlbertForPreTraining

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
V, E, H, FFN, P = 30, 8, 16, 24, 12
ALBERT_CONFIG = {
    "attention_probs_dropout_prob": 0.1,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "embedding_size": E,
    "hidden_size": H,
    "initializer_range": 0.02,
    "intermediate_size": FFN,
    "max_position_embeddings": P,
    "num_attention_heads": 2,
    "num_hidden_layers": 3,
    "num_hidden_groups": 1,
    "net_structure_type": 0,
    "gap_size": 0,
    "num_memory_blocks": 0,
    "inner_group_num": 1,
    "down_scale_factor": 1,
    "type_vocab_size": 2,
    "vocab_size": V,
}
GROUP = "bert/encoder/transformer/group_0/inner_group_0"
ALBERT_VARIABLES = {
    "bert/embeddings/word_embeddings": [V, E],
    "bert/embeddings/token_type_embeddings": [2, E],
    "bert/embeddings/position_embeddings": [P, E],
    "bert/embeddings/LayerNorm/beta": [E],
    "bert/embeddings/LayerNorm/gamma": [E],
    "bert/encoder/embedding_hidden_mapping_in/kernel": [E, H],
    "bert/encoder/embedding_hidden_mapping_in/bias": [H],
    f"{GROUP}/attention_1/self/query/kernel": [H, H],
    f"{GROUP}/attention_1/self/query/bias": [H],
    f"{GROUP}/attention_1/self/key/kernel": [H, H],
    f"{GROUP}/attention_1/self/key/bias": [H],
    f"{GROUP}/attention_1/self/value/kernel": [H, H],
    f"{GROUP}/attention_1/self/value/bias": [H],
    f"{GROUP}/attention_1/output/dense/kernel": [H, H],
    f"{GROUP}/attention_1/output/dense/bias": [H],
    f"{GROUP}/LayerNorm/beta": [H],
    f"{GROUP}/LayerNorm/gamma": [H],
    f"{GROUP}/ffn_1/intermediate/dense/kernel": [H, FFN],
    f"{GROUP}/ffn_1/intermediate/dense/bias": [FFN],
    f"{GROUP}/ffn_1/intermediate/output/dense/kernel": [FFN, H],
    f"{GROUP}/ffn_1/intermediate/output/dense/bias": [H],
    f"{GROUP}/LayerNorm_1/beta": [H],
    f"{GROUP}/LayerNorm_1/gamma": [H],
    "bert/pooler/dense/kernel": [H, H],
    "bert/pooler/dense/bias": [H],
    "cls/predictions/transform/dense/kernel": [H, E],
    "cls/predictions/transform/dense/bias": [E],
    "cls/predictions/transform/LayerNorm/beta": [E],
    "cls/predictions/transform/LayerNorm/gamma": [E],
    "cls/predictions/output_bias": [V],
    "cls/seq_relationship/output_weights": [2, H],
    "cls/seq_relationship/output_bias": [2],
}
PRE_TRAINING_ONLY = ("cls/predictions", "cls/seq_relationship")
# The variables of each head, and our names of some that could be confused.
HEADS = {
    "classify": {"output_weights": [3, H], "output_bias": [3]},
    "squad": {"cls/squad/output_weights": [2, H], "cls/squad/output_bias": [2]},
    "squad_v2": {
        "start_logits/dense/kernel": [H, 1],
        "start_logits/dense/bias": [1],
        "end_logits/dense_0/kernel": [2 * H, H],
        "end_logits/dense_0/bias": [H],
        "end_logits/LayerNorm/beta": [H],
        "end_logits/LayerNorm/gamma": [H],
        "end_logits/dense_1/kernel": [H, 1],
        "end_logits/dense_1/bias": [1],
        "answer_class/dense_0/kernel": [2 * H, H],
        "answer_class/dense_0/bias": [H],
        "answer_class/dense_1/kernel": [H, 1],
    },
}
BERT_CONFIG = {
    "attention_probs_dropout_prob": 0.1,
    "directionality": "bidi",
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": H,
    "initializer_range": 0.02,
    "intermediate_size": FFN,
    "max_position_embeddings": P,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "pooler_fc_size": 768,
    "pooler_num_attention_heads": 12,
    "pooler_num_fc_layers": 3,
    "pooler_size_per_head": 128,
    "pooler_type": "first_token_transform",
    "type_vocab_size": 2,
    "vocab_size": V,
}


def bert_layers(prefix, num_layers, size, ffn):
    """Returns the names and shapes of layers that share nothing."""
    names = {}
    for layer in (f"{prefix}/encoder/layer_{number}" for number in range(num_layers)):
        for part in ("self/query", "self/key", "self/value", "output/dense"):
            names |= {f"{layer}/attention/{part}/kernel": [size, size], f"{layer}/attention/{part}/bias": [size]}
        names |= {f"{layer}/intermediate/dense/kernel": [size, ffn], f"{layer}/intermediate/dense/bias": [ffn]}
        names |= {f"{layer}/output/dense/kernel": [ffn, size], f"{layer}/output/dense/bias": [size]}
        for part in ("attention/output", "output"):
            names |= {f"{layer}/{part}/LayerNorm/{end}": [size] for end in ("gamma", "beta")}
    return names


def bert_variables():
    """Returns the names and shapes of a BERT of two layers."""
    names = {name: shape for name, shape in ALBERT_VARIABLES.items() if "encoder" not in name}
    names = {name: [H if size == E else size for size in shape] for name, shape in names.items()}
    return names | bert_layers("bert", 2, H, FFN)


def write_tf1(folder, shapes, config=ALBERT_CONFIG, name="model.ckpt-best", config_name="albert_config.json"):
    """Writes a checkpoint of TensorFlow 1 with random values, and returns these by name."""
    folder.mkdir(exist_ok=True)
    random = np.random.default_rng(3)
    values = {key: random.normal(size=shape).astype(np.float32) for key, shape in shapes.items()}
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variables = {key: tf.compat.v1.get_variable(key, initializer=value) for key, value in values.items()}
        step = tf.compat.v1.train.get_or_create_global_step()
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.train.Saver([*variables.values(), step]).save(session, str(folder / name))
    (folder / "checkpoint").unlink()  # the released archives have none
    if config is not None:
        (folder / config_name).write_text(json.dumps(config))
    return values


def with_slots(shapes):
    return {**shapes, **{f"{name}/{slot}": shape for name, shape in shapes.items() for slot in ("adam_m", "adam_v")}}


def read_tf1(path):
    reader = tf.train.load_checkpoint(str(path))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def convert(folder, target, **options):
    return convert_checkpoint("google", "albert_tf", str(folder), str(target), ReadOptions(**options))


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """The folder of a released checkpoint, and its values."""
    folder = tmp_path_factory.mktemp("released")
    return folder, write_tf1(folder, with_slots(ALBERT_VARIABLES))


@pytest.fixture
def with_config(released, tmp_path):
    """Copies the released folder with another config."""

    def copy(**changes):
        shutil.copytree(released[0], tmp_path / "google")
        (tmp_path / "google" / "albert_config.json").write_text(json.dumps({**ALBERT_CONFIG, **changes}))

    return copy


def test_released_checkpoint_is_read_without_its_optimizer(released, tmp_path):
    folder, values = released
    sentences = convert(folder, tmp_path / "ours")
    assert "left, because only training needs them: 64 of the optimizer (adam_m, adam_v), global_step" in sentences
    ours = read_variables(tmp_path / "ours")
    assert len(ours) == len(ALBERT_VARIABLES)
    for name, theirs in {
        "encoder/embeddings/layer_norm/gamma": values["bert/embeddings/LayerNorm/gamma"],
        "encoder/embedding_hidden_mapping_in/kernel": values["bert/encoder/embedding_hidden_mapping_in/kernel"],
        "encoder/attention_layers/0/key/kernel": values[f"{GROUP}/attention_1/self/key/kernel"],
        "encoder/attention_layers/0/output_dense/bias": values[f"{GROUP}/attention_1/output/dense/bias"],
        "encoder/attention_layers/0/layer_norm/beta": values[f"{GROUP}/LayerNorm/beta"],
        "encoder/feed_forward_layers/0/output_dense/kernel": values[f"{GROUP}/ffn_1/intermediate/output/dense/kernel"],
        "encoder/feed_forward_layers/0/layer_norm/gamma": values[f"{GROUP}/LayerNorm_1/gamma"],
        "masked_lm_head/output_bias": values["cls/predictions/output_bias"],
        "sentence_order_head/dense/kernel": values["cls/seq_relationship/output_weights"].T,
    }.items():
        np.testing.assert_array_equal(ours[name], theirs, err_msg=name)
    model = AlbertForPreTraining.from_pretrained(tmp_path / "ours")
    np.testing.assert_array_equal(model.encoder.pooler.kernel, values["bert/pooler/dense/kernel"])
    assert model.config.hidden_act == "gelu" and model.config.hidden_dropout_prob == 0.1


@pytest.mark.parametrize("task", [None, "classify", "squad", "squad_v2"])
def test_every_head_comes_back_bit_by_bit(tmp_path, task):
    shapes = ALBERT_VARIABLES
    if task:
        shapes = {name: shape for name, shape in shapes.items() if not name.startswith(PRE_TRAINING_ONLY)}
        shapes = {**shapes, **HEADS[task]}
    values = write_tf1(tmp_path / "google", shapes)
    convert(tmp_path / "google", tmp_path / "ours", task=task)
    convert_checkpoint("albert_tf", "google", str(tmp_path / "ours"), str(tmp_path / "back"), ReadOptions(task=task))
    back = read_tf1(tmp_path / "back" / "model.ckpt-best")
    assert back.keys() == values.keys()
    for name, value in values.items():
        np.testing.assert_array_equal(back[name], value, err_msg=name)
    written = json.loads((tmp_path / "back" / "albert_config.json").read_text())
    assert {name: written[name] for name in ALBERT_CONFIG if name != "num_memory_blocks"} == {
        name: value for name, value in ALBERT_CONFIG.items() if name != "num_memory_blocks"
    }


def test_tf_hub_prefix_is_no_part_of_the_names_and_other_variables_are_left(tmp_path):
    shapes = {f"module/{name}": shape for name, shape in ALBERT_VARIABLES.items() if "seq_relationship" not in name}
    values = write_tf1(tmp_path / "google", {**shapes, "module/cls/other/kernel": [3]})
    sentences = convert(tmp_path / "google", tmp_path / "ours")
    assert "left, because it is no part of the model: cls/other/kernel" in sentences
    assert "not in it, and so initialized at random where it is needed: sentence_order_head" in sentences
    ours = read_variables(tmp_path / "ours")
    np.testing.assert_array_equal(
        ours["encoder/embeddings/word_embeddings"], values["module/bert/embeddings/word_embeddings"]
    )


def test_chinese_release_has_relu_and_a_wordpiece_vocabulary(with_config, tmp_path):
    with_config(hidden_act="relu", layers_to_keep=[])
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"一二三四五六七八九十abcdefghijklmn", "##a"]
    (tmp_path / "google" / "vocab.txt").write_text("\n".join(pieces) + "\n", "utf-8")
    convert(tmp_path / "google", tmp_path / "ours")
    assert config_in(tmp_path / "ours").hidden_act == "relu"
    settings = json.loads((tmp_path / "ours" / "tokenizer.json").read_text())
    assert settings["lower_case"] and settings["strip_accents"]


def test_bert_is_a_model_that_shares_nothing(tmp_path):
    names = "bert_model.ckpt", "bert_config.json"
    values = write_tf1(tmp_path / "google", with_slots(bert_variables()), BERT_CONFIG, *names)
    convert(tmp_path / "google" / "bert_model.ckpt", tmp_path / "ours")
    config = config_in(tmp_path / "ours")
    assert (config.sharing, config.embedding_size) == ("none", H)
    ours = read_variables(tmp_path / "ours")
    np.testing.assert_array_equal(
        ours["encoder/feed_forward_layers/1/output_dense/kernel"], values["bert/encoder/layer_1/output/dense/kernel"]
    )
    convert_checkpoint("albert_tf", "google", str(tmp_path / "ours"), str(tmp_path / "back"))
    back = read_tf1(tmp_path / "back" / "model.ckpt-best")
    assert back.keys() == bert_variables().keys()
    for key, value in back.items():
        np.testing.assert_array_equal(value, values[key], err_msg=key)


@pytest.mark.parametrize("name", ["two groups of two", "as wide as its layers", "narrow, nothing shared"])
def test_our_models_come_back_bit_by_bit(tmp_path, name):
    folder, model = write_ours(tmp_path / "ours", CONFIGS[name])
    convert_checkpoint("albert_tf", "google", folder, str(tmp_path / "google"))
    convert(tmp_path / "google", tmp_path / "back")
    assert_same_variables(tmp_path / "back", model)
    back = config_in(tmp_path / "back")
    if name == "narrow, nothing shared":  # which ALBERT says as groups of one layer
        assert (back.sharing, back.num_hidden_groups) == ("all", 2)
    else:
        assert back == CONFIGS[name]


def test_variable_that_is_missing_is_named(tmp_path):
    name = f"{GROUP}/LayerNorm/beta"
    write_tf1(tmp_path / "google", {key: shape for key, shape in ALBERT_VARIABLES.items() if key != name})
    with pytest.raises(InputError, match=f"the variable {name} is missing"):
        convert(tmp_path / "google", tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"net_structure_type": 1}, "net_structure_type=1 is not supported: models of albert_tf compute"),
        ({"hidden_act": "swish"}, "hidden_act must be one of"),
        ({"mystery": 1}, r"unknown key\(s\) mystery"),
        ({"num_hidden_layers": 10**9}, "1000000000 layers"),
        ({"num_hidden_layers": 900, "num_hidden_groups": 900}, "can't be the 900 blocks"),
        ({"vocab_size": 10**30}, "vocab_size in the config beside it is more than any model has"),
        ({"vocab_size": 31}, r"word_embeddings has shape \[30, 8\], and .* it should have \[31, 8\]"),
    ],
)
def test_config_that_is_not_computed_or_not_of_the_checkpoint_is_refused(with_config, tmp_path, change, message):
    with_config(**change)
    with pytest.raises(InputError, match=message):
        convert(tmp_path / "google", tmp_path / "ours")


def test_place_of_checkpoint_and_config_is_asked_for(tmp_path):
    with pytest.raises(InputError, match="`input_path`: no checkpoint of TensorFlow"):
        convert(tmp_path / "nowhere", tmp_path / "ours")
    write_tf1(tmp_path / "google", ALBERT_VARIABLES, None, "model.ckpt-1")
    with pytest.raises(InputError, match=r"there is no albert_config\.json in .* `albert_config_file`"):
        convert(tmp_path / "google", tmp_path / "ours")
    (tmp_path / "config.json").write_text(json.dumps(ALBERT_CONFIG))
    write_tf1(tmp_path / "google", ALBERT_VARIABLES, None, "model.ckpt-2")
    with pytest.raises(InputError, match=r"holds 2 checkpoints; name one, such as .*model\.ckpt-2"):
        convert(tmp_path / "google", tmp_path / "ours")
    convert(tmp_path / "google" / "model.ckpt-2", tmp_path / "ours", albert_config_file=str(tmp_path / "config.json"))
    assert config_in(tmp_path / "ours").hidden_size == H


@pytest.mark.parametrize("size", ["base_v2", "large_v2", "xlarge_v2", "xxlarge_v2"])
def test_released_sizes_have_the_parameters_that_are_counted_in_them(size):
    config = AlbertConfig.from_json_file(ROOT / f"configs/albert_{size}.json").replace(vocab_size=30000)
    count = sum(int(np.prod(shape)) for shape in variable_shapes(config).values())
    counts = {"base": 11_813_810, "large": 17_847_474, "xlarge": 59_021_490, "xxlarge": 223_158_450}
    assert count == counts[size.split("_")[0]]
