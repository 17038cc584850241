"""GPT-2 of transformers, and BERT as a decoder: the same numbers, bit-equal round trips, one sentence where not."""

import numpy as np
import pytest
import tensorflow as tf
from huggingface_conversion import (
    assert_goes_back,
    assert_refused,
    randomized,
    relative_difference,
    to_ours,
    torch_inputs,
)
from random_models import random_inputs

from albert_tf import modeling
from albert_tf.interchange.huggingface import read_safetensors
from albert_tf.modeling.layers import named_variables
from albert_tf.objectives import make_objective

GPT2 = {"vocab_size": 30, "n_positions": 16, "n_embd": 32, "n_layer": 3, "n_head": 4}
BERT = {
    "vocab_size": 30,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 16,
    "is_decoder": True,
}


def gpt2(transformers, class_name="GPT2LMHeadModel", **changes):
    config = transformers.GPT2Config(**{**GPT2, **changes})
    return randomized(getattr(transformers, class_name)(config))


def bert_decoder(transformers):
    return randomized(transformers.BertLMHeadModel(transformers.BertConfig(**BERT)))


def texts_of_ours():
    inputs = random_inputs()
    return {name: inputs[name] for name in ("input_ids", "input_mask")}


@pytest.mark.slow
@pytest.mark.parametrize("make", [gpt2, bert_decoder])
def test_models_compute_and_learn_the_same_and_go_out_again_with_the_same_bits(transformers, tmp_path, make):
    theirs = make(transformers)
    keys = ("model_type", "is_decoder", "n_embd", "activation_function", "layer_norm_epsilon", "embd_pdrop")
    assert_goes_back(theirs, tmp_path, keys)
    ours = modeling.AlbertForPreTraining.from_pretrained(tmp_path / "ours", verbose=False)
    config = ours.config
    assert config.is_causal and not config.pooler and config.intermediate_size == (128 if make is gpt2 else 48)
    objective, inputs = make_objective("causal", config), texts_of_ours()
    records = {**inputs, "segment_ids": tf.zeros_like(inputs["input_ids"]), "num_characters": tf.ones([3, 1], tf.int32)}
    batch = objective.prepare(records, tf.constant([0, 0], tf.int64))
    given = torch_inputs(inputs)
    # They predict what comes next from these, which are shifted in there.
    labels = given["input_ids"].masked_fill(given["attention_mask"] == 0, -100)
    expected = theirs.double()(**given, labels=labels, output_hidden_states=True)
    expected.loss.backward()
    with tf.GradientTape() as tape:
        total, weight = objective.compute(batch, False, None, model=ours)["causal_lm_loss"]
        loss = total / weight
    assert float(loss) == pytest.approx(expected.loss.item(), rel=1e-5)
    gradient = tf.convert_to_tensor(tape.gradient(loss, named_variables(ours)["encoder/embeddings/word_embeddings"]))
    assert relative_difference(gradient, theirs.get_input_embeddings().weight.grad) < 1e-4
    computed, is_piece = ours(inputs, output_hidden_states=True), inputs["input_mask"].numpy() == 1
    found = [computed["masked_lm_logits"], *computed["hidden_states"]]
    for mine, other in zip(found, [expected.logits, *expected.hidden_states], strict=True):
        assert relative_difference(mine.numpy()[is_piece], other[is_piece]) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(("class_name", "task"), [("TokenClassification", "tag"), ("QuestionAnswering", "squad")])
def test_heads_go_both_ways(transformers, tmp_path, class_name, task):
    theirs = gpt2(transformers, f"GPT2For{class_name}", num_labels=3 if task == "tag" else 2, n_layer=1)
    assert_goes_back(theirs, tmp_path, (), task=task)


@pytest.mark.slow
def test_names_of_the_first_checkpoints_are_known(transformers, tmp_path):
    """Without a prefix, and with the mask of each layer as a buffer."""
    from safetensors.numpy import save_file

    theirs = gpt2(transformers)
    theirs.save_pretrained(tmp_path / "theirs")
    file = tmp_path / "theirs" / "model.safetensors"
    weights = {name.removeprefix("transformer."): each.read() for name, each in read_safetensors(str(file)).items()}
    buffers = {f"h.{number}.attn.bias": np.tril(np.ones([1, 1, 16, 16], np.float32)) for number in range(3)}
    save_file({**weights, **buffers}, file)
    sentences = to_ours(tmp_path / "theirs", tmp_path / "ours")
    assert any("it follows from the config: " in each and "h.2.attn.bias" in each for each in sentences)
    found = modeling.AlbertForPreTraining.from_pretrained(tmp_path / "ours", verbose=False)(texts_of_ours())
    expected = theirs(**torch_inputs(texts_of_ours())).logits
    is_piece = texts_of_ours()["input_mask"].numpy() == 1
    assert relative_difference(found["masked_lm_logits"].numpy()[is_piece], expected[is_piece]) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "file", "message"),
    [
        ({}, "merges.txt", "merges.txt is of a byte-level BPE tokenizer, which albert_tf doesn't have; only a"),
        ({"embd_pdrop": 0.3}, None, "embd_pdrop=0.3 and resid_pdrop=0.1 must be equal"),
        ({"add_cross_attention": True}, None, "add_cross_attention=True is not supported: models of albert_tf compute"),
    ],
)
def test_what_is_not_ours_is_one_sentence(transformers, tmp_path, changes, file, message):
    assert_refused(gpt2(transformers, n_layer=1), tmp_path, message, file, **changes)
