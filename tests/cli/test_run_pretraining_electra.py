"""Replaced tokens from shards to a discriminator and the generator beside it."""

import json
import shutil

import numpy as np
import pytest
from runs import assert_same_run, read_results, variables_in

import albert_tf
from albert_tf.checkpoint_files import write_checkpoint
from albert_tf.errors import InputError

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
def on_sentences(build_shards, tmp_path_factory, electra_file):
    """Flags of a run on shards of whole sentences."""
    folder = build_shards(32, 5, packing="full_sentences")
    return {
        "input_file": folder / "train.tfrecord",
        "albert_config_file": electra_file,
        "objective": "electra",
        "generator_size": 0.5,
    }


@pytest.fixture(scope="module")
def folder_of_run(tmp_path_factory):
    """A folder for the run that the first test trains for all of them."""
    return tmp_path_factory.mktemp("electra") / "run"


@pytest.fixture
def trained(pretrain, on_sentences, folder_of_run):
    """The folder of a run, evaluated; not to be changed."""
    if not folder_of_run.exists():
        result = pretrain(**on_sentences, output_dir=folder_of_run)
        assert (result.code, result.errors) == (0, "")
        assert f"wrote the generator to {folder_of_run}/generator\n" in result.output
        assert "of a rule that reads no text" not in result.output
    return folder_of_run


def test_discriminator_is_measured_and_the_generator_fills_masks(trained):
    results = read_results(trained)
    assert results.keys() == {"global_step", *METRICS}
    assert results["loss"] == pytest.approx(results["masked_lm_loss"] + 50 * results["replaced_token_loss"], rel=1e-6)
    assert 0 < results["replaced_token_share"] < 0.2
    model, generator = albert_tf.load(trained), albert_tf.load(trained / "generator")
    assert model.abilities == ("encode", "similarity") and "fill_mask" in generator.abilities
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


def test_stopped_run_ends_with_the_same_bits_by_its_folder_alone(pretrain, trained, tmp_path):
    run = shutil.copytree(trained, tmp_path / "run")
    for path in [*run.glob("model.ckpt-4*"), *run.glob("best*"), *run.glob("generator/*")]:
        path.unlink()
    rows = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join(row for row in rows if json.loads(row)["step"] <= 2))
    result = pretrain(input_file=None, albert_config_file=None)
    assert result.code == 0 and f"\nrestored {run}/model.ckpt-2\n" in result.output
    assert_same_run(run, trained, 4)
    result = pretrain(generator_size=0.25)
    assert result.code == 1 and "its --generator_size is 0.5, and now 0.25" in result.errors


def test_both_models_are_gone_on_with_and_the_discriminator_is_fine_tuned(
    pretrain, classify, on_sentences, trained, tmp_path
):
    result = pretrain(**on_sentences, init_checkpoint=trained)
    assert result.code == 0
    assert "initial checkpoint: loaded 21 variables of the generator\n" in result.output
    flags = {**on_sentences, "init_checkpoint": trained, "output_dir": tmp_path / "other"}
    result = pretrain(**{**flags, "generator_size": 1.0})
    assert result.code == 0
    assert "the generator in it has another size or lacks a part, and so begins at random\n" in result.output
    published = shutil.copytree(trained, tmp_path / "published", ignore=shutil.ignore_patterns("*.ckpt-*", "check*"))
    (published / "run_settings.json").unlink()
    values = variables_in(trained / "model.ckpt-4")
    write_checkpoint(str(published / "model.ckpt-4"), {key: v for key, v in values.items() if key.startswith("model/")})
    flags |= {"init_checkpoint": published, "output_dir": tmp_path / "evaluated", "do_train": False}
    result = pretrain(**flags)
    assert result.code == 1 and "lacks generator/" in result.errors and "can't be used untrained" in result.errors
    result = classify(do_train=True, do_eval=False, init_checkpoint=trained, output_dir=tmp_path / "classifier")
    assert (result.code, result.errors) == (0, "")
    assert "in it, but not in this model: replaced_token_head" in result.output


def test_model_that_is_its_own_generator_fills_masks(pretrain, on_sentences, tmp_path):
    flags = {**on_sentences, "share_generator": True}
    result = pretrain(**flags)
    assert result.code == 1 and "--share_generator makes the model its own generator" in result.errors
    assert not (tmp_path / "run").exists()
    assert pretrain(**{**flags, "generator_size": None}).code == 0
    assert not (tmp_path / "run" / "generator").exists()
    assert len(albert_tf.load(tmp_path / "run").fill_mask(["오늘은 [MASK]"])[0][0]) == 5


def test_setting_of_another_objective_is_refused(pretrain, tmp_path):
    result = pretrain(generator_size=0.5)
    assert result.code == 1 and "--generator_size means nothing for --objective=albert; leave it out" in result.errors
    assert not (tmp_path / "run").exists()
