"""Replaced tokens from shards to a discriminator and the generator beside it, and a DeBERTa to labels and exports."""

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

METRICS = {
    *("loss", "masked_lm_loss", "masked_lm_accuracy", "replaced_token_loss", "replaced_token_share"),
    *("replaced_token_auc", "replaced_token_precision", "replaced_token_recall"),
}


@pytest.fixture(scope="module")
def electra_file(tiny_config, write_config):
    """Path of the config of a tiny ELECTRA."""
    return write_config(tiny_config.replace(pooler=False, classification_head="dense_gelu", hidden_dropout_prob=0.1))


@pytest.fixture
def on_sentences(build_shards, electra_file):
    """Flags of a run on shards of whole sentences."""
    folder = build_shards(32, 5, packing="full_sentences")
    return {
        "input_file": folder / "train.tfrecord",
        "albert_config_file": electra_file,
        "objective": "electra",
        "generator_size": 0.5,
    }


@pytest.fixture
def train_once(pretrain, on_sentences, folder_of_run):
    """Returns the folder of a run, evaluated, given whether its embeddings are disentangled; not to be changed."""

    def train(is_disentangled):
        run = folder_of_run.with_name("disentangled" if is_disentangled else "shared")
        if not run.exists():
            result = pretrain(**on_sentences, disentangled_embeddings=is_disentangled, output_dir=run).succeeded()
            assert f"wrote the generator to {run}/generator\n" in result.output
            assert "of a rule that reads no text" not in result.output
        return run

    return train


@pytest.fixture
def trained(train_once):
    """The folder of a run of shared embeddings."""
    return train_once(False)


@pytest.fixture
def disentangled(train_once):
    """The folder of a run of disentangled ones."""
    return train_once(True)


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
    table = "model/encoder/embeddings/word_embeddings"
    np.testing.assert_array_equal(beside[table], found[table])
    kernel = "encoder/attention_layers/0/query/kernel"
    np.testing.assert_array_equal(beside[f"model/{kernel}"], found[f"generator/{kernel}"])
    assert "generator/encoder/embeddings/word_embeddings" not in found


@pytest.mark.parametrize("is_disentangled", [False, True])
def test_stopped_run_ends_with_the_same_bits_by_its_folder_alone(pretrain, train_once, tmp_path, is_disentangled):
    trained = train_once(is_disentangled)
    run = stopped_copy(trained, tmp_path / "run", 4)
    result = pretrain(input_file=None, albert_config_file=None)
    assert result.code == 0 and f"\nrestored {run}/model.ckpt-2\n" in result.output
    assert_same_run(run, trained, 4)
    result = pretrain(generator_size=0.25)
    assert result.code == 1 and "--generator_size is 0.25, and was 0.5" in result.errors


def test_both_models_are_gone_on_with_and_the_discriminator_is_fine_tuned(
    pretrain, classify, on_sentences, trained, tmp_path
):
    result = pretrain(**on_sentences, init_checkpoint=trained).finished()
    assert "initial checkpoint: loaded 21 variables of the generator\n" in result.output
    flags = {**on_sentences, "init_checkpoint": trained, "output_dir": tmp_path / "other"}
    result = pretrain(**{**flags, "generator_size": 1.0}).finished()
    assert "the generator in it has another size or lacks a part, and so begins at random\n" in result.output
    published = shutil.copytree(trained, tmp_path / "published", ignore=shutil.ignore_patterns("*.ckpt-*", "check*"))
    (published / "run_settings.json").unlink()
    values = variables_in(trained / "model.ckpt-4")
    write_checkpoint(str(published / "model.ckpt-4"), {key: v for key, v in values.items() if key.startswith("model/")})
    flags |= {"init_checkpoint": published, "output_dir": tmp_path / "evaluated", "do_train": False}
    result = pretrain(**flags)
    assert result.code == 1 and "lacks generator/" in result.errors and "can't be used untrained" in result.errors
    result = classify(
        do_train=True, do_eval=False, init_checkpoint=trained, output_dir=tmp_path / "classifier"
    ).succeeded()
    assert "not used here: replaced_token_head" in result.output


def test_folder_of_disentangled_embeddings_holds_each_model_whole(classify, disentangled, tmp_path):
    found, beside = (variables_in(resolve_checkpoint(folder)) for folder in (disentangled, disentangled / "generator"))
    names = [name for name in beside if name.startswith("model/encoder/embeddings/")]
    assert len(names) == 5
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
    result = classify(do_train=True, do_eval=False, init_checkpoint=disentangled, output_dir=tmp_path / "classifier")
    assert "not used here: replaced_token_head\n" in result.output


def test_embeddings_are_disentangled_and_shared_again(pretrain, on_sentences, trained, disentangled, tmp_path):
    table = "encoder/embeddings/word_embeddings"
    still = {**on_sentences, "num_train_steps": 1, "num_warmup_steps": 0, "freeze": "encoder/", "do_eval": False}

    def begin(name, **flags):
        result = pretrain(**still, **flags, output_dir=tmp_path / name).succeeded()
        return result, tmp_path / name / "model.ckpt-1"

    result, checkpoint = begin("apart", init_checkpoint=trained, disentangled_embeddings=True)
    assert "loaded 21 variables of the generator\n" in result.output
    begun, ended = variables_in(checkpoint), variables_in(resolve_checkpoint(trained))
    np.testing.assert_array_equal(begun[f"generator/{table}"], ended[f"model/{table}"])
    np.testing.assert_array_equal(begun[f"model/{table}"], ended[f"model/{table}"])

    result, checkpoint = begin("again", init_checkpoint=disentangled, disentangled_embeddings=True)
    assert "loaded 26 variables of the generator\n" in result.output
    begun, ended = variables_in(checkpoint), variables_in(resolve_checkpoint(disentangled))
    for name in (f"generator/{table}", f"model/{table}"):
        np.testing.assert_array_equal(begun[name], ended[name])

    result, checkpoint = begin("together", init_checkpoint=disentangled)
    left = "; left, because the model's take their place: encoder/embeddings\n"
    assert f"loaded 21 variables of the generator{left}" in result.output
    begun = variables_in(checkpoint)
    np.testing.assert_array_equal(begun[f"model/{table}"], ended[f"model/{table}"])
    assert f"generator/{table}" not in begun


