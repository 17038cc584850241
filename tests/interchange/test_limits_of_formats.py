"""Settings that a format has no name for come back, and a model or head that its library doesn't compute is refused."""

import pytest
from random_models import config_in, write_ours
from tiny_config import tiny_config

from albert_tf.base.errors import InputError
from albert_tf.interchange.conversion import convert_checkpoint
from albert_tf.interchange.families import family_named
from albert_tf.interchange.portable_model import ReadOptions

WITHOUT_NAMES = {"position_initializer": "sinusoidal", "classifier_pooling": "mean", "classifier_dropout_prob": 0.2}


@pytest.mark.parametrize(
    ("target", "changes"),
    [
        ("huggingface", {"layer_norm_eps": 1e-6}),
        ("google", {}),
        ("keras_hub", {"initializer_range": 0.05, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.2}),
    ],
)
def test_fields_that_a_format_does_not_know_come_back(tmp_path, target, changes):
    config = tiny_config(**WITHOUT_NAMES, **changes)
    folder, _ = write_ours(tmp_path / "ours", config)
    sentences = convert_checkpoint("albert_tf", target, folder, str(tmp_path / "theirs"))
    told = "KerasHub has one dropout, 0.1: attention_probs_dropout_prob=0.2 is known to albert_tf alone"
    assert (told in sentences) is (target == "keras_hub")
    convert_checkpoint(target, "albert_tf", str(tmp_path / "theirs"), str(tmp_path / "back"))
    assert config_in(tmp_path / "back") == config


WIDE = {"embedding_size": 16, "hidden_act": "gelu_erf", "num_hidden_layers": 2}
ROBERTA = {**WIDE, **family_named("roberta").always, "position_offset": 1}
XLM = {**WIDE, **family_named("xlm").always}
DEBERTA = {**WIDE, **family_named("deberta-v2").always, "relative_attention": "p2c|c2p"}
ELECTRA = {**WIDE, **family_named("electra").always}


@pytest.mark.parametrize(
    ("target", "config", "task", "message"),
    [
        ("google", {"hidden_act": "gelu_erf"}, None, "`to=google` can't express hidden_act=gelu_erf"),
        ("google", {"layer_norm_eps": 1e-5}, None, "`to=google` can't express layer_norm_eps=1e-05"),
        ("google", {"sharing": "ffn", "num_hidden_layers": 2}, None, "`to=google` can't express sharing=ffn"),
        ("google", {"is_causal": True}, None, "can't express is_causal=true"),
        ("google", {"position_offset": 2}, None, "`to=google` can't express position_offset=2"),
        ("google", {"classifier_pooling": "mean"}, "classify", "can't express classifier_pooling=mean"),
        ("google", {"question_alignment": "words"}, "squad", "can't express question_alignment=words"),
        (
            "google",
            {**ELECTRA, "hidden_act": "gelu"},
            None,
            "hidden_act=gelu of model_type=electra, whose code has gel",
        ),
        ("google", {**ELECTRA, "layer_norm_eps": 1e-5}, None, "can't express layer_norm_eps=1e-05"),
        ("google", {**ELECTRA, "inner_group_num": 2}, None, "inner_group_num=2 of a model of model_type=electra"),
        ("keras_hub", {"hidden_act": "relu"}, None, "can't express hidden_act=relu"),
        ("keras_hub", {"layer_norm_eps": 1e-5}, None, "can't express layer_norm_eps=1e-05"),
        ("keras_hub", {"num_hidden_layers": 3, "num_hidden_groups": 2}, None, "num_hidden_layers=3 in 2 groups"),
        ("keras_hub", {"is_causal": True}, None, "can't express is_causal=true"),
        ("keras_hub", {"position_offset": 2}, None, "`to=keras_hub` can't express position_offset=2"),
        ("huggingface", {"sharing": "attention", "num_hidden_layers": 2}, None, "can't express sharing=attention"),
        ("huggingface", {"is_causal": True}, None, "can't express is_causal=true"),
        ("huggingface", {"num_languages": 2}, None, "num_languages=2 of a model of model_type=albert: its models"),
        ("huggingface", {"norm_position": "pre"}, None, "norm_position=pre of a model of model_type=albert"),
        ("huggingface", {"classification_head": "dense_gelu"}, None, "classification_head=dense_gelu of a model of"),
        ("huggingface", {**ROBERTA, "position_offset": 0}, None, "position_offset=0 of model_type=roberta"),
        ("huggingface", {**ROBERTA, "hidden_act": "gelu"}, None, "hidden_act=gelu of model_type=roberta, whose masked"),
        ("huggingface", {**ROBERTA, "type_vocab_size": 0}, None, "type_vocab_size=0 of model_type=roberta"),
        ("huggingface", {**ROBERTA, "sharing": "all"}, None, "sharing=all of a model of model_type=roberta"),
        ("huggingface", {**ROBERTA, "embedding_size": 8}, None, "roberta: its models have embedding_size=16"),
        ("huggingface", XLM, None, "intermediate_size=16 of a model of model_type=xlm: its models have intermediate_s"),
        (
            "huggingface",
            {**XLM, "intermediate_size": 64, "hidden_act": "relu"},
            "tag",
            "can't express the head of a mo",
        ),
        ("huggingface", {**DEBERTA, "pooler": True}, None, "pooler=True of a model of model_type=deberta-v2"),
        ("huggingface", {**ELECTRA, "relative_attention": "p2c|c2p"}, None, r"relative_attention=p2c\|c2p of a model"),
    ],
)
def test_what_a_library_does_not_compute_is_refused(tmp_path, target, config, task, message):
    folder, _ = write_ours(tmp_path / "ours", tiny_config(**config), task)
    with pytest.raises(InputError, match=message):
        convert_checkpoint("albert_tf", target, folder, str(tmp_path / "theirs"), ReadOptions(task=task))
    assert not (tmp_path / "theirs").exists()
