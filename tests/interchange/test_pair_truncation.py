"""Pairs that are too long lose the pieces that they lose in the library that their tokenizer comes from."""

import itertools
import json

import pytest
from huggingface_conversion import to_ours, to_theirs
from random_models import write_ours
from tiny_config import tiny_config

from albert_tf.asking.litert import FastInputs
from albert_tf.base.errors import InputError
from albert_tf.interchange.portable_model import ReadOptions
from albert_tf.interchange.tokenizers.files import find_tokenizer
from albert_tf.tokenization import KoreanWordPieceTokenizer, TokenizerLayer, Vocabulary, load_tokenizer
from albert_tf.tokenization.huggingface import to_tokenizers
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS

WORDS = "가나다라마바사아자차카타파하"
PIECES = [*SPECIAL_TOKENS, *WORDS, *(f"##{word}" for word in WORDS[:11])]
LENGTHS = (0, 1, 2, 4, 5, 6, 9, 10, 14)
PAIRS = [tuple(" ".join(WORDS[:length]) for length in pair) for pair in itertools.product(LENGTHS, repeat=2)]


def of_library(folder, library, **settings):
    """Returns the tokenizer that a folder of a library's has here, saved and loaded."""
    (folder / "vocab.txt").write_text("\n".join(PIECES), encoding="utf-8")
    if settings:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    find_tokenizer(str(folder), ReadOptions(strip_accents=False), len(PIECES), library).tokenizer.save(folder / "ours")
    return load_tokenizer(folder / "ours")


def googles_loop(first, second, room):
    first, second = list(first), list(second)
    while len(first) + len(second) > room:
        (first if len(first) > len(second) else second).pop()
    return first, second


@pytest.mark.parametrize("length", [8, 9, 12, 13])
def test_pairs_of_transformers_are_cut_as_there(tmp_path, length):
    transformers = pytest.importorskip("transformers")
    tokenizer = of_library(tmp_path, "huggingface", tokenizer_class="BertTokenizer", strip_accents=False)
    theirs = transformers.BertTokenizer(str(tmp_path / "vocab.txt"), strip_accents=False)
    expected = theirs(*map(list, zip(*PAIRS)), truncation=True, max_length=length, padding="max_length")
    found = TokenizerLayer(tokenizer, length)(*map(list, zip(*PAIRS)))
    assert found["input_ids"].numpy().tolist() == expected["input_ids"]
    assert found["segment_ids"].numpy().tolist() == expected["token_type_ids"]

    (tmp_path / "fast.json").write_text(to_tokenizers(tokenizer).to_str(), encoding="utf-8")
    fast = FastInputs(str(tmp_path / "fast.json"), length, True, tokenizer.vocabulary.truncation)
    for encoding, ids in zip(fast.join(fast.tokenize(PAIRS)), expected["input_ids"]):
        assert encoding.ids == ids[: len(encoding.ids)] and not any(ids[len(encoding.ids) :])


@pytest.mark.parametrize("length", [8, 9])
def test_pairs_of_google_are_cut_as_there(tmp_path, length):
    tokenizer = of_library(tmp_path, "google")
    found = TokenizerLayer(tokenizer, length)(*map(list, zip(*PAIRS)))["input_ids"].numpy()
    for pair, ids in zip(PAIRS, found):
        first, second = googles_loop(*map(str.split, pair), length - 3)
        words = ["[CLS]", *first, "[SEP]", *second, "[SEP]"]
        assert [tokenizer.vocabulary.pieces[piece_id] for piece_id in ids][: len(words)] == words


def test_rule_is_a_setting_that_changes_no_ids(tmp_path):
    usual = KoreanWordPieceTokenizer(Vocabulary(PIECES))
    assert "truncation" not in usual.to_dict()
    for rule in ("odd_to_longer", "odd_to_first"):
        tokenizer = KoreanWordPieceTokenizer(Vocabulary(PIECES), truncation=rule)
        tokenizer.save(tmp_path / rule)
        assert json.loads((tmp_path / rule / "tokenizer.json").read_text())["truncation"] == rule
        assert load_tokenizer(tmp_path / rule).vocabulary.truncation == rule
        # Data that was made with one rule is data for all of them.
        assert tokenizer.identity == usual.identity and usual.is_saved_as(tmp_path / rule / "tokenizer.json")
    assert usual.vocabulary.truncation == "odd_to_second"
    (tmp_path / rule / "tokenizer.json").write_text(json.dumps({**tokenizer.to_dict(), "truncation": "odd"}))
    with pytest.raises(InputError, match=r"tokenizer\.json: truncation must be one of odd_to_second, .* Received: 'od"):
        load_tokenizer(tmp_path / rule)


def test_rule_goes_out_and_comes_back(tmp_path):
    config = tiny_config(num_hidden_layers=2, embedding_size=16, sharing="none")
    for rule in ("odd_to_second", "odd_to_longer"):
        tokenizer = KoreanWordPieceTokenizer(Vocabulary(PIECES), truncation=rule)
        place = tmp_path / rule
        place.mkdir()
        folder, _ = write_ours(place / "ours", config, None, tokenizer)
        to_theirs(folder, place / "theirs")
        to_ours(place / "theirs", place / "back")
        assert load_tokenizer(place / "back").vocabulary.truncation == rule
