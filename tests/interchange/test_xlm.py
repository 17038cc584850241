"""XLM of transformers: the same numbers with its languages, causal or not, and bit-equal round trips."""

import numpy as np
import pytest
import tensorflow as tf
from huggingface_conversion import assert_goes_back, assert_refused, randomized, relative_difference, torch_inputs
from random_models import config_in, random_inputs

from albert_tf import modeling

pytestmark = pytest.mark.slow

XLM = {
    "vocab_size": 30,
    "emb_dim": 32,
    "n_layers": 3,
    "n_heads": 4,
    "n_langs": 2,
    "max_position_embeddings": 16,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "pad_token_id": 0,
}


def xlm(transformers, **changes):
    return randomized(transformers.XLMWithLMHeadModel(transformers.XLMConfig(**{**XLM, **changes})))


@pytest.mark.parametrize(
    "changes", [{}, {"causal": True, "n_langs": 1}, {"gelu_activation": False, "use_lang_emb": False}], ids=str
)
def test_models_compute_the_same_and_go_out_again_with_the_same_bits(transformers, tmp_path, changes):
    import torch

    theirs = xlm(transformers, **changes)
    keys = ("model_type", "emb_dim", "causal", "gelu_activation", "layer_norm_eps", "dropout")
    assert_goes_back(theirs, tmp_path, keys)

    config = config_in(tmp_path / "ours")
    has_languages = config.num_languages > 0
    assert has_languages == (not {"n_langs", "use_lang_emb"} & changes.keys())
    assert config.is_causal == changes.get("causal", False) and config.language_model_head == "tied_bias"
    ours = modeling.AlbertForPreTraining.from_pretrained(tmp_path / "ours", verbose=False)
    inputs = random_inputs()
    ids, mask, langs = (inputs[name].numpy() for name in ("input_ids", "input_mask", "segment_ids"))
    given = torch_inputs(inputs)
    given["langs"] = given.pop("token_type_ids")
    with torch.no_grad():
        expected = theirs.double()(**given, output_hidden_states=True)
    languages = {"langs": tf.constant(langs)} if has_languages else {}
    computed = ours({"input_ids": ids, "input_mask": mask, **languages}, output_hidden_states=True)
    # There every state of padding is 0.
    for found, theirs_of_layer in zip(computed["hidden_states"], expected.hidden_states, strict=True):
        np.testing.assert_allclose(found.numpy() * mask[..., None], theirs_of_layer.numpy(), atol=2e-5)
    is_piece = mask == 1
    assert relative_difference(computed["masked_lm_logits"].numpy()[is_piece], expected.logits[is_piece]) < 1e-5


@pytest.mark.parametrize(
    ("changes", "file", "message"),
    [
        (
            {},
            "vocab.json",
            "vocab.json is of a BPE tokenizer, which albert_tf doesn't have; only an XLM with WordPieces",
        ),
        ({"asm": True}, None, "asm=True is not supported: models of albert_tf compute only asm=False"),
    ],
)
def test_what_is_not_ours_is_one_sentence(transformers, tmp_path, changes, file, message):
    assert_refused(xlm(transformers, n_layers=1), tmp_path, message, file, **changes)
