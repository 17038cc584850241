"""Models from the folder of a run, without flags."""

import json

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.base.checkpoint_files import named_newest, resolve_checkpoint, write_checkpoint
from albert_tf.base.errors import InputError
from albert_tf.modeling import (
    AlbertEncoder,
    AlbertForMultipleChoice,
    AlbertForPreTraining,
    AlbertForQuestionAnswering,
    AlbertForSequenceClassification,
    AlbertForTokenClassification,
)
from albert_tf.modeling.layers import named_variables
from albert_tf.modeling.pretrained import read_config


def write_run(folder, model, step=5, averages=None):
    """Writes what a run leaves of a model."""
    folder.mkdir(exist_ok=True)
    (folder / "albert_config.json").write_text(json.dumps(model.config.to_dict()))
    variables = {f"model/{name}": variable for name, variable in named_variables(model).items()}
    averaged = {f"averages/{name}": value for name, value in (averages or {}).items()}
    write_checkpoint(str(folder / f"model.ckpt-{step}"), {**variables, **averaged, "global_step": tf.Variable(step)})
    return folder


@pytest.fixture
def pretrained(tiny_config, randomized, tmp_path):
    """A model for pre-training and the folder of its run, in which an older checkpoint lies, too."""
    write_run(tmp_path / "run", AlbertForPreTraining(tiny_config), step=4)
    model = randomized(AlbertForPreTraining(tiny_config))
    return model, write_run(tmp_path / "run", model)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "options", "new"),
    [
        (AlbertEncoder, {}, None),
        (AlbertForPreTraining, {}, None),
        (AlbertForTokenClassification, {"num_labels": 3, "remat": "block"}, "head"),
        (AlbertForQuestionAnswering, {"dtype": "mixed_bfloat16"}, "head"),
        (AlbertForMultipleChoice, {"attention": "plain"}, "head"),
    ],
)
def test_every_model_starts_from_a_pretraining_run(pretrained, batch, capsys, make, options, new):
    trained, folder = pretrained
    model = make.from_pretrained(folder, **options)
    encoder = model if make is AlbertEncoder else model.encoder
    for name, variable in named_variables(encoder).items():
        np.testing.assert_array_equal(variable, named_variables(trained.encoder)[name], err_msg=name)
    assert {name: model.get_config()[name] for name in options if name != "dtype"} == {
        name: value for name, value in options.items() if name != "dtype"
    }
    assert encoder.compute_dtype == ("bfloat16" if "dtype" in options else "float32")
    sentence = capsys.readouterr().out
    assert sentence.startswith(f"{make.__name__}: ") and sentence.count("\n") == 1
    assert f" variables from {folder}/model.ckpt-5" in sentence
    assert ("newly initialized: head" in sentence) is (new is not None)
    assert ("not used: masked_lm_head, sentence_order_head" in sentence) is (make is not AlbertForPreTraining)


def test_head_of_a_finetuned_run_is_loaded_with_its_number_of_labels(tiny_config, randomized, batch, tmp_path, capsys):
    trained = randomized(AlbertForSequenceClassification(tiny_config, 5))
    folder = write_run(tmp_path / "run", trained)
    model = AlbertForSequenceClassification.from_pretrained(f"{folder}/model.ckpt-5", verbose=False)
    np.testing.assert_array_equal(model(batch)["logits"], trained(batch)["logits"])
    assert capsys.readouterr().out == ""


def test_averaged_weights_are_preferred(tiny_config, randomized, tmp_path, capsys):
    averages = named_variables(randomized(AlbertForQuestionAnswering(tiny_config)))
    folder = write_run(tmp_path / "run", AlbertForQuestionAnswering(tiny_config), averages=averages)
    model = AlbertForQuestionAnswering.from_pretrained(folder)
    for name, variable in named_variables(model).items():
        np.testing.assert_array_equal(variable, averages[name], err_msg=name)
    assert "(averaged weights)" in capsys.readouterr().out


def test_another_config_may_be_given(pretrained, tiny_config):
    config = tiny_config.replace(hidden_dropout_prob=0.1)
    assert AlbertEncoder.from_pretrained(pretrained[1], config=config).config == config


def refusal(function, *arguments, **options):
    """Returns the sentence in which it is refused."""
    with pytest.raises(InputError) as error:
        function(*arguments, **options)
    message = str(error.value)
    assert "\n" not in message and "init_checkpoint" not in message
    return message


def test_what_is_wrong_is_said_in_a_sentence(pretrained, tiny_config, tmp_path):
    folder, load = pretrained[1], AlbertEncoder.from_pretrained
    message = refusal(load, tmp_path / "missing")
    assert "AlbertEncoder.from_pretrained: no checkpoint at " in message and "missing" in message
    message = refusal(AlbertForTokenClassification.from_pretrained, folder)
    assert "model.ckpt-5 has no head" in message and "pass num_labels" in message
    message = refusal(load, folder, config=tiny_config.replace(intermediate_size=8))
    assert "intermediate/kernel has shape [16, 32] in " in message and "[16, 8] in this model" in message
    (folder / "albert_config.json").unlink()
    assert f"no albert_config.json in {folder}; " in refusal(load, folder)
    assert f"`teacher`: no albert_config.json in {folder}; " in refusal(read_config, str(folder), "`teacher`")
    write_checkpoint(str(tmp_path / "foreign"), {"weights": tf.Variable(1.0)})
    message = refusal(load, tmp_path / "foreign", config=tiny_config)
    assert "foreign has none of this model's variables" in message


def test_weights_that_are_no_numbers_are_refused(pretrained):
    model, folder = pretrained
    model.encoder.embeddings.word_embeddings.assign_add(tf.fill(model.encoder.embeddings.word_embeddings.shape, np.nan))
    write_run(folder, model)
    with pytest.raises(InputError, match=r"word_embeddings in .*model.ckpt-5 holds NaN or infinity, so training had"):
        AlbertForPreTraining.from_pretrained(folder)


@pytest.mark.parametrize("content", [b"", b"\xff garbage", b"not a state: {"])
def test_damaged_file_that_names_the_newest_names_none(tmp_path, content):
    (tmp_path / "checkpoint").write_bytes(content)
    assert named_newest(str(tmp_path)) is None and resolve_checkpoint(str(tmp_path)) is None
