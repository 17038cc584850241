"""Conversions to and from transformers that tests make, and tiny models of both families."""

import base64
import json

import numpy as np
import pytest

from albert_tf.base.errors import InputError
from albert_tf.interchange.conversion import convert_checkpoint
from albert_tf.interchange.portable_model import ReadOptions

SIZES = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 24, "max_position_embeddings": 64}
TINY_ALBERT = {"vocab_size": 30, "embedding_size": 8, "num_hidden_layers": 3, **SIZES}
TINY_BERT = {"vocab_size": 30, "num_hidden_layers": 2, **SIZES}


def to_ours(source, target, **options):
    return convert_checkpoint("huggingface", "albert_tf", str(source), str(target), ReadOptions(**options))


def to_theirs(source, target, **options):
    return convert_checkpoint("albert_tf", "huggingface", str(source), str(target), ReadOptions(**options))


def edit_config(folder, **changes):
    path = folder / "config.json"
    values = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({name: value for name, value in values.items() if value is not None}))


def randomized(model):
    """Gives a torch model weights far from those that it begins with, and returns it."""
    import torch

    torch.manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0, 0.3)
    return model.eval()


def torch_inputs(inputs):
    """Returns inputs of ours as theirs."""
    import torch

    names = {"input_ids": "input_ids", "input_mask": "attention_mask", "segment_ids": "token_type_ids"}
    return {names[name]: torch.tensor(np.asarray(value)).long() for name, value in inputs.items()}


def relative_difference(ours, theirs):
    """Returns how far arrays, or tensors of TensorFlow and of torch, are from one another, relative to their norm."""
    theirs = theirs.detach().numpy() if hasattr(theirs, "detach") else theirs
    return np.linalg.norm(np.asarray(ours) - theirs) / np.linalg.norm(theirs)


def assert_goes_back(theirs, folder, config_keys, **options):
    """Converts a model of theirs to ours and back, where nothing of it but other values of its config may change."""
    theirs.save_pretrained(folder / "theirs")
    sentences = to_ours(folder / "theirs", folder / "ours")
    assert not [sentence for sentence in sentences if sentence.startswith("left, because it is no part")]
    to_theirs(folder / "ours", folder / "back", **options)
    again, report = type(theirs).from_pretrained(folder / "back", output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"] and not report["mismatched_keys"]
    for key, value in theirs.state_dict().items():
        np.testing.assert_array_equal(again.state_dict()[key].numpy(), value.numpy(), err_msg=key)
    given, found = (model.config.to_dict() for model in (theirs, again))
    for key in config_keys:
        assert found.get(key) == given.get(key), key


def assert_refused(theirs, folder, message, file=None, **changes):
    """Checks that a model of theirs with another config, and maybe a further file, is refused in one sentence."""
    theirs.save_pretrained(folder / "theirs")
    edit_config(folder / "theirs", **changes)
    if file:
        (folder / "theirs" / file).write_text("{}")
    with pytest.raises(InputError) as error:
        to_ours(folder / "theirs", folder / "ours")
    assert message in str(error.value) and "\n" not in str(error.value) and not (folder / "ours").exists()


def write_word_pieces(folder, pieces):
    """Writes a tokenizer of WordPieces as transformers keeps one."""
    (folder / "vocab.txt").write_text("\n".join(pieces))
    settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": False}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}


def unigram_json(model, pieces, added, steps, pre_tokenizer, pair):
    """Returns the tokenizer.json of a fast tokenizer of unigrams, as version 4 of transformers writes it.

    Args:
        model: The SentencePiece model, whose table normalises.
        pieces: The pieces with their scores.
        added: The special tokens' ids by their content, and what else is said of each.
        steps: The steps of normalisation before the table, and those after it.
        pre_tokenizer: As it is written.
        pair: How two texts are put together: names of special tokens, and "A0" or "B1" for a text and its segment.
    """
    token = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    table = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(model.normalizer).decode()}
    parts = [
        {"Sequence": {"id": name[0], "type_id": int(name[1])}}
        if name[1:].isdigit()
        else {"SpecialToken": {"id": name, "type_id": 0}}
        for name in pair
    ]
    special = {name: {"id": name, "ids": [added[name][0]], "tokens": [name]} for name in pair if name in added}
    processor = {"type": "TemplateProcessing", "single": parts[:3], "pair": parts, "special_tokens": special}
    before, after = steps
    return {
        "version": "1.0",
        "added_tokens": [{"id": number, "content": name, **token, **more} for name, (number, more) in added.items()],
        "normalizer": {"type": "Sequence", "normalizers": [*before, table, *after]},
        "pre_tokenizer": dict(pre_tokenizer),
        "post_processor": processor,
        "model": {"type": "Unigram", "unk_id": 3, "vocab": pieces, "byte_fallback": False},
    }
