"""plan-tpu as a user runs it."""

import json
import pathlib

import pytest

from albert_tf.cli import plan_tpu
from albert_tf.config import AlbertConfig
from albert_tf.interchange.huggingface import read_published_config

CONFIGS = pathlib.Path(__file__).resolve().parent.parent.parent / "configs"


@pytest.fixture
def plan(run_script):
    """Runs plan-tpu for the demo's model at length 64; a flag of None is left out."""
    usual = {"albert_config_file": CONFIGS / "albert_demo.json", "max_seq_length": 64}
    return lambda **changes: run_script("plan-tpu", **{**usual, **changes})


def test_what_is_planned_is_told_where_nobody_says_it(plan, monkeypatch):
    monkeypatch.setattr(plan_tpu, "show_batch", lambda *_: None)
    told = "--task=roberta, which suits the model; if it is to learn something else, pass --task\n"
    flags = {"albert_config_file": CONFIGS / "electra_small.json", "tpu": "v5e", "train_batch_size": 8}
    for more, output in (({}, told), ({"task": "electra"}, ""), ({"json": True}, "")):
        result = plan(**flags, **more)
        assert (result.code, result.output) == (0, output), result.errors


@pytest.mark.slow
def test_one_batch_is_one_object(plan, write_config):
    pytest.importorskip("jax")
    pytest.importorskip("libtpu")
    config = AlbertConfig.from_json_file(CONFIGS / "albert_demo.json").replace(num_hidden_layers=1)
    result = plan(
        albert_config_file=write_config(config),
        tpu="v5e",
        train_batch_size=16,
        max_predictions_per_seq=10,
        optimizer="adamw",
        remat="none",
        json=True,
    ).finished()
    assert all("compiling a batch" in line for line in result.errors.splitlines()), result.errors
    figures = json.loads(result.output)
    assert {"temporary_bytes", "argument_bytes", "bytes_accessed", "flops", "compile_seconds"} <= figures.keys()
    assert figures["argument_bytes"] > 3 * 4 * 500_000, "weights and two moments"


# As KLUE-RoBERTa-base and KoELECTRA-small-v3 are published, but for numbers of layers and pieces.
SIZES = {
    "hidden_act": "gelu",
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
    "vocab_size": 1000,
}
ROBERTA = {
    **SIZES,
    "architectures": ["RobertaForMaskedLM"],
    "model_type": "roberta",
    "layer_norm_eps": 1e-05,
    "max_position_embeddings": 514,
    "pad_token_id": 1,
    "position_embedding_type": "absolute",
    "tokenizer_class": "BertTokenizer",
    "type_vocab_size": 1,
}
ELECTRA = {
    **SIZES,
    "architectures": ["ElectraForPreTraining"],
    "model_type": "electra",
    "embedding_size": 64,
    "max_position_embeddings": 512,
    "pad_token_id": 0,
    "type_vocab_size": 2,
}


@pytest.fixture
def published(tmp_path):
    """Returns a folder of transformers with the config that a test gives, and nothing else."""

    def write(values):
        (tmp_path / "config.json").write_text(json.dumps(values))
        return tmp_path

    return write


@pytest.mark.parametrize(
    ("flag", "values", "longest"),
    [("init_checkpoint", ROBERTA, "514 less its position_offset, 2"), ("albert_config_file", ELECTRA, "512")],
)
def test_config_of_transformers_is_read_as_that_model(plan, published, flag, values, longest):
    folder = published(values)
    named = {"albert_config_file": None, flag: folder if flag == "init_checkpoint" else folder / "config.json"}
    result = plan(**named, max_seq_length=1024)
    assert f"--max_seq_length=1024 is more than the model's max_position_embeddings, {longest};" in result.errors
    result = plan(**named, task="albert")
    assert "sentence_order reads the pooler, and this model has none (pooler=false)" in result.errors


def test_pooler_of_a_config_follows_from_its_class(published):
    folder = published({**ROBERTA, "architectures": ["RobertaModel"]})
    assert read_published_config(str(folder / "config.json")).pooler
    folder = published(ROBERTA)
    assert not read_published_config(str(folder / "config.json")).pooler


def test_config_of_another_model_costs_one_sentence(plan, published):
    result = plan(albert_config_file=None, init_checkpoint=published({**ROBERTA, "model_type": "t5"}))
    assert result.code == 1 and not result.output
    assert "model_type=t5 can't be converted; albert, bert," in result.errors and result.errors.count("\n") == 1


def test_folder_without_a_config_is_named(plan, tmp_path):
    result = plan(albert_config_file=None, init_checkpoint=tmp_path)
    assert result.code == 1
    assert f"--init_checkpoint={tmp_path}: there is no albert_config.json and no config.json; name the" in result.errors


def test_model_of_keras_hub_is_sent_to_conversion(plan, published):
    folder = published({"class_name": "AlbertBackbone"})
    (folder / "model.weights.h5").touch()
    result = plan(albert_config_file=None, init_checkpoint=folder)
    assert "is a model of keras_hub; convert it with convert_checkpoint.py --from=keras_hub" in result.errors


@pytest.mark.parametrize(
    ("flag_values", "sentence"),
    [
        ({"tpu": "v9"}, "--tpu=v9 is unknown; it must be one of v5e,"),
        ({"max_seq_length": 1024}, "--max_seq_length=1024 is more than the model's max_position_embeddings, 128"),
        ({"tpu": "v3-8,v5e", "attention": "flash"}, "--attention=flash needs a TPU from v4 on; use --attention=plain"),
        ({"task": "causal"}, "causal_lm needs pieces that see only those before them; set is_causal to true"),
        ({"albert_config_file": None}, "--albert_config_file is missing"),
    ],
)
def test_mistake_costs_one_sentence(plan, flag_values, sentence):
    result = plan(**flag_values)
    assert result.code == 1 and not result.output
    assert result.errors.startswith(f"error: {sentence}") and result.errors.count("\n") == 1
