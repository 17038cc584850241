"""A model of masked and causal rows, from blocks of documents to masks filled in wherever it goes."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf
from runs import assert_same_run, read_results

import albert_tf
from albert_tf.interchange.conversion import convert_checkpoint

pytestmark = pytest.mark.slow

TEXTS = ["오늘은 [MASK]", "[MASK] 영화 [MASK] 별로"]


@pytest.fixture(scope="module")
def blocks(build_shards):
    """A folder of shards of blocks."""
    return build_shards(32, 5, packing="document_blocks", objective="hybrid", short_seq_prob=0.0)


@pytest.fixture
def on_blocks(blocks, tiny_config, write_config):
    """Flags of a run on them."""
    config = tiny_config.replace(masked_lm_is_shifted=True, hidden_dropout_prob=0.1)
    return {
        "input_file": blocks / "train.tfrecord",
        "albert_config_file": write_config(config),
        "causal_share": 0.25,
    }


@pytest.fixture(scope="module")
def folder_of_run(tmp_path_factory):
    """A folder for the run that the first test trains for all of them."""
    return tmp_path_factory.mktemp("hybrid") / "run"


@pytest.fixture
def trained(pretrain, on_blocks, folder_of_run):
    """The folder of a run, evaluated; not to be changed."""
    if not folder_of_run.exists():
        result = pretrain(**on_blocks, output_dir=folder_of_run)
        assert (result.code, result.errors) == (0, "")
        assert "(a causal_lm_loss that needs no context)" in result.output
    return folder_of_run


def test_both_losses_are_those_of_the_whole_held_out_text(trained, blocks):
    results = read_results(trained)
    split = json.loads((blocks / "manifest.json").read_text())["splits"]["held_out"]
    bits = results["causal_lm_loss"] / np.log(2) * (split["tokens"] + split["documents"])
    assert results["bits_per_character"] == pytest.approx(bits / split["characters"], rel=1e-5)
    expected = 0.25 * results["causal_lm_loss"] + 0.75 * results["masked_lm_loss"]
    assert results["loss"] == pytest.approx(expected, rel=1e-6)
    assert results.keys() >= {"causal_lm_accuracy", "masked_lm_accuracy"}


def test_stopped_run_ends_with_the_same_bits_by_its_folder_alone(pretrain, trained, tmp_path):
    run = shutil.copytree(trained, tmp_path / "run")
    for path in [*run.glob("model.ckpt-4*"), *run.glob("best*")]:
        path.unlink()
    rows = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join(row for row in rows if json.loads(row)["step"] <= 2))
    result = pretrain(input_file=None, albert_config_file=None)
    assert result.code == 0 and f"\nrestored {run}/model.ckpt-2\n" in result.output
    assert_same_run(run, trained, 4)
    result = pretrain(causal_share=0.5)
    assert result.code == 1 and "its --causal_share is 0.25, and now 0.5" in result.errors


def test_masks_are_filled_from_the_states_before_them_wherever_the_model_goes(trained, run_script, tmp_path):
    loaded = albert_tf.load(trained)
    found = loaded.fill_mask(TEXTS, top_k=3)
    model, table = loaded.model, loaded.model.encoder.embeddings.word_embeddings
    for text, guesses in zip(TEXTS, found):
        batch, positions = loaded._inputs.encode_masked(tf.constant([text]))
        states = model.encoder(batch)["sequence_output"]
        probabilities = tf.nn.softmax(model.masked_lm_head(states, table))[0].numpy()
        for row, best in zip(probabilities[positions[0].numpy() - 1], guesses, strict=True):
            assert [each["probability"] for each in best] == pytest.approx(sorted(row)[:-4:-1], rel=1e-4)
    result = run_script(
        "convert_checkpoint.py", input_path=trained, output_dir=tmp_path / "given", weights_dtype="float32"
    )
    assert result.code == 0, result.errors
    result = run_script("export_model.py", model_dir=trained, output_dir=tmp_path / "exported")
    assert result.code == 0, result.errors
    for folder in (tmp_path / "given", tmp_path / "exported"):
        for ours, theirs in zip(found, albert_tf.load(folder).fill_mask(TEXTS, top_k=3)):
            for one, other in zip(ours, theirs, strict=True):
                assert [each["piece"] for each in one] == [each["piece"] for each in other]
                assert [each["probability"] for each in one] == pytest.approx([each["probability"] for each in other])
    assert "pipeline_tag: fill-mask" in (trained / "README.md").read_text()


@pytest.mark.parametrize("target", ["huggingface", "google"])
def test_encoder_goes_to_other_libraries_without_the_head(trained, target, tmp_path):
    notes = convert_checkpoint("albert_tf", target, str(trained), str(tmp_path / "theirs"))
    assert any(
        "it reads the state before a masked piece (masked_lm_is_shifted=true)" in note and "masked_lm_head" in note
        for note in notes
    )
    convert_checkpoint(target, "albert_tf", str(tmp_path / "theirs"), str(tmp_path / "ours"))
    again, model = albert_tf.load(tmp_path / "ours"), albert_tf.load(trained)
    assert again.abilities == ("encode", "similarity") and "fill_mask" in model.abilities
    texts = ["정말 재미있는 영화", "별로"]
    np.testing.assert_allclose(again.encode(texts), model.encode(texts), rtol=1e-4, atol=1e-5)


def test_model_of_the_other_alignment_is_gone_on_with_and_said_so(
    pretrain, classify, on_blocks, checkpoint, trained, tmp_path
):
    flags = {**on_blocks, "init_checkpoint": checkpoint, "do_eval": False, "output_dir": tmp_path / "shifted"}
    line = (
        "initial checkpoint: its masked-LM head has learnt to read the state of a masked piece, and learns now to read "
        "the state before a masked piece\n"
    )
    result = pretrain(**flags)
    assert (result.code, result.errors) == (0, "") and line in result.output
    result = pretrain(**{**flags, "init_checkpoint": trained, "output_dir": tmp_path / "further"})
    assert result.code == 0 and "has learnt to read" not in result.output
    published = shutil.copytree(checkpoint, tmp_path / "published", ignore=shutil.ignore_patterns("run_settings.json"))
    flags |= {"init_checkpoint": published, "do_train": False, "do_eval": True, "output_dir": tmp_path / "evaluated"}
    result = pretrain(**flags)
    assert result.code == 1 and result.errors.count("\n") == 1
    assert "reads the state of a masked piece, where this model reads the state before a masked piece" in result.errors
    result = classify(do_train=True, do_eval=False, init_checkpoint=trained, output_dir=tmp_path / "classifier")
    assert (result.code, result.errors) == (0, "") and "has learnt to read" not in result.output


def test_batches_models_and_data_that_do_not_fit_are_refused(pretrain, on_blocks, shards, config_file, tmp_path):
    whole = "not a whole number of them; make --train_batch_size, divided by the number of replicas and by"
    for changes, message in (
        ({"train_batch_size": 6}, f"--causal_share=0.25 of 6 examples, which are learnt from at once, is {whole}"),
        (
            {"gradient_accumulation_steps": 2},
            f"--causal_share=0.25 of 2 examples, which are learnt from at once, is {whole}",
        ),
        ({"albert_config_file": config_file}, "hybrid learns each masked piece from the state before it"),
        ({"input_file": shards / "train.tfrecord", "objective": "hybrid"}, "--objective=hybrid needs examples packed"),
        ({"objective": "causal", "causal_share": None}, "causal_lm predicts each piece from those before it"),
        ({"causal_share": 1.5}, "--causal_share must be more than 0 and less than 1"),
    ):
        result = pretrain(**{**on_blocks, **changes}, output_dir=tmp_path / "refused")
        assert result.code == 1 and message in result.errors and result.errors.count("\n") == 1
        assert not (tmp_path / "refused").exists()
