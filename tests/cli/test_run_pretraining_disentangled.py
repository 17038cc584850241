"""A DeBERTa from sentences to guessed pieces, labels and exports."""

import pytest
from runs import assert_same_run, stopped_copy

import albert_tf

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def deberta_file(tiny_config, write_config):
    """Path of the config of a tiny DeBERTa."""
    return write_config(
        tiny_config.replace(
            relative_attention="p2c|c2p",
            position_buckets=8,
            norm_rel_ebd="layer_norm",
            position_biased_input=False,
            type_vocab_size=0,
            pooler=False,
            classification_head="dense_gelu",
            hidden_dropout_prob=0.1,
        )
    )


@pytest.fixture
def on_sentences(build_shards, deberta_file):
    """Flags that say so."""
    folder = build_shards(32, 5, packing="full_sentences")
    return {"input_file": folder / "train.tfrecord", "albert_config_file": deberta_file}


@pytest.mark.parametrize("objective", [{"objective": "roberta"}, {"objective": "electra", "generator_size": 0.5}])
def test_pretrained_model_is_resumed_asked_fine_tuned_and_exported(
    pretrain, on_sentences, classify, run_script, tmp_path, objective
):
    run = tmp_path / "whole"
    result = pretrain(**on_sentences, **objective, output_dir=run)
    assert (result.code, result.errors) == (0, "")
    stopped = stopped_copy(run, tmp_path / "run", 4)
    assert pretrain(**on_sentences, **objective).code == 0
    assert_same_run(stopped, run, 4)
    trained, exported, texts = tmp_path / "classifier", tmp_path / "exported", ["정말 재미있는 영화", "별로"]
    model = albert_tf.load(run)
    if objective == {"objective": "roberta"}:
        assert model.fill_mask(["오늘은 [MASK] 맑다"])[0][0]
    else:
        result = run_script("export_model.py", model_dir=run, output_dir=exported / "discriminator")
        assert result.code == 0, result.errors
        served = albert_tf.load(exported / "discriminator")
        for found, each in zip(served.find_replaced(texts), model.find_replaced(texts), strict=True):
            expected = [piece["probability"] for piece in each]
            assert [piece["probability"] for piece in found] == pytest.approx(expected, abs=1e-5)
    result = classify(do_train=True, do_eval=False, layer_decay=0.8, init_checkpoint=run, output_dir=trained)
    assert (result.code, result.errors) == (0, "")
    for kind in ("saved_model", "litert"):
        result = run_script("export_model.py", model_dir=trained, format=kind, output_dir=exported / kind)
        assert result.code == 0, result.errors
        for found, each in zip(albert_tf.load(exported / kind).predict(texts), albert_tf.load(trained).predict(texts)):
            assert found["probabilities"] == pytest.approx(each["probabilities"], abs=1e-5)
