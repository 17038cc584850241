"""Models of Hugging Face's transformers, in and out: the same numbers, bit-equal round trips."""

import numpy as np
import pytest
import tensorflow as tf
from huggingface_conversion import TINY_ALBERT, TINY_BERT, randomized, to_ours, to_theirs
from random_models import (
    CLASSES,
    CONFIGS,
    OUR_CLASSES,
    assert_same_variables,
    config_in,
    random_inputs,
    random_model,
    write_ours,
)
from tiny_config import tiny_config

from albert_tf import modeling
from albert_tf.base.errors import InputError
from albert_tf.interchange.conversion import convert_checkpoint


def torch_inputs(inputs, choices=0):
    import torch

    names = {"input_ids": "input_ids", "input_mask": "attention_mask", "segment_ids": "token_type_ids"}
    arrays = {theirs: inputs[ours].numpy() for ours, theirs in names.items()}
    if choices:
        arrays = {name: np.stack([array] * choices, 1) for name, array in arrays.items()}
    return {name: torch.tensor(array).long() for name, array in arrays.items()}


def assert_close(ours, theirs, name=""):
    np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-5, atol=1e-5, err_msg=name)


# Each of their classes, our task, and their output of each of ours.
HEADS = {
    "Model": (None, {"sequence_output": "last_hidden_state", "pooled_output": "pooler_output"}),
    "ForMaskedLM": (None, {"masked_lm_logits": "logits"}),
    "ForSequenceClassification": ("classify", {"logits": "logits"}),
    "ForTokenClassification": ("tag", {"logits": "logits"}),
    "ForQuestionAnswering": ("squad", {"start_logits": "start_logits", "end_logits": "end_logits"}),
    "ForMultipleChoice": ("race", {"logits": "logits"}),
}
PRE_TRAINING = {
    "Albert": {"masked_lm_logits": "prediction_logits", "sentence_order_logits": "sop_logits"},
    "Bert": {"masked_lm_logits": "prediction_logits", "sentence_order_logits": "seq_relationship_logits"},
}


def assert_same_numbers(ours, theirs, class_name, family):
    task, outputs = HEADS.get(class_name) or (None, PRE_TRAINING[family])
    inputs = random_inputs()
    if task == "race":
        our_inputs = {name: tf.stack([value] * 2, axis=1) for name, value in inputs.items()}
        found, expected = ours(our_inputs), theirs(**torch_inputs(inputs, choices=2))
    else:
        found, expected = ours(inputs), theirs(**torch_inputs(inputs))
    for our_name, their_name in outputs.items():
        assert_close(found[our_name], getattr(expected, their_name), our_name)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["Albert", "Bert"])
@pytest.mark.parametrize("class_name", [*HEADS, "ForPreTraining"])
def test_their_models_compute_the_same_here(transformers, tmp_path, family, class_name):
    config = getattr(transformers, f"{family}Config")(**(TINY_ALBERT if family == "Albert" else TINY_BERT))
    if class_name in ("ForSequenceClassification", "ForTokenClassification"):
        config.num_labels = 3
    theirs = randomized(getattr(transformers, f"{family}{class_name}")(config))
    theirs.save_pretrained(tmp_path / "theirs")
    sentences = to_ours(tmp_path / "theirs", tmp_path / "ours")
    task, _ = HEADS.get(class_name) or (None, None)
    ours = OUR_CLASSES[task].from_pretrained(tmp_path / "ours", verbose=False)
    assert_same_numbers(ours, theirs, class_name, family)
    assert not [sentence for sentence in sentences if "left" in sentence]


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "gelu_pytorch_tanh", "relu"])
def test_their_gelu_is_not_taken_for_ours(transformers, tmp_path, activation):
    config = transformers.AlbertConfig(**TINY_ALBERT, hidden_act=activation, num_hidden_groups=3, inner_group_num=2)
    theirs = randomized(transformers.AlbertForPreTraining(config))
    theirs.save_pretrained(tmp_path / "theirs")
    to_ours(tmp_path / "theirs", tmp_path / "ours")
    ours = modeling.AlbertForPreTraining.from_pretrained(tmp_path / "ours", verbose=False)
    assert_same_numbers(ours, theirs, "ForPreTraining", "Albert")


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
def test_our_models_compute_the_same_there_and_come_back_bit_by_bit(transformers, tmp_path, name):
    folder, ours = write_ours(tmp_path / "ours", CONFIGS[name])
    to_theirs(folder, tmp_path / "theirs")
    theirs, report = transformers.AutoModelForPreTraining.from_pretrained(tmp_path / "theirs", output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"] and not report["mismatched_keys"]
    assert_same_numbers(ours, theirs.eval(), "ForPreTraining", "Bert" if name == "bert" else "Albert")
    to_ours(tmp_path / "theirs", tmp_path / "back")
    assert_same_variables(tmp_path / "back", ours)
    theirs.save_pretrained(tmp_path / "saved again")
    to_ours(tmp_path / "saved again", tmp_path / "back again")
    assert_same_variables(tmp_path / "back again", ours)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["albert", "bert"])
