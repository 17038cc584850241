"""DeBERTa-v2 and v3 of transformers: the same numbers in all classes, bit-equal round trips, and what is refused."""

import json
import pathlib
import re
import shutil

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from hostile_texts import draw_texts
from huggingface_conversion import (
    METASPACE,
    assert_goes_back,
    edit_config,
    randomized,
    to_ours,
    to_theirs,
    torch_inputs,
    unigram_json,
    write_word_pieces,
)
from random_models import assert_same_variables, config_in, write_ours
from sentencepiece_training import train_model

import albert_tf
from albert_tf import modeling
from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.interchange.huggingface import read_safetensors, write_safetensors
from albert_tf.interchange.portable_model import ReadOptions
from albert_tf.interchange.tokenizers.files import find_tokenizer
from albert_tf.interchange.tokenizers.sentencepiece import HUGGINGFACE
from albert_tf.tokenization import SentencePieceModel, load_tokenizer

ROOT = pathlib.Path(__file__).parents[2]

SIZES = {
    "vocab_size": 40,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 24,
    "position_buckets": -1,
    "share_att_key": False,
}
VERSION_3 = {
    **SIZES,
    "relative_attention": True,
    "pos_att_type": "p2c|c2p",
    "position_buckets": 6,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "position_biased_input": False,
}
# Version 3's shape and those that differ from it by what a config may say.
SHAPES = {
    "as version 3": VERSION_3,
    "keys and queries of its own": {**VERSION_3, "share_att_key": False, "pos_att_type": ["c2p", "p2c"]},
    "all distances, one term": {
        **SIZES,
        "relative_attention": True,
        "pos_att_type": "c2p",
        "max_relative_positions": 5,
    },
    "the other term": {
        **VERSION_3,
        "pos_att_type": ["p2c"],
        "share_att_key": False,
        "position_biased_input": True,
        "norm_rel_ebd": "layer_norm|none",
        "type_vocab_size": 2,
        "max_relative_positions": 11,
    },
    "no distances": {**SIZES, "type_vocab_size": 2, "pooler_hidden_act": "tanh", "hidden_act": "gelu_new"},
}
CLASSES = {
    "Model": (None, modeling.AlbertForPreTraining, "sequence_output", "last_hidden_state"),
    "ForMaskedLM": (None, modeling.AlbertForPreTraining, "masked_lm_logits", "logits"),
    "ForSequenceClassification": ("classify", modeling.AlbertForSequenceClassification, "logits", "logits"),
    "ForTokenClassification": ("tag", modeling.AlbertForTokenClassification, "logits", "logits"),
    "ForQuestionAnswering": ("squad", modeling.AlbertForQuestionAnswering, "end_logits", "end_logits"),
    "ForMultipleChoice": ("race", modeling.AlbertForMultipleChoice, "logits", "logits"),
}
KEYS = (
    *("model_type", "relative_attention", "position_buckets", "max_relative_positions", "share_att_key"),
    *("position_biased_input", "type_vocab_size", "layer_norm_eps", "hidden_act", "pooler_hidden_act"),
)


def their_model(transformers, class_name="ForMaskedLM", **settings):
    num_labels = 2 if class_name == "ForQuestionAnswering" else 3
    config = transformers.DebertaV2Config(**settings, num_labels=num_labels)
    return randomized(getattr(transformers, f"DebertaV2{class_name}")(config))


