"""What is loaded of further models, and what is left of them."""

import pytest
import tensorflow as tf

from albert_tf.base.checkpoint_files import write_checkpoint
from albert_tf.base.errors import InputError
from albert_tf.training.run_folder.checkpoints import Checkpointer
from albert_tf.training.run_folder.restoring import load_further_models

TABLE, KERNEL = "generator/encoder/embeddings/word_embeddings", "generator/encoder/kernel"


@pytest.fixture
def write(tmp_path):
    """Writes a checkpoint of ones; returns its folder."""

    def write_ones(*names):
        write_checkpoint(str(tmp_path / "model.ckpt-1"), dict.fromkeys(names, tf.ones([2])) | {"global_step": 1})
        return str(tmp_path)

    return write_ones


def variables_of(*names):
    return {name: tf.Variable(tf.zeros([2])) for name in names}


def test_what_is_followed_keeps_its_values_where_the_checkpoint_shares_the_other_models(write):
    variables = variables_of(TABLE, KERNEL)
    line = load_further_models(write("model/bias", KERNEL), variables, followed={TABLE})
    assert line == "initial checkpoint: loaded 1 variables of the generator"
    assert [float(value[0]) for value in variables.values()] == [0, 1]
    line = load_further_models(write(TABLE, KERNEL), variables, followed={TABLE})
    assert line == "initial checkpoint: loaded 2 variables of the generator" and float(variables[TABLE][0]) == 1
    line = load_further_models(write("model/bias", KERNEL), variables)
    assert line.endswith("the generator in it has another size or lacks a part, and so begins at random")


def test_what_further_models_would_do_without_is_told_or_refused(write):
    folder, variables = write("model/bias", TABLE, KERNEL), variables_of(KERNEL)
    line = load_further_models(folder, variables)
    assert line.endswith("1 variables of the generator; left, because the model's take their place: encoder/embeddings")
    with pytest.raises(InputError, match="has encoder/embeddings of its generator, which this run would do without"):
        load_further_models(folder, variables, complete_for="run")


def test_checkpoint_with_more_than_the_models_have_is_not_restored(write):
    folder = write("model/bias", TABLE, KERNEL)
    state = {**variables_of("model/bias", KERNEL), "global_step": tf.Variable(0, dtype=tf.int64)}
    with pytest.raises(InputError, match=f"has {TABLE}, which this command does not use"):
        Checkpointer(folder, state).restore(f"{folder}/model.ckpt-1")
    assert float(state["model/bias"][0]) == 0
    Checkpointer(folder, {**state, **variables_of(TABLE)}).restore(f"{folder}/model.ckpt-1")
    assert float(state["model/bias"][0]) == 1
