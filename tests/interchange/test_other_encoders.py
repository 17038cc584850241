"""Encoders of transformers beside ALBERT, BERT and DeBERTa: the same numbers and gradients, bit-equal round trips.

Their side computes in float64. Ours is float32, whose products of at most 64 terms in 3 layers agree with that to about
64 x 3 x 2^-24 = 1e-5 of a gradient.
"""

import numpy as np
import pytest
import tensorflow as tf
from huggingface_conversion import (
    assert_goes_back,
    edit_config,
    randomized,
    relative_difference,
    to_ours,
    to_theirs,
    torch_inputs,
)
from random_models import OUR_CLASSES, config_in, read_variables, write_ours
from tiny_config import tiny_config

from albert_tf import modeling
from albert_tf.base.errors import InputError
from albert_tf.interchange.families import family_named
from albert_tf.modeling.layers import named_variables
from albert_tf.tokenization import KoreanWordPieceTokenizer, Vocabulary
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS

SIZES = {"vocab_size": 40, "num_hidden_layers": 3, "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 48}
# The shapes of Korean models, made small: KLUE-RoBERTa and XLM-R (PAD 1), RoBERTa with PAD 0, KoELECTRA-small (E < H),
# KoELECTRA-base (E = H), DistilKoBERT (three layers).
MODELS = {
    "roberta": ("Roberta", {"type_vocab_size": 1, "max_position_embeddings": 18, "pad_token_id": 1, **SIZES}),
    "roberta, pad 0": ("Roberta", {"type_vocab_size": 1, "max_position_embeddings": 17, "pad_token_id": 0, **SIZES}),
    "xlm-roberta": ("XLMRoberta", {"type_vocab_size": 1, "max_position_embeddings": 18, "pad_token_id": 1, **SIZES}),
    "electra": ("Electra", {"embedding_size": 16, "max_position_embeddings": 16, **SIZES}),
    "electra, wide": ("Electra", {"embedding_size": 32, "max_position_embeddings": 16, **SIZES}),
    "distilbert": (
        "DistilBert",
        {"vocab_size": 40, "n_layers": 3, "dim": 32, "n_heads": 4, "hidden_dim": 48, "max_position_embeddings": 16},
    ),
}
# Of each of their classes our task, and our output and theirs.
HEADS = {
    "ForMaskedLM": (None, "masked_lm_logits", "logits"),
    "ForSequenceClassification": ("classify", "logits", "logits"),
    "ForTokenClassification": ("tag", "logits", "logits"),
    "ForQuestionAnswering": ("squad", "end_logits", "end_logits"),
    "ForMultipleChoice": ("race", "logits", "logits"),
}


def their_model(transformers, name, class_name):
    family, sizes = MODELS[name]
    config = getattr(transformers, f"{family}Config")(**sizes)
    config.num_labels = 2 if class_name == "ForQuestionAnswering" else 3
    return randomized(getattr(transformers, f"{family}{class_name}")(config))


def inputs_for(name, task):
    """Pairs of three lengths, padded with the model's own [PAD]."""
    pad = MODELS[name][1].get("pad_token_id", 0)
    random, lengths, place = np.random.default_rng(2), np.array([[12], [7], [4]]), np.arange(12)
    ids = random.integers(5, 40, [3, 12])
    values = {
        "input_ids": np.where(place < lengths, ids, pad),
        "input_mask": place < lengths,
        "segment_ids": (lengths // 2 <= place) & (place < lengths),
    }
    if task == "race":
        values = {key: np.stack([value, np.roll(value, 1, axis=0)], 1) for key, value in values.items()}
    return {key: value.astype(np.int32) for key, value in values.items()}


def run_theirs(theirs, inputs, name):
    """Returns their outputs, computed in float64; models without segments are given none, as KLUE's code does."""
    given = torch_inputs(inputs)
    if not name.startswith("electra"):
        del given["token_type_ids"]
    return theirs.double()(**given)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "class_name"),
    [
        *(("roberta", class_name) for class_name in HEADS),
        *((name, "ForMaskedLM") for name in MODELS if name != "roberta"),
        *(("electra", class_name) for class_name in ("ForSequenceClassification", "ForMultipleChoice")),
        *(("distilbert", class_name) for class_name in ("ForSequenceClassification", "ForQuestionAnswering")),
    ],
)
def test_their_models_compute_and_learn_the_same_here_and_go_out_again(transformers, tmp_path, name, class_name):
    theirs, (task, our_name, their_name) = their_model(transformers, name, class_name), HEADS[class_name]
    keys = ("model_type", "pad_token_id", "max_position_embeddings", "hidden_act", "activation", "layer_norm_eps")
    assert_goes_back(theirs, tmp_path, keys, task=task)
    ours = OUR_CLASSES[task].from_pretrained(tmp_path / "ours", verbose=False)
    inputs = inputs_for(name, task)
    expected = run_theirs(theirs, inputs, name)[their_name]
    kept = inputs["input_mask"] if task in (None, "tag", "squad") else np.ones([3, expected.shape[1]])
    kept = kept.reshape(*kept.shape, *[1] * (expected.ndim - 2))
    weights = kept * np.random.default_rng(3).normal(size=expected.shape)
    with tf.GradientTape() as tape:
        found = ours({key: tf.constant(value) for key, value in inputs.items()})[our_name]
        loss = tf.reduce_sum(found * tf.constant(weights, tf.float32))
    assert relative_difference(found.numpy() * kept, expected.detach().numpy() * kept) < 1e-4
    (expected * expected.new_tensor(weights)).sum().backward()
    table = named_variables(ours)["encoder/embeddings/word_embeddings"]
    gradient = tf.convert_to_tensor(tape.gradient(loss, table))
    assert relative_difference(gradient, theirs.get_input_embeddings().weight.grad) < 1e-4