def make_inputs(length, num_segments, task=None):
    """Returns texts of three lengths, padded."""
    random, place = np.random.default_rng(length), np.arange(length)
    lengths = np.array([[length], [max(1, length - 3)], [(length + 1) // 2]])
    values = {
        "input_ids": random.integers(5, 40, [3, length]) * (place < lengths),
        "input_mask": place < lengths,
        "segment_ids": (lengths // 2 <= place) & (place < lengths) & (num_segments > 1),
    }
    if task == "race":
        values = {key: np.stack([value, np.roll(value, 1, axis=0)], 1) for key, value in values.items()}
    return {key: value.astype(np.int32) for key, value in values.items()}


def assert_same_outputs(theirs, folder, class_name, length):
    """Compares what a model of theirs computes with what the folder of ours does, where there are pieces."""
    task, ours, our_name, their_name = CLASSES[class_name]
    inputs = make_inputs(length, theirs.config.type_vocab_size, task)
    model = ours.from_pretrained(folder, verbose=False)
    found = model({key: tf.constant(value) for key, value in inputs.items()})[our_name].numpy()
    expected = theirs(**torch_inputs(inputs))[their_name].detach().numpy()
    is_read = inputs["input_mask"] > 0 if found.shape[1] == length and task != "race" else np.ones(found.shape, bool)
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(found[is_read] / scale, expected[is_read] / scale, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", SHAPES)
def test_encoder_and_head_compute_the_same_and_go_out_again_with_the_same_bits(transformers, tmp_path, name):
    theirs = their_model(transformers, **SHAPES[name])
    assert_goes_back(theirs, tmp_path, KEYS)
    for length in (1, 23):
        assert_same_outputs(theirs, tmp_path / "ours", "ForMaskedLM", length)


@pytest.mark.parametrize("class_name", [name for name in CLASSES if name != "ForMaskedLM"])
def test_every_class_computes_the_same_and_goes_out_again_with_the_same_bits(transformers, tmp_path, class_name):
    theirs = their_model(transformers, class_name, **VERSION_3)
    theirs.save_pretrained(tmp_path / "theirs")
    sentences = to_ours(tmp_path / "theirs", tmp_path / "ours")
    assert not [sentence for sentence in sentences if "no part" in sentence or "unknown" in sentence]
    assert_same_outputs(theirs, tmp_path / "ours", class_name, 11)
    task = CLASSES[class_name][0]
    sentences = to_theirs(tmp_path / "ours", tmp_path / "back", task=task)
    assert f"transformers knows it as DebertaV2{class_name}" in sentences
    before, after = (read_safetensors(str(tmp_path / name / "model.safetensors")) for name in ("theirs", "back"))
    without_prefix = {name.removeprefix("deberta."): weight for name, weight in before.items()}
    assert after.keys() == (without_prefix if class_name == "Model" else before).keys()
    for name, weight in after.items():
        np.testing.assert_array_equal(weight.read(), {**before, **without_prefix}[name].read(), err_msg=name)


def test_head_of_masked_lm_is_read_in_its_other_spelling_and_written_in_the_first(transformers, tmp_path):
    theirs = their_model(transformers, **VERSION_3, legacy=False)
    theirs.save_pretrained(tmp_path / "theirs")
    assert any(name.startswith("lm_predictions.lm_head.") for name in theirs.state_dict())
    to_ours(tmp_path / "theirs", tmp_path / "ours")
    assert_same_outputs(theirs, tmp_path / "ours", "ForMaskedLM", 9)
    to_theirs(tmp_path / "ours", tmp_path / "back")
    again, report = transformers.DebertaV2ForMaskedLM.from_pretrained(tmp_path / "back", output_loading_info=True)
    assert again.legacy and not report["missing_keys"] and not report["unexpected_keys"]
    inputs = torch_inputs(make_inputs(9, 0))
    assert (again(**inputs).logits == theirs(**inputs).logits).all()

    shutil.copytree(tmp_path / "theirs", tmp_path / "both")
    found = read_safetensors(str(tmp_path / "theirs" / "model.safetensors"))
    more = {"cls.predictions.bias": found["lm_predictions.lm_head.bias"]}
    write_safetensors(str(tmp_path / "both" / "model.safetensors"), {**found, **more})
    with pytest.raises(InputError, match=r"holds two heads of a masked language model, lm_predictions.lm_head.\* and"):
        to_ours(tmp_path / "both", tmp_path / "nothing")


def test_discriminator_of_version_3_is_an_encoder_whose_head_of_replaced_tokens_is_left(transformers, tmp_path):
    theirs = their_model(transformers, "Model", **VERSION_3)
    theirs.save_pretrained(tmp_path / "theirs")
    shutil.copytree(tmp_path / "theirs", tmp_path / "published")
    found = read_safetensors(str(tmp_path / "theirs" / "model.safetensors"))
    head = {"mask_predictions.classifier.weight": found["encoder.LayerNorm.weight"]}
    with_prefix = {f"deberta.{name}": weight for name, weight in found.items()}
    write_safetensors(str(tmp_path / "published" / "model.safetensors"), {**with_prefix, **head})
    edit_config(tmp_path / "published", architectures=None)
    sentences = to_ours(tmp_path / "published", tmp_path / "ours")
    assert "left, because it is no part of the model: mask_predictions.classifier.weight" in sentences
    assert_same_outputs(theirs, tmp_path / "ours", "Model", 7)


def test_what_is_not_ours_is_one_sentence(transformers, tmp_path):
    their_model(transformers, **VERSION_3).save_pretrained(tmp_path / "theirs")
    config = (tmp_path / "theirs" / "config.json").read_text()
    for changes, message in (
        ({"conv_kernel_size": 3}, "conv_kernel_size=3 is not supported: models of albert_tf compute only conv_kernel"),
        ({"embedding_size": 16}, "embedding_size=16 can't be converted: in models of model_type=deberta-v2 that"),
        ({"attention_head_size": 16}, "attention_head_size=16 can't be converted: .* it is 8, as hidden_size and num_"),
        ({"pooler_hidden_act": "silu"}, "pooler_hidden_act=silu can't be converted; gelu, tanh, relu can"),
        ({"pos_att_type": ["p2p"]}, r"pos_att_type=\['p2p'\] and relative_attention=True can't be converted"),
        ({"relative_attention": False}, "relative_attention=False can't be converted; true with p2c or c2p or both"),
        ({"position_buckets": 5}, "config.json: position_buckets must be even"),
        ({"norm_rel_ebd": 1}, "config.json: norm_rel_ebd must be a string"),
        ({"share_att_key": False}, "the variable .*pos_query_proj.* is missing"),
    ):
        edit_config(tmp_path / "theirs", **changes)
        with pytest.raises(InputError, match=message) as error:
            to_ours(tmp_path / "theirs", tmp_path / "ours")
        assert "\n" not in str(error.value) and not (tmp_path / "ours").exists()
        (tmp_path / "theirs" / "config.json").write_text(config)


def test_config_for_new_models_is_of_the_family(tmp_path):
    values = json.loads((ROOT / "configs" / "deberta_base.json").read_text())
    assert values["model_type"] == "deberta-v2"
    small = {"vocab_size": 30, "num_hidden_layers": 2, "hidden_size": 24, "embedding_size": 24, "intermediate_size": 16}
    folder, model = write_ours(tmp_path / "ours", AlbertConfig.from_dict({**values, **small}))
    to_theirs(folder, tmp_path / "theirs")
    to_ours(tmp_path / "theirs", tmp_path / "back")
    assert_same_variables(tmp_path / "back", model)
    assert config_in(tmp_path / "back") == model.config


def test_folder_with_word_pieces_answers_as_the_library(transformers, tmp_path, sample_tokenizer):
    import torch

    settings = {**VERSION_3, "vocab_size": len(sample_tokenizer), "pad_token_id": 0}
    theirs = their_model(transformers, **settings, legacy=False)
    theirs.save_pretrained(tmp_path / "theirs")
    write_word_pieces(tmp_path / "theirs", sample_tokenizer.vocabulary.pieces)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    texts = ["정말 [MASK] 영화", "이 영화는 [MASK]."]
    model = albert_tf.load(tmp_path / "theirs")
    for text, guesses in zip(texts, model.fill_mask(texts, top_k=3), strict=True):
        ids = tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            states = theirs(**ids, output_hidden_states=True)
        place = ids["input_ids"][0].tolist().index(tokenizer.mask_token_id)
        best = torch.softmax(states.logits[0, place], dim=-1).topk(3)
        assert [guess["piece"] for guess in guesses[0]] == tokenizer.convert_ids_to_tokens(best.indices)
        np.testing.assert_allclose([guess["probability"] for guess in guesses[0]], best.values, rtol=1e-5)
        mean = states.hidden_states[-1][0, 1:-1].mean(dim=0).numpy()
        np.testing.assert_allclose(model.encode([text], pooling="mean")[0], mean, rtol=1e-5, atol=1e-5)


IDS = {
    "pad_id": 0,
    "bos_id": 1,
    "eos_id": 2,
    "unk_id": 3,
    "control_symbols": "",
    "user_defined_symbols": "",
    "pad_piece": "[PAD]",
    "bos_piece": "[CLS]",
    "eos_piece": "[SEP]",
    "unk_piece": "[UNK]",
}


@pytest.fixture(scope="module")
def content(sample_lines):
    return train_model(sample_lines, 2500, **IDS, normalization_rule_name="nmt_nfkc")


def sentencepiece_ids(content, texts):
    """Returns the ids of DebertaV2Tokenizer of transformers in Python, version 4."""
    engine = sentencepiece.SentencePieceProcessor(model_proto=content)
    special = {"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "[UNK]": 3, "[MASK]": len(engine)}
    pattern = f"({'|'.join(map(re.escape, special))})"
    parts = [re.split(pattern, text) for text in texts]
    return [
        [number for part in row for number in ([special[part]] if part in special else engine.encode(part))]
        for row in parts
    ]


def tokenizer_json(content):
    model = SentencePieceModel.from_bytes(content)
    added = {name: (number, {}) for number, name in enumerate(("[PAD]", "[CLS]", "[SEP]"))}
    added |= {"[UNK]": (3, {"normalized": True}), "[MASK]": (len(model.pieces), {})}
    return unigram_json(
        model,
        [[piece.text, piece.score] for piece in model.pieces],
        added,
        (
            [{"type": "Strip", "strip_left": True, "strip_right": True}],
            [{"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}],
        ),
        {"type": "Sequence", "pretokenizers": [METASPACE]},
        ("[CLS]", "A0", "[SEP]", "B1", "[SEP]"),
    )


def write_tokenizer(folder, content, files, **changes):
    settings = {"do_lower_case": False, "vocab_type": "spm", "sp_model_kwargs": {}, "split_by_punct": False}
    decoder = {"3": {"content": "[UNK]", "normalized": True}, "2500": {"content": "[MASK]"}}
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "added_tokens_decoder": decoder}))
    (folder / "added_tokens.json").write_text('{"[MASK]": 2500}')
    if "model" in files:
        (folder / "spm.model").write_bytes(content)
    if "json" in files:
        (folder / "tokenizer.json").write_text(json.dumps({**tokenizer_json(content), **changes}))


@pytest.mark.parametrize("files", ["model", "json"])
def test_sentencepiece_model_gives_the_ids_that_the_library_had_in_python(
    transformers, tmp_path, sample_lines, content, files
):
    their_model(transformers, **{**VERSION_3, "vocab_size": 2510}).save_pretrained(tmp_path / "theirs")
    write_tokenizer(tmp_path / "theirs", content, files)
    sentences = to_ours(tmp_path / "theirs", tmp_path / "ours")
    assert "tokenizer: SentencePiece with form=deberta" in sentences
    assert not [sentence for sentence in sentences if "unknown" in sentence]
    tokenizer, texts = load_tokenizer(tmp_path / "ours"), [*draw_texts(500), *sample_lines[:200]]
    scores = [piece.score for piece in tokenizer.model.pieces]
    for text, found, ids in zip(texts, tokenizer.encode_ids(texts).to_list(), sentencepiece_ids(content, texts)):
        # Of two ways to cut a text that are as probable, versions of SentencePiece take either.
        assert found == ids or abs(sum(scores[each] for each in found) - sum(scores[each] for each in ids)) < 1e-3, text
    first, second = sentencepiece_ids(content, ["가", "나"])
    encoding = tokenizer.encode("가", "나")
    assert encoding.ids == [1, *first, 2, *second, 2]
    assert encoding.segment_ids == [0] * (len(first) + 2) + [1] * (len(second) + 1)
    assert albert_tf.load(tmp_path / "theirs").fill_mask(["정말 [MASK] 영화"], top_k=1)

    to_theirs(tmp_path / "ours", tmp_path / "back")
    fast = transformers.AutoTokenizer.from_pretrained(tmp_path / "back")
    assert fast.mask_token_id == 2500 and fast("정말 [MASK]")["input_ids"] == tokenizer.encode("정말 [MASK]").ids
    to_ours(tmp_path / "back", tmp_path / "again")
    assert load_tokenizer(tmp_path / "again").identity == tokenizer.identity


def test_tokenizer_json_that_does_other_things_is_refused_and_a_flag_names_the_model(tmp_path, content):
    (tmp_path / "config.json").write_text('{"model_type": "deberta-v2"}')
    for changes, message in (
        ({"normalizer": {"type": "NFC"}}, "the step NFC gives other ids than albert_tf's tokenizer"),
        ({"post_processor": None}, r"post_processor doesn't put texts as DeBERTa does \(\[CLS\] A \[SEP\] B \[SEP\]\)"),
    ):
        write_tokenizer(tmp_path, content, "model json", **changes)
        found = find_tokenizer(str(tmp_path), ReadOptions(), 2510, HUGGINGFACE)
        assert found.tokenizer is None and re.search(message, found.notes[0])
    named = ReadOptions(spm_model_file=str(tmp_path / "spm.model"))
    assert find_tokenizer(str(tmp_path), named, 2510, HUGGINGFACE).tokenizer.form == "deberta"


def test_sentencepiece_models_with_other_ids_are_refused_by_name(tmp_path, sample_lines, content):
    of_another = train_model(sample_lines[:500], 1000, **{**IDS, "unk_piece": "<unk>"})
    for model, settings, message in (
        (content, {"split_by_punct": True}, "split_by_punct=True gives other ids than albert_tf's tokenizer"),
        (content, {"do_lower_case": True}, "do_lower_case=True gives other ids"),
        (of_another, {}, "spm.model calls the unknown piece '<unk>'; in DeBERTa's models it is \\[UNK\\]"),
    ):
        (tmp_path / "spm.model").write_bytes(model)
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
        found = find_tokenizer(str(tmp_path), ReadOptions(), 2510, HUGGINGFACE)
        assert found.tokenizer is None and re.search(message, found.notes[0])