@pytest.mark.parametrize("task", ["classify", "score", "tag", "squad", "race"])
def test_our_heads_compute_the_same_there_and_come_back_bit_by_bit(transformers, tmp_path, task, family):
    folder, ours = write_ours(tmp_path / "ours", CONFIGS[family], task)
    to_theirs(folder, tmp_path / "theirs", task=task)
    class_name = {**{kind: name for name, (kind, _) in HEADS.items()}, "score": "ForSequenceClassification"}[task]
    theirs = getattr(transformers, f"AutoModel{class_name}").from_pretrained(tmp_path / "theirs")
    assert_same_numbers(ours, theirs.eval(), class_name, family.capitalize())
    to_ours(tmp_path / "theirs", tmp_path / "back")
    assert_same_variables(tmp_path / "back", ours)


def test_fields_that_they_do_not_know_come_back(tmp_path):
    config = tiny_config(position_initializer="sinusoidal", classifier_pooling="mean", layer_norm_eps=1e-6)
    folder, _ = write_ours(tmp_path / "ours", config)
    to_theirs(folder, tmp_path / "theirs")
    to_ours(tmp_path / "theirs", tmp_path / "back")
    assert config_in(tmp_path / "back") == config


def test_heads_come_back_without_their_library(tmp_path):
    for task in ("classify", "tag", "squad", "race", None):
        folder, ours = write_ours(tmp_path / f"ours {task}", CONFIGS["albert"], task)
        to_theirs(folder, tmp_path / f"theirs {task}", task=task)
        to_ours(tmp_path / f"theirs {task}", tmp_path / f"back {task}")
        assert_same_variables(tmp_path / f"back {task}", ours)


def test_head_that_they_do_not_have_is_left_and_named(tmp_path):
    folder, ours = write_ours(tmp_path / "ours", CONFIGS["albert"], "squad_v2")
    sentences = to_theirs(folder, tmp_path / "theirs")
    assert "left, because the format has no place for it: head" in sentences
    to_ours(tmp_path / "theirs", tmp_path / "back")
    assert_same_variables(tmp_path / "back", ours, but=("head/",))


def test_head_whose_task_nobody_knows_is_asked_for(tmp_path):
    folder, _ = write_ours(tmp_path / "ours", CONFIGS["albert"], "classify")
    with pytest.raises(InputError, match="does not say what its head is for; set `task` to say so"):
        to_theirs(folder, tmp_path / "theirs")


@pytest.mark.parametrize("sharing", ["attention", "ffn"])
def test_sharing_of_one_part_can_not_be_said(tmp_path, sharing):
    folder, _ = write_ours(tmp_path / "ours", tiny_config(num_hidden_layers=2, sharing=sharing))
    with pytest.raises(InputError, match=f"`to=huggingface` can't express sharing={sharing}"):
        to_theirs(folder, tmp_path / "theirs")


@pytest.mark.parametrize("target", ["huggingface", "google", "keras_hub"])
def test_models_that_see_one_side_can_not_be_said(tmp_path, target):
    folder, _ = write_ours(tmp_path / "ours", CONFIGS["albert"].replace(is_causal=True))
    with pytest.raises(InputError, match=f"`to={target}` can't express is_causal=true"):
        convert_checkpoint("albert_tf", target, folder, str(tmp_path / "theirs"))


def test_random_models_differ_in_every_variable():
    """What the comparisons rest on: no two variables of a model are the same by accident."""
    model = random_model(CONFIGS["albert"])
    sums = [float(np.sum(value)) for value in model.get_weights()]
    assert len(set(sums)) == len(sums) and set(CLASSES) >= set(OUR_CLASSES)
