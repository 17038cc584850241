"""Replaced tokens from shards to a discriminator and the generator beside it, and a DeBERTa to labels and exports."""

import re
import shutil

import numpy as np
import pytest
import tensorflow as tf
from runs import assert_same_run, read_results, stopped_copy, variables_in

import albert_tf
from albert_tf.base.checkpoint_files import resolve_checkpoint, write_checkpoint
from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.modeling import AlbertEncoder
from albert_tf.modeling.layers import named_variables

pytestmark = pytest.mark.slow

TABLE = "encoder/embeddings/word_embeddings"
METRICS = {
    *("loss", "masked_lm_loss", "masked_lm_accuracy", "replaced_token_loss", "replaced_token_share"),
    *("replaced_token_auc", "replaced_token_precision", "replaced_token_recall"),
}


@pytest.fixture(scope="module")
def sentences(build_shards):
    """Path of shards of whole sentences."""
    return build_shards(32, 5, packing="full_sentences") / "train.tfrecord"


@pytest.fixture(scope="module")
def config_files(tiny_config, write_config):
    """Paths of the configs of a tiny ELECTRA and a tiny DeBERTa."""
    electra = tiny_config.replace(pooler=False, classification_head="dense_gelu", hidden_dropout_prob=0.1)
    deberta = electra.replace(
        relative_attention="p2c|c2p",
        position_buckets=8,
        norm_rel_ebd="layer_norm",
        position_biased_input=False,
        type_vocab_size=0,
    )
    return write_config(electra), write_config(deberta)


@pytest.fixture
def on_sentences(sentences, config_files):
    """Flags of a run of ELECTRA."""
    electra_file, _ = config_files
    return {"input_file": sentences, "albert_config_file": electra_file, "objective": "electra", "generator_size": 0.5}


@pytest.fixture
def of_deberta(on_sentences, config_files):
    """Flags of a run of DeBERTa as in its third version."""
    _, deberta_file = config_files
    return {**on_sentences, "albert_config_file": deberta_file, "disentangled_embeddings": True}


@pytest.fixture
def train_once(pretrain, folder_of_run):
    """Returns the folder of a run, evaluated, given its name and flags; not to be changed."""

    def train(name, flags):
        run = folder_of_run.with_name(name)
        if not run.exists():
            result = pretrain(**flags, output_dir=run).succeeded()
            assert f"wrote the generator to {run}/generator\n" in result.output
            assert "of a rule that reads no text" not in result.output
        return run

    return train


@pytest.fixture
def trained(train_once, on_sentences):
    """The folder of a run of ELECTRA, whose embeddings are shared."""
    return train_once("shared", on_sentences)


@pytest.fixture
def disentangled(train_once, of_deberta):
    """The folder of a run of DeBERTa, whose embeddings are disentangled."""
    return train_once("disentangled", of_deberta)


def test_discriminator_is_measured_and_the_generator_fills_masks(trained):
    results = read_results(trained)
    assert results.keys() == {"global_step", *METRICS}
    assert results["loss"] == pytest.approx(results["masked_lm_loss"] + 50 * results["replaced_token_loss"], rel=1e-6)
    assert 0 < results["replaced_token_share"] < 0.2
    model, generator = albert_tf.load(trained), albert_tf.load(trained / "generator")
    assert model.abilities == ("find_replaced", "encode", "similarity") and "fill_mask" in generator.abilities
    [pieces] = model.find_replaced(["오늘은 맑다"])
    assert "".join(piece["text"] for piece in pieces) == "오늘은맑다"
    assert len(generator.fill_mask(["오늘은 [MASK]"])[0][0]) == 5
    with pytest.raises(InputError, match="was not pre-trained to fill in what is missing"):
        model.fill_mask(["오늘은 [MASK]"])
    with pytest.raises(InputError, match="was not pre-trained to tell how probable pieces are, and so it has no score"):
        model.score(["오늘은 맑다"])
    found, beside = variables_in(trained / "model.ckpt-4"), variables_in(trained / "generator" / "model.ckpt-4")
    np.testing.assert_array_equal(beside[f"model/{TABLE}"], found[f"model/{TABLE}"])
    kernel = "encoder/attention_layers/0/query/kernel"
    np.testing.assert_array_equal(beside[f"model/{kernel}"], found[f"generator/{kernel}"])
    assert f"generator/{TABLE}" not in found


def test_stopped_run_ends_with_the_same_bits_by_its_folder_alone(pretrain, disentangled, tmp_path):
    run = stopped_copy(disentangled, tmp_path / "run", 4)
    result = pretrain(input_file=None, albert_config_file=None)
    assert result.code == 0 and f"\nrestored {run}/model.ckpt-2\n" in result.output
    assert_same_run(run, disentangled, 4)
    result = pretrain(generator_size=0.25)
    assert result.code == 1 and "--generator_size is 0.25, and was 0.5" in result.errors


def test_both_models_are_gone_on_with(pretrain, on_sentences, trained, without_training, tmp_path):
    flags = {**on_sentences, "init_checkpoint": trained, "do_eval": False}
    result = pretrain(**flags).finished()
    assert "initial checkpoint: loaded 21 variables of the generator\n" in result.output
    result = pretrain(**{**flags, "generator_size": 1.0}, output_dir=tmp_path / "other").finished()
    assert "the generator in it has another size or lacks a part, and so begins at random\n" in result.output