def test_pooler_that_is_there_stays_and_none_is_made_up(transformers, tmp_path):
    for has_pooler in (True, False):
        folder = tmp_path / str(has_pooler)
        config = transformers.RobertaConfig(**MODELS["roberta"][1])
        theirs = randomized(transformers.RobertaModel(config, add_pooling_layer=has_pooler))
        theirs.save_pretrained(folder / "theirs")
        to_ours(folder / "theirs", folder / "ours")
        assert config_in(folder / "ours").pooler is has_pooler
        to_theirs(folder / "ours", folder / "back")
        _, report = transformers.RobertaModel.from_pretrained(
            folder / "back", add_pooling_layer=has_pooler, output_loading_info=True
        )
        assert not report["missing_keys"] and not report["unexpected_keys"]


def test_discriminator_of_electra_scores_pieces_alike_and_goes_out_again(transformers, tmp_path):
    theirs = their_model(transformers, "electra", "ForPreTraining")
    theirs.save_pretrained(tmp_path / "theirs")
    sentences = to_ours(tmp_path / "theirs", tmp_path / "ours")
    assert not any("left" in sentence for sentence in sentences)
    ours = modeling.AlbertForReplacedTokens.from_pretrained(tmp_path / "ours", verbose=False)
    inputs = inputs_for("electra", None)
    found = ours({key: tf.constant(value) for key, value in inputs.items()})["replaced_token_logits"].numpy()
    expected = run_theirs(theirs, inputs, "electra").logits
    is_piece = inputs["input_mask"] > 0
    assert relative_difference(found[is_piece], expected[is_piece]) < 1e-5
    assert any("ElectraForPreTraining" in sentence for sentence in to_theirs(tmp_path / "ours", tmp_path / "back"))
    again, report = transformers.ElectraForPreTraining.from_pretrained(tmp_path / "back", output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"]
    before = {key: value.float() for key, value in theirs.state_dict().items()}
    assert all((value == before[key]).all() for key, value in again.state_dict().items())


def test_generator_is_an_encoder_and_neither_network_is_taken_for_the_other(transformers, tmp_path):
    networks = {"ElectraForPreTraining": "discriminator", "ElectraForMaskedLM": "generator"}
    for class_name, network in networks.items():
        their_model(transformers, "electra", class_name.removeprefix("Electra")).save_pretrained(tmp_path / network)
    sentences = to_ours(tmp_path / "generator", tmp_path / "ours")
    assert any(sentence.startswith("it is the generator of an ELECTRA") for sentence in sentences)
    for (class_name, meant), network in zip(networks.items(), ("generator", "discriminator")):
        edit_config(tmp_path / network, architectures=[class_name])
        with pytest.raises(InputError, match=f"{class_name} is a {meant} of ELECTRA, and .* holds a {network}"):
            to_ours(tmp_path / network, tmp_path / "nothing")


@pytest.mark.slow
def test_head_without_word_of_its_task_is_left_with_advice_and_kept_where_that_is_given(transformers, tmp_path):
    for class_name, expected in (("ForTokenClassification", "tag"), ("ForSequenceClassification", "classify")):
        folder = tmp_path / class_name
        their_model(transformers, "roberta", class_name).save_pretrained(folder / "theirs")
        edit_config(folder / "theirs", architectures=None)
        sentences = to_ours(folder / "theirs", folder / "ours")
        assert any("set `task` to say so" in sentence or ": head" in sentence for sentence in sentences), sentences
        to_ours(folder / "theirs", folder / "named", task=expected)
        OUR_CLASSES[expected].from_pretrained(folder / "named", verbose=False)
        assert ("head/transform/kernel" in read_variables(folder / "named")) is (expected == "classify")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("roberta", {"hidden_act": "relu"}, "hidden_act=relu of model_type=roberta, whose masked-LM head has GELU"),
        (
            "electra",
            {"summary_activation": "tanh"},
            "summary_activation=tanh is not supported: models of albert_tf compute",
        ),
    ],
)
def test_activation_that_they_have_elsewhere_is_refused(transformers, tmp_path, name, changes, message):
    their_model(transformers, name, "ForMaskedLM").save_pretrained(tmp_path / "theirs")
    edit_config(tmp_path / "theirs", **changes)
    with pytest.raises(InputError, match=message):
        to_ours(tmp_path / "theirs", tmp_path / "ours")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["roberta", "electra"])
def test_tokenizer_gives_the_model_what_it_has_embeddings_for(transformers, tmp_path, name):
    """A RoBERTa that reads pairs of a tokenizer as BERT's looks for a second row of segments, which it lacks."""
    first = ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"] if name == "roberta" else SPECIAL_TOKENS
    tokenizer = KoreanWordPieceTokenizer(Vocabulary([*first, "나", "##는", *(f"##{number}" for number in range(23))]))
    config = {"num_hidden_layers": 2, "embedding_size": 16, **family_named(name).always, "hidden_act": "gelu_erf"}
    config |= {"position_offset": 2, "type_vocab_size": 1} if name == "roberta" else {}
    folder, _ = write_ours(tmp_path / "ours", tiny_config(**config), None, tokenizer)
    to_theirs(folder, tmp_path / "theirs")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    inputs = theirs("나는", "나", return_tensors="pt")
    assert ("token_type_ids" in inputs) is (name == "electra")
    assert transformers.AutoModel.from_pretrained(tmp_path / "theirs")(**inputs).last_hidden_state.shape == (1, 6, 16)
