"""GPT-2 of transformers, and BERT as a decoder: the same numbers, bit-equal round trips, one sentence where not."""

import numpy as np
import pytest
import tensorflow as tf
from huggingface_conversion import assert_goes_back, assert_refused, randomized, to_ours, to_theirs
from random_models import config_in, random_inputs, write_ours
from tiny_config import tiny_config

from albert_tf import modeling
from albert_tf.base.errors import InputError
from albert_tf.interchange.conversion import convert_checkpoint
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


def assert_same_logits(ours, theirs):
    import torch

    inputs = random_inputs()
    ids, mask = (torch.tensor(inputs[name].numpy()).long() for name in ("input_ids", "input_mask"))
    with torch.no_grad():
        expected = theirs.double()(input_ids=ids, attention_mask=mask).logits.numpy()
    found = ours({name: inputs[name] for name in ("input_ids", "input_mask")})["masked_lm_logits"].numpy()
    is_piece = inputs["input_mask"].numpy() == 1
    difference = np.linalg.norm(found[is_piece] - expected[is_piece]) / np.linalg.norm(expected[is_piece])
    assert difference < 1e-5
    return expected


@pytest.mark.slow
@pytest.mark.parametrize("make", [gpt2, bert_decoder])
def test_models_compute_the_same_and_go_out_again_with_the_same_bits(transformers, tmp_path, make):
    theirs = make(transformers)
    keys = ("model_type", "is_decoder", "n_embd", "activation_function", "layer_norm_epsilon", "embd_pdrop")
    assert_goes_back(theirs, tmp_path, keys)
    config = config_in(tmp_path / "ours")
    assert config.is_causal and not config.pooler and config.intermediate_size == (128 if make is gpt2 else 48)
    ours = modeling.AlbertForPreTraining.from_pretrained(tmp_path / "ours", verbose=False)
    expected = assert_same_logits(ours, theirs)
    # A model that sees what comes next gives other numbers.
    seeing = modeling.AlbertForPreTraining.from_pretrained(
        tmp_path / "ours", verbose=False, config=config.replace(is_causal=False)
    )
    inputs = random_inputs()
    found = seeing({name: inputs[name] for name in ("input_ids", "input_mask")})["masked_lm_logits"]
    assert np.abs(found - expected)[:, 0].max() > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("make", [gpt2, bert_decoder])
def test_states_loss_and_gradients_are_those_of_transformers(transformers, tmp_path, make):
    import torch

    theirs = make(transformers)
    theirs.save_pretrained(tmp_path / "theirs")
    to_ours(tmp_path / "theirs", tmp_path / "ours")
    ours = modeling.AlbertForPreTraining.from_pretrained(tmp_path / "ours", verbose=False)
    objective, inputs = make_objective("causal", ours.config), random_inputs()
    records = {**inputs, "segment_ids": tf.zeros_like(inputs["input_ids"]), "num_characters": tf.ones([3, 1], tf.int32)}
    batch = objective.prepare(records, tf.constant([0, 0], tf.int64))
    ids, mask = (torch.tensor(inputs[name].numpy()).long() for name in ("input_ids", "input_mask"))
    # They predict what comes next from these, which are shifted in there.
    labels = ids.masked_fill(mask == 0, -100)
    expected = theirs(input_ids=ids, attention_mask=mask, labels=labels, output_hidden_states=True)
    expected.loss.backward()
    with tf.GradientTape() as tape:
        total, weight = objective.compute(batch, False, None, model=ours)["causal_lm_loss"]
        loss = total / weight
    gradient = tf.convert_to_tensor(tape.gradient(loss, named_variables(ours)["encoder/embeddings/word_embeddings"]))
    of_theirs = theirs.get_input_embeddings().weight.grad.numpy()
    np.testing.assert_allclose(gradient, of_theirs, rtol=1e-4, atol=1e-5)
    assert float(loss) == pytest.approx(expected.loss.item(), rel=1e-5)
    is_piece = mask.numpy() == 1
    states = ours({name: inputs[name] for name in ("input_ids", "input_mask")}, output_hidden_states=True)
    for found, other in zip(states["hidden_states"], expected.hidden_states, strict=True):
        np.testing.assert_allclose(found.numpy()[is_piece], other.detach().numpy()[is_piece], rtol=1e-4, atol=1e-4)
    # Labels that are shifted twice, as two libraries would do it, are another loss.
    shifted = theirs(input_ids=ids, attention_mask=mask, labels=torch.roll(labels, -1, dims=1)).loss.item()
    assert abs(shifted / float(loss) - 1) > 1e-3  # a hundred times as far off as may be


@pytest.mark.slow
@pytest.mark.parametrize(("class_name", "task"), [("TokenClassification", "tag"), ("QuestionAnswering", "squad")])
def test_heads_go_both_ways(transformers, tmp_path, class_name, task):
    theirs = gpt2(transformers, f"GPT2For{class_name}", num_labels=3 if task == "tag" else 2)
    theirs.save_pretrained(tmp_path / "theirs")
    to_ours(tmp_path / "theirs", tmp_path / "ours")
    to_theirs(tmp_path / "ours", tmp_path / "back", task=task)
    again = type(theirs).from_pretrained(tmp_path / "back")
    for key, value in theirs.state_dict().items():
        np.testing.assert_array_equal(again.state_dict()[key].numpy(), value.numpy(), err_msg=key)


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
    ours = modeling.AlbertForPreTraining.from_pretrained(tmp_path / "ours", verbose=False)
    assert_same_logits(ours, theirs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "file", "message"),
    [
        ({}, "merges.txt", "merges.txt is of a byte-level BPE tokenizer, which albert_tf doesn't have; only a"),
        ({"embd_pdrop": 0.3}, None, "embd_pdrop=0.3 and resid_pdrop=0.1 must be equal"),
        (
            {"scale_attn_by_inverse_layer_idx": True},
            None,
            "scale_attn_by_inverse_layer_idx=True is not supported: models of",
        ),
        ({"add_cross_attention": True}, None, "add_cross_attention=True is not supported: models of albert_tf compute"),
    ],
)
def test_what_is_not_ours_is_one_sentence(transformers, tmp_path, changes, file, message):
    assert_refused(gpt2(transformers, n_layer=1), tmp_path, message, file, **changes)


@pytest.mark.parametrize(
    ("changes", "target", "message"),
    [
        ({}, "huggingface", "can't express is_causal=true"),
        (
            {"embedding_size": 16, "sharing": "none", "norm_position": "pre"},
            "huggingface",
            "can't express norm_position=",
        ),
        ({"embedding_size": 16, "sharing": "none"}, "google", "can't express is_causal=true"),
    ],
)
def test_causal_models_that_a_format_lacks_are_refused(tmp_path, changes, target, message):
    folder, _ = write_ours(tmp_path / "ours", tiny_config(is_causal=True, **changes))
    with pytest.raises(InputError, match=message):
        convert_checkpoint("albert_tf", target, folder, str(tmp_path / "theirs"))