def test_generator_never_reads_the_embeddings_of_another(pretrain, on_sentences, disentangled, tmp_path):
    flags = {**on_sentences, "disentangled_embeddings": False}
    for case in (
        {"output_dir": disentangled},
        {"output_dir": disentangled, "do_train": False},
        {"output_dir": tmp_path / "other", "do_train": False, "init_checkpoint": disentangled},
    ):
        result = pretrain(**{**flags, **case})
        assert result.code == 1 and "--disentangled_embeddings is False, and was True" in result.errors


def test_both_disentangled_embeddings_begin_with_counts(pretrain, on_sentences, tmp_path):
    flags = {"num_train_steps": 1, "num_warmup_steps": 0, "freeze": "embeddings", "do_eval": False}
    pretrain(**on_sentences, **flags, disentangled_embeddings=True, word_embeddings="cooccurrence").succeeded()
    found = variables_in(tmp_path / "run" / "model.ckpt-1")
    table = "encoder/embeddings/word_embeddings"
    np.testing.assert_array_equal(found[f"model/{table}"], found[f"generator/{table}"])


def test_model_that_is_its_own_generator_fills_masks(pretrain, on_sentences, tmp_path):
    flags = {**on_sentences, "share_generator": True}
    result = pretrain(**flags)
    assert result.code == 1 and "--share_generator makes the model its own generator" in result.errors
    assert not (tmp_path / "run").exists()
    assert pretrain(**{**flags, "generator_size": None}).code == 0
    assert not (tmp_path / "run" / "generator").exists()
    assert len(albert_tf.load(tmp_path / "run").fill_mask(["오늘은 [MASK]"])[0][0]) == 5


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
def deberta_flags(build_shards, deberta_file):
    """Flags that say so."""
    folder = build_shards(32, 5, packing="full_sentences")
    return {"input_file": folder / "train.tfrecord", "albert_config_file": deberta_file}


@pytest.mark.parametrize("objective", [{"objective": "roberta"}, {"objective": "electra", "generator_size": 0.5}])
def test_pretrained_model_is_resumed_asked_fine_tuned_and_exported(
    pretrain, deberta_flags, classify, run_script, tmp_path, objective
):
    run = tmp_path / "whole"
    pretrain(**deberta_flags, **objective, output_dir=run).succeeded()
    stopped = stopped_copy(run, tmp_path / "run", 4)
    assert pretrain(**deberta_flags, **objective).code == 0
    assert_same_run(stopped, run, 4)
    trained, exported, texts = tmp_path / "classifier", tmp_path / "exported", ["정말 재미있는 영화", "별로"]
    model = albert_tf.load(run)
    if objective == {"objective": "roberta"}:
        assert model.fill_mask(["오늘은 [MASK] 맑다"])[0][0]
    else:
        run_script("export_model.py", model_dir=run, output_dir=exported / "discriminator").finished()
        served = albert_tf.load(exported / "discriminator")
        for found, each in zip(served.find_replaced(texts), model.find_replaced(texts), strict=True):
            expected = [piece["probability"] for piece in each]
            assert [piece["probability"] for piece in found] == pytest.approx(expected, abs=1e-5)
    classify(do_train=True, do_eval=False, layer_decay=0.8, init_checkpoint=run, output_dir=trained).succeeded()
    for kind in ("saved_model", "litert"):
        run_script("export_model.py", model_dir=trained, format=kind, output_dir=exported / kind).finished()
        for found, each in zip(albert_tf.load(exported / kind).predict(texts), albert_tf.load(trained).predict(texts)):
            assert found["probabilities"] == pytest.approx(each["probabilities"], abs=1e-5)


@pytest.mark.parametrize(("distillation", "is_taught"), [("relations", True), ("logits", False)])
def test_model_that_knows_distances_is_taught_and_teaches(
    pretrain, deberta_flags, config_file, classify, tmp_path, distillation, is_taught
):
    configs = [config_file, deberta_flags["albert_config_file"]]
    of_teacher, of_student = configs if is_taught else reversed(configs)
    teacher, student = tmp_path / "teacher", tmp_path / "student"
    flags = {**deberta_flags, "num_train_steps": 2, "num_warmup_steps": 1}
    pretrain(**{**flags, "albert_config_file": of_teacher}, objective="roberta", output_dir=teacher).succeeded()
    flags |= {"albert_config_file": of_student, "objective": "distil", "teacher": teacher}
    pretrain(**flags, distillation=distillation, output_dir=student).succeeded()
    refused = pretrain(**flags, distillation="layers", output_dir=tmp_path / "refused")
    assert refused.code == 1 and refused.errors.startswith("error: --distillation=layers can't compare scores")
    assert refused.errors.count("\n") == 1 and not (tmp_path / "refused").exists()

    trained = {"do_train": True, "do_eval": False}
    classify(**trained, init_checkpoint=teacher, output_dir=tmp_path / "of_teacher").succeeded()
    taught = {"init_checkpoint": student, "teacher": tmp_path / "of_teacher", "output_dir": tmp_path / "run"}
    classify(**trained, **taught).succeeded()