def test_generator_that_was_left_out_is_not_used_untrained(pretrain, on_sentences, trained, tmp_path):
    published = shutil.copytree(trained, tmp_path / "published", ignore=shutil.ignore_patterns("*.ckpt-*", "check*"))
    (published / "run_settings.json").unlink()
    values = variables_in(trained / "model.ckpt-4")
    write_checkpoint(str(published / "model.ckpt-4"), {key: v for key, v in values.items() if key.startswith("model/")})
    result = pretrain(**on_sentences, init_checkpoint=published, do_train=False)
    assert result.code == 1 and "lacks generator/" in result.errors and "can't be used untrained" in result.errors


def test_folder_of_disentangled_embeddings_holds_each_model_whole(disentangled):
    found, beside = (variables_in(resolve_checkpoint(folder)) for folder in (disentangled, disentangled / "generator"))
    names = [name for name in beside if name.startswith("model/encoder/embeddings/")]
    assert len(names) == 3
    for name in names:
        np.testing.assert_array_equal(found[name.replace("model/", "generator/")], beside[name])
        assert (found[name] != beside[name]).any()
    text = "오늘은 [MASK]"
    assert "fill_mask" in albert_tf.load(disentangled / "generator").abilities
    config = AlbertConfig.from_json_file(disentangled / "albert_config.json")
    model = AlbertEncoder(config)
    for name, variable in named_variables(model).items():
        variable.assign(found[f"model/encoder/{name}"])
    loaded = albert_tf.load(disentangled)
    encoding = loaded.tokenizer.encode(text)
    states = model({"input_ids": tf.constant([encoding.ids])})["sequence_output"]
    np.testing.assert_allclose(loaded.encode([text], pooling="first")[0], states[0, 0], atol=1e-6)


def test_discriminator_is_fine_tuned_and_exported(classify, run_script, disentangled, tmp_path):
    trained, texts = tmp_path / "run", ["정말 재미있는 영화", "별로"]
    result = classify(do_train=True, layer_decay=0.8, init_checkpoint=disentangled).succeeded()
    assert "not used here: replaced_token_head\n" in result.output
    expected = albert_tf.load(trained).predict(texts)
    for kind in ("saved_model", "litert"):
        run_script("export_model.py", model_dir=trained, format=kind, output_dir=tmp_path / kind).finished()
        for found, each in zip(albert_tf.load(tmp_path / kind).predict(texts), expected, strict=True):
            assert found["probabilities"] == pytest.approx(each["probabilities"], abs=1e-5)


def loaded_from_the_generator(result):
    """Returns how many of its variables were loaded."""
    return int(re.search(r"loaded (\d+) variables of the generator", result.output)[1])


def test_embeddings_are_disentangled_and_shared_again(
    pretrain, on_sentences, of_deberta, trained, disentangled, without_training, tmp_path
):
    begun = []

    def begin(start, flags):
        flags = {**flags, "init_checkpoint": start, "output_dir": tmp_path / f"run{len(begun)}", "do_eval": False}
        begun.append(pretrain(**flags).succeeded())
        models = without_training[-1].models
        return models["model"][TABLE], models["generator"][TABLE]

    ended = variables_in(resolve_checkpoint(trained))
    for found in begin(trained, {**on_sentences, "disentangled_embeddings": True}):
        np.testing.assert_array_equal(found, ended[f"model/{TABLE}"])
    ended = variables_in(resolve_checkpoint(disentangled))
    of_model, of_generator = begin(disentangled, of_deberta)
    np.testing.assert_array_equal(of_model, ended[f"model/{TABLE}"])
    np.testing.assert_array_equal(of_generator, ended[f"generator/{TABLE}"])
    for found in begin(disentangled, {**of_deberta, "disentangled_embeddings": False}):
        np.testing.assert_array_equal(found, ended[f"model/{TABLE}"])
    _, apart, together = map(loaded_from_the_generator, begun)
    assert apart - together == len([name for name in ended if name.startswith("generator/encoder/embeddings/")])
    assert "; left, because the model's take their place: encoder/embeddings\n" in begun[-1].output


def test_generator_never_reads_the_embeddings_of_another(pretrain, of_deberta, disentangled, tmp_path):
    flags = {**of_deberta, "disentangled_embeddings": False}
    for case in (
        {"output_dir": disentangled},
        {"output_dir": tmp_path / "other", "do_train": False, "init_checkpoint": disentangled},
    ):
        result = pretrain(**{**flags, **case})
        assert result.code == 1 and "--disentangled_embeddings is False, and was True" in result.errors


def test_both_disentangled_embeddings_begin_with_counts(pretrain, of_deberta, without_training):
    pretrain(**of_deberta, do_eval=False, word_embeddings="cooccurrence").succeeded()
    models = without_training[0].models
    np.testing.assert_array_equal(models["model"][TABLE], models["generator"][TABLE])


def test_model_that_is_its_own_generator_fills_masks(pretrain, on_sentences, tmp_path):
    flags = {**on_sentences, "share_generator": True, "num_train_steps": 1, "num_warmup_steps": 0, "do_eval": False}
    result = pretrain(**flags)
    assert result.code == 1 and "--share_generator makes the model its own generator" in result.errors
    assert not (tmp_path / "run").exists()
    assert pretrain(**{**flags, "generator_size": None}).code == 0
    assert not (tmp_path / "run" / "generator").exists()
    assert len(albert_tf.load(tmp_path / "run").fill_mask(["오늘은 [MASK]"])[0][0]) == 5
