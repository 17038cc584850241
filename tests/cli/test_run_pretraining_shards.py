"""run_pretraining.py and the state of its data: damaged shards, examples without pairs."""

import json
import shutil

import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow


@pytest.fixture
def data(shards, tmp_path):
    """A copy of the shards, to break: training shards a, b and c with the same examples, and no manifest."""
    folder = shutil.copytree(shards, tmp_path / "data")
    (folder / "manifest.json").unlink()
    for name in "bc":
        shutil.copy(folder / "train.tfrecord", folder / f"train-{name}.tfrecord")
    (folder / "train.tfrecord").rename(folder / "train-a.tfrecord")
    return folder


@pytest.fixture
def pretrain(pretrain, data):
    """Runs two steps on them; flags may be replaced."""
    lengths = {"max_seq_length": 32, "max_predictions_per_seq": 5}
    usual = {"input_file": data / "train*.tfrecord", "train_batch_size": 8, "num_train_steps": 2, "do_eval": False}
    return lambda **changes: pretrain(**{**lengths, **usual, **changes})


def count_records(path):
    return sum(1 for _ in tf.data.TFRecordDataset(str(path)))


def test_run_that_comes_upon_a_damaged_shard_can_go_on_without_it(pretrain, data, tmp_path):
    assert pretrain(num_train_steps=4, save_checkpoints_steps=2).code == 0
    for path in (tmp_path / "run").glob("model.ckpt-4.*"):
        path.unlink()
    number = count_records(data / "train-b.tfrecord")
    content = (data / "train-b.tfrecord").read_bytes()
    (data / "train-b.tfrecord").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))

    stopped = pretrain(num_train_steps=4)
    assert stopped.code == 1
    named = f"{data}/train-b.tfrecord (record {number} can't be read)"
    assert stopped.errors.startswith(f"error: damaged: {named}; ")
    assert stopped.errors.count("\n") == 1

    (data / "train-b.tfrecord").write_bytes(content[:-1])
    shorter = pretrain(num_train_steps=4)
    assert "the content of its training data is not what it was (train-b.tfrecord); put" in shorter.errors

    resumed = pretrain(num_train_steps=4, on_damaged_shard="skip")
    assert (resumed.code, resumed.errors) == (0, "")
    assert f"warning: training leaves out 1 of 3 shards, which are damaged: {named}\n" in resumed.output
    assert f"restored {tmp_path}/run/model.ckpt-2\n" in resumed.output
    assert (tmp_path / "run" / "model.ckpt-4.index").exists()


def test_original_shards_train_with_a_warning(pretrain, build_shards, tmp_path):
    folder = build_shards(32, 5, masking="static")
    for name in ("manifest.json", "tokenizer.json", "vocab.txt"):
        (folder / name).unlink()
    result = pretrain(input_file=folder / "train.tfrecord")
    assert (result.code, result.errors) == (0, "")
    warning = f"warning: no manifest.json beside {folder}/train.tfrecord: its vocabulary can't be checked\n"
    assert warning in result.output


def test_held_out_shard_that_is_damaged_stops_evaluation(pretrain, data, tmp_path):
    content = bytearray((data / "held_out.tfrecord").read_bytes())
    content[-1] ^= 1
    (data / "held_out.tfrecord").write_bytes(content)
    result = pretrain(held_out_file=data / "held_out.tfrecord", do_eval=True)
    assert result.code == 1
    assert result.errors.startswith(f"error: damaged: {data}/held_out.tfrecord (record ")


def test_examples_without_pairs_have_no_sentence_order(pretrain, shards, tmp_path):
    folder = shutil.copytree(shards, tmp_path / "single")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["options"] |= {"packing": "document_sentences", "objective": None}
    del manifest["features"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    result = pretrain(input_file=folder / "train.tfrecord", do_eval=True)
    assert (result.code, result.errors) == (0, "")
    assert "sentence_order" not in result.output
    results = json.loads((tmp_path / "run" / "eval_results.json").read_text())
    assert results.keys() == {"global_step", "loss", "masked_lm_loss", "masked_lm_accuracy"}
    assert results["loss"] == results["masked_lm_loss"]
