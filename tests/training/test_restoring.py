"""What is told of a model that a run begins with, and what is loaded of further models, and left of them."""

import itertools
import types

import pytest
import tensorflow as tf
from tiny_config import tiny_config

from albert_tf.base.checkpoint_files import write_checkpoint
from albert_tf.base.errors import InputError
from albert_tf.base.files import write_json
from albert_tf.training.run_folder.checkpoints import Checkpointer
from albert_tf.training.run_folder.restoring import describe_alignment, load_further_models

STATES = {False: "the state of a masked piece", True: "the state before the next piece"}


def describe(folder, was_causal, is_causal, complete_for=None):
    """Describes how a model begins with another one."""
    write_json(str(folder / "albert_config.json"), tiny_config(is_causal=was_causal).to_dict())
    model = types.SimpleNamespace(config=tiny_config(is_causal=is_causal), masked_lm_head=object())
    return describe_alignment(str(folder), model, [], complete_for)


@pytest.mark.parametrize(("then", "now"), itertools.product(STATES, repeat=2))
def test_head_that_reads_another_state_is_told(tmp_path, then, now):
    told = f"has learnt to read {STATES[then]}, and learns now to read {STATES[now]}"
    expected = f"initial checkpoint: its masked-LM head {told}" if then != now else None
    assert describe(tmp_path, then, now) == expected


def test_head_that_reads_another_state_is_not_used_as_it_is(tmp_path):
    with pytest.raises(InputError) as error:
        describe(tmp_path, False, True, "run")
    assert str(error.value) == (
        f"`output_dir=run` holds no run, and the head in `init_checkpoint={tmp_path}` reads {STATES[False]}, where "
        f"this model reads {STATES[True]}; check is_causal in `albert_config_file`, or pass `do_train`"
    )


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
