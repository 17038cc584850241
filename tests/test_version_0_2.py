"""Folders that version 0.2 wrote are read, resumed, exported and asked as they were then."""

import hashlib
import json
import pathlib
import shutil

import numpy as np
import pytest
import tensorflow as tf

import albert_tf
from albert_tf.config import AlbertConfig
from albert_tf.pretraining.phases import make_phase, objective_of
from albert_tf.pretraining_data.manifest import manifest_identity, read_manifest
from albert_tf.pretraining_data.shards import find_shards
from albert_tf.training import RunSettings

pytestmark = pytest.mark.slow

WRITTEN = pathlib.Path(__file__).resolve().parent / "fixtures" / "version_0_2"
PACKINGS = ["order", "halves"]


@pytest.fixture
def written(tmp_path):
    """A copy of what was written, to go on with."""
    return shutil.copytree(WRITTEN, tmp_path / "written")


def expected(packing):
    return json.loads((WRITTEN / "expected" / f"{packing}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("packing", PACKINGS)
def test_batches_are_the_same_bytes(packing):
    config = AlbertConfig.from_json_file(WRITTEN / f"pretrained_{packing}" / "albert_config.json")
    shards = find_shards([str(WRITTEN / packing / "train.tfrecord")], config)
    objective = objective_of(config, shards)
    settings = RunSettings(num_train_steps=4, train_batch_size=4, eval_batch_size=4, learning_rate=1e-3)
    phase = make_phase(objective, shards, settings)
    datasets = {"train": phase.make_dataset(0, 0, 1), "held_out": phase.make_eval_dataset()}
    for split, digests in expected(packing)["batches"].items():
        for batch, digest in zip(datasets[split].as_numpy_iterator(), digests):
            assert set(objective.batch_spec(32)) == set(batch) <= set(digest)
            for name, values in batch.items():
                assert hashlib.sha256(values.tobytes()).hexdigest() == digest[name], name


@pytest.mark.parametrize(("packing", "flags"), [("order", {}), ("halves", {"objective": "halves"})])
def test_shards_are_made_anew_byte_for_byte_with_the_same_identity(run_script, packing, flags, tmp_path):
    result = run_script(
        "create_pretraining_data.py",
        input_file=WRITTEN / "corpus.txt",
        vocab_file=WRITTEN / packing / "vocab.txt",
        output_file=tmp_path / "train.tfrecord",
        max_seq_length=32,
        held_out_fraction=0.3,
        **flags,
    )
    assert (result.code, result.errors) == (0, "")
    for name in ("train.tfrecord", "held_out.tfrecord"):
        assert (tmp_path / name).read_bytes() == (WRITTEN / packing / name).read_bytes()
    old, new = (manifest_identity(read_manifest(str(each / "manifest.json"))) for each in (WRITTEN / packing, tmp_path))
    assert old == new


@pytest.mark.parametrize("packing", PACKINGS)
def test_pre_training_is_resumed_to_where_it_came_then(run_script, written, packing):
    folder = written / f"pretrained_{packing}"
    result = run_script(
        "run_pretraining.py", output_dir=folder, input_file=written / packing / "train.tfrecord", do_eval=True
    )
    assert (result.code, result.errors) == (0, "")
    assert "restored" in result.output
    then = expected(packing)
    reader = tf.train.load_checkpoint(str(folder / "model.ckpt-4"))
    for name, mean_square in then["mean_squares"].items():
        value = reader.get_tensor(f"{name}/.ATTRIBUTES/VARIABLE_VALUE").astype(float)
        assert np.mean(np.square(value)) == pytest.approx(mean_square, rel=1e-4, abs=1e-12), name
    results = json.loads((folder / "eval_results.json").read_text())
    assert results == pytest.approx(then["eval_results"], rel=1e-3)


def test_another_objective_on_the_same_data_is_refused(run_script, written):
    result = run_script(
        "run_pretraining.py",
        output_dir=written / "pretrained_order",
        input_file=written / "order" / "train.tfrecord",
        objective="roberta",
    )
    assert result.code == 1 and "its objective is AlbertPretraining, and now roberta" in result.errors


def test_fine_tuned_model_predicts_and_is_evaluated_as_then(run_script, written):
    predictions = albert_tf.load(written / "classifier").predict(["정말 재미있다", "별로였다"])
    for found, then in zip(predictions, expected("order")["predictions"], strict=True):
        assert found["label"] == then["label"]
        assert found["probabilities"] == pytest.approx(then["probabilities"], abs=1e-5)
    before = json.loads((written / "classifier" / "eval_results.json").read_text())
    result = run_script(
        "run_classifier.py",
        task_name="nsmc",
        data_dir=written / "reviews",
        output_dir=written / "classifier",
        do_train=False,
        do_eval=True,
    )
    assert result.code == 0, result.errors
    after = json.loads((written / "classifier" / "eval_results.json").read_text())
    assert {name: after[name] for name in before} == pytest.approx(before, rel=1e-3)


@pytest.mark.parametrize("folder", ["pretrained_order", "pretrained_halves", "classifier"])
def test_folders_are_exported(run_script, written, tmp_path, folder):
    result = run_script("export_model.py", model_dir=written / folder, output_dir=tmp_path / "export")
    assert result.code == 0, result.errors
    assert list((tmp_path / "export").rglob("saved_model.pb"))


def test_finished_data_is_known_to_be_finished(run_script, written):
    # What was made of the same text under the same name.
    result = run_script(
        "create_pretraining_data.py",
        input_file=written / "corpus.txt",
        vocab_file=written / "order" / "vocab.txt",
        output_file=written / "order" / "train.tfrecord",
        max_seq_length=32,
        held_out_fraction=0.3,
        resume=True,
    )
    assert result.code == 0, result.errors
    assert "nothing to resume" in result.output
