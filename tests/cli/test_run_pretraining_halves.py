"""run_pretraining.py on halves of sentences, and with word embeddings that begin from counts."""

import json
import shutil

import numpy as np
import pytest
from runs import read_results, variables_in

from albert_tf.pretraining_data.shards import find_shards
from albert_tf.runs.cooccurrence import cooccurrence_embeddings

TABLE = "encoder/embeddings/word_embeddings"


@pytest.fixture(scope="module")
def halves(build_shards):
    """A folder of shards of halves."""
    return build_shards(32, 5, packing="halves")


@pytest.fixture
def on_halves(halves):
    """Flags that say so."""
    return {"input_file": halves / "train.tfrecord", "word_embeddings": "cooccurrence"}


@pytest.fixture
def trained(pretrain, on_halves, folder_of_run):
    """The folder of a run on halves, evaluated; not to be changed."""
    if not folder_of_run.exists():
        result = pretrain(**on_halves, output_dir=folder_of_run).succeeded()
        assert "\nword embeddings: counted for " in result.output
    return folder_of_run


@pytest.mark.slow
def test_both_tasks_are_trained_and_measured(trained):
    results = read_results(trained)
    assert {"masked_lm_loss", "halves_loss", "masked_lm_accuracy", "halves_accuracy"} <= results.keys()
    assert results["loss"] == pytest.approx(results["masked_lm_loss"] + results["halves_loss"])
    # Nothing is learnt yet: as good as any of at most four rows of three sentences.
    assert 0 < results["halves_loss"] < 2 * np.log(4 * 3)


@pytest.mark.slow
@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_run_begins_with_the_counts_until_it_has_a_checkpoint(
    pretrain, on_halves, trained, without_training, tmp_path, has_checkpoint
):
    run = shutil.copytree(trained, tmp_path / "run")
    for path in [] if has_checkpoint else [*run.glob("model.ckpt-*"), *run.glob("best*"), run / "metrics.jsonl"]:
        path.unlink()
    result = pretrain(**on_halves, do_eval=False).finished()
    assert ("\nword embeddings: counted for " in result.output) != has_checkpoint


@pytest.mark.slow
def test_counts_change_the_table_and_nothing_else_at_the_start(pretrain, on_halves, without_training, tmp_path):
    for name in ("random", "cooccurrence"):
        flags = {**on_halves, "word_embeddings": name, "output_dir": tmp_path / name}
        assert pretrain(**flags, do_eval=False).code == 0
    random, counted = (run.weights for run in without_training)
    is_same = (random.pop(TABLE) == counted.pop(TABLE)).all(axis=1)
    assert is_same[0] and 0.02 < is_same.mean() < 0.9
    for name, values in random.items():
        np.testing.assert_array_equal(values, counted[name], err_msg=name)


@pytest.mark.slow
def test_a_run_that_begins_from_a_checkpoint_keeps_its_table(pretrain, on_halves, checkpoint, without_training):
    result = pretrain(**on_halves, init_checkpoint=checkpoint, do_eval=False)
    assert result.code == 0 and "word embeddings: counted" not in result.output
    (run,) = without_training
    np.testing.assert_array_equal(run.weights[TABLE], variables_in(checkpoint)[f"model/{TABLE}"])


@pytest.mark.slow
def test_pooler_that_was_never_trained_begins_anew(trained, classify, tmp_path):
    untrained = json.loads((trained / "untrained.json").read_text())["untrained"]
    assert untrained == [
        "encoder/pooler/kernel",
        "encoder/pooler/bias",
        "sentence_order_head/dense/kernel",
        "sentence_order_head/dense/bias",
    ]
    told = "; never trained there, so from random weights here: encoder/pooler\n"
    for pooling in ("first", "mean"):
        run = tmp_path / pooling
        flag_values = {"init_checkpoint": trained, "pooling": pooling, "output_dir": run, "train_step": 1}
        result = classify(do_train=True, random_seed=7, **flag_values).finished()
        assert (told in result.output) == (pooling == "first")
        assert (run / "untrained.json").exists() == (pooling == "mean"), "the one trains the pooler, the other doesn't"
    # What has a random pooler that nothing reads is whole, and can be used.
    used = {"init_checkpoint": tmp_path / "mean", "train_step": 1, "output_dir": tmp_path / "used"}
    classify(do_predict=True, **used).succeeded()
    name = "model/encoder/pooler/kernel"
    before, after = variables_in(trained / "model.ckpt-4"), variables_in(tmp_path / "mean" / "model.ckpt-1")
    assert (before[name] != after[name]).any()


@pytest.mark.slow
def test_batches_of_evaluation_stay_those_of_the_run(pretrain, run_script, on_halves, trained, tmp_path):
    run = shutil.copytree(trained, tmp_path / "run")
    before = read_results(run)
    (run / "eval_results.json").unlink()
    result = run_script("run_pretraining.py", output_dir=run, do_train=False, do_eval=True).succeeded()
    assert read_results(run) == pytest.approx(before)
    result = pretrain(**on_halves, eval_batch_size=2)
    assert result.code == 1 and "--eval_batch_size is 2, and was 4; " in result.errors


@pytest.mark.slow
def test_counts_of_masked_shards_are_those_of_their_text(build_shards, tiny_config):
    tables = []
    for masking in ("dynamic", "static"):
        shards = find_shards([str(build_shards(32, 5, masking=masking) / "train.tfrecord")], tiny_config)
        tables.append(cooccurrence_embeddings(shards, tiny_config.vocab_size, 8, stddev=0.02))
    np.testing.assert_array_equal(*tables)
    assert tables[0].any()


def test_counting_needs_to_know_special_tokens(pretrain, build_shards, tmp_path):
    shutil.copy(build_shards(32, 5, masking="static") / "train.tfrecord", tmp_path / "train.tfrecord")
    result = pretrain(
        input_file=tmp_path / "train.tfrecord",
        word_embeddings="cooccurrence",
        do_eval=False,
        max_seq_length=32,
        max_predictions_per_seq=5,
    )
    assert result.code == 1 and "--word_embeddings=cooccurrence" in result.errors


def test_phases_of_different_tasks_are_refused(pretrain, on_halves, shards):
    result = pretrain(**on_halves, phase2_input_file=shards / "train.tfrecord")
    assert result.code == 1
    assert "--phase2_input_file: its shards were made with another --objective or `sentence_pair`" in result.errors
