"""Models of Hugging Face's transformers, in and out: the same numbers, bit-equal round trips."""

import numpy as np
import pytest
import tensorflow as tf
from huggingface_conversion import TINY_ALBERT, TINY_BERT, randomized, to_ours, to_theirs, torch_inputs
from random_models import CONFIGS, OUR_CLASSES, assert_same_variables, random_inputs, write_ours

from albert_tf import modeling
from albert_tf.base.errors import InputError

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
        inputs = {name: tf.stack([value] * 2, axis=1) for name, value in inputs.items()}
    found, expected = ours(inputs), theirs(**torch_inputs(inputs))
    for our_name, their_name in outputs.items():
        theirs_of_it = expected[their_name].detach().numpy()
        np.testing.assert_allclose(found[our_name], theirs_of_it, rtol=1e-5, atol=1e-5, err_msg=our_name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "class_name"),
    [*(("Albert", name) for name in (*HEADS, "ForPreTraining")), ("Bert", "ForMaskedLM"), ("Bert", "ForPreTraining")],
)
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
@pytest.mark.parametrize("activation", ["gelu", "gelu_pytorch_tanh"])
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
@pytest.mark.parametrize(
    ("family", "task"),
    [*(("albert", task) for task in ("classify", "score", "tag", "squad", "race")), ("bert", "classify")],
)
def test_our_heads_compute_the_same_there_and_come_back_bit_by_bit(transformers, tmp_path, task, family):
    folder, ours = write_ours(tmp_path / "ours", CONFIGS[family], task)
    to_theirs(folder, tmp_path / "theirs", task=task)
    class_name = {**{kind: name for name, (kind, _) in HEADS.items()}, "score": "ForSequenceClassification"}[task]
    theirs = getattr(transformers, f"AutoModel{class_name}").from_pretrained(tmp_path / "theirs")
    assert_same_numbers(ours, theirs.eval(), class_name, family.capitalize())
    to_ours(tmp_path / "theirs", tmp_path / "back")
    assert_same_variables(tmp_path / "back", ours)


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
