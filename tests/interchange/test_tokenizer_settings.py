"""Settings in the files of tokenizers are obeyed or refused, and pairs are cut as they say."""

import itertools
import json
import re

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

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "재밌", "##어요", "##👩", "##🚀", "ㅋ", "##ㅋ"]


def backend(**changes):
    """Returns what transformers writes, with some parts changed; a part with a dot in its name is inside another."""
    values = {
        "added_tokens": [{"id": i, "content": token, "special": True} for i, token in enumerate(PIECES[:5])],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": False,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "truncation": {"max_length": 8},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {piece: i for i, piece in enumerate(PIECES)},
        },
    }
    for name, value in changes.items():
        part, _, key = name.partition("__")
        if key:
            values[part][key] = value
        else:
            values[part] = value
    return values


def found_in(folder, config=None, vocabulary=True, flags=(), **changes):
    if vocabulary:
        (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in PIECES))
    else:
        (folder / "tokenizer.json").write_text(json.dumps(backend(**changes)))
    if config is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return find_tokenizer(str(folder), ReadOptions(**dict(flags)), len(PIECES))


@pytest.mark.slow
@pytest.mark.parametrize("vocabulary", [True, False])
def test_a_folder_of_bert_is_read_as_bert_reads_it(tmp_path, vocabulary):
    found = found_in(tmp_path, {"do_lower_case": True, "strip_accents": False, "bos_token": "x"}, vocabulary)
    assert found.tokenizer.tokenize("재밌어요👩\u200d🚀") == ["재밌", "##어요", "##👩", "##🚀"]
    assert found.tokenizer.tokenize("ㅋ" * 101) == ["[UNK]"]
    assert not found.notes
    assert found.tokenizer.tokenize("[MASK]") == ["[MASK]"]
    split = found_in(tmp_path, {"strip_accents": False, "split_special_tokens": True}, vocabulary).tokenizer
    assert split.tokenize("[MASK]") == ["[UNK]"] * 3


def test_the_limit_of_a_word_is_the_file_s(tmp_path):
    found = found_in(tmp_path, {"strip_accents": False}, vocabulary=False, model__max_input_chars_per_word=3)
    assert "tokenizer.json says model.max_input_chars_per_word=3, and" in found.notes[0]
    tokenizer = found_in(tmp_path, BY_FILE, vocabulary=False, model__max_input_chars_per_word=3).tokenizer
    assert tokenizer.tokenize("ㅋㅋㅋ ㅋㅋㅋㅋ") == ["ㅋ", "##ㅋ", "##ㅋ", "[UNK]"]


BY_FILE = {"tokenizer_class": "PreTrainedTokenizerFast"}


@pytest.mark.parametrize(
    ("config", "changes", "flags", "expected"),
    [
        # What is said once, or by all, holds, and what BERT does where nothing is said.
        (None, {}, {}, "tokenizer.json says strip_accents=False, and"),
        ({}, {"normalizer__strip_accents": None}, {}, (True, True)),
        ({"do_lower_case": False}, {"normalizer__lowercase": False}, {}, (False, False)),
        ({"do_lower_case": True, "strip_accents": False}, {}, {}, (True, False)),
        ({**BY_FILE, "do_lower_case": False}, {}, {}, (True, False)),
        ({}, {"normalizer__lowercase": False}, {}, "tokenizer.json says do_lower_case=False, and"),
        # A flag decides where files contradict each other or are silent, and contradicts nothing.
        ({}, {}, {"strip_accents": False}, (True, False)),
        ({}, {"normalizer__strip_accents": None}, {"strip_accents": False}, (True, False)),
        ({"do_lower_case": True}, {"normalizer__lowercase": False}, {"do_lower_case": False}, (False, False)),
        ({"strip_accents": False}, {}, {"strip_accents": True}, "`strip_accents=True` contradicts the tokenizer's"),
        (BY_FILE, {}, {"do_lower_case": False}, "`do_lower_case=False` contradicts the tokenizer's files in"),
        ({"do_lower_case": 1}, {}, {}, "do_lower_case must be true or false"),
    ],
)
def test_files_and_flags_agree_or_are_told_to(tmp_path, config, changes, flags, expected):
    found = found_in(tmp_path, config, vocabulary=False, flags=flags, **changes)
    if isinstance(expected, str):
        assert found.tokenizer is None and expected in found.notes[0]
    else:
        normalization = found.tokenizer.normalization
        assert (normalization.lower_case, normalization.strip_accents) == expected


TEMPLATE = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pre_tokenizer": {"type": "WhitespaceSplit"}}, "pre_tokenizer is WhitespaceSplit"),
        ({"normalizer": {"type": "NFC"}}, "normalizer is NFC"),
        ({"normalizer__clean_text": False}, "normalizer.clean_text=False"),
        ({"normalizer__handle_chinese_chars": False}, "normalizer.handle_chinese_chars=False"),
        ({"model__unk_token": "<unk>"}, "model.unk_token='<unk>'"),
        ({"model__max_input_chars_per_word": 0}, "model.max_input_chars_per_word must be a number from 1"),
        ({"added_tokens": [{"id": 11, "content": "<url>"}]}, "added_tokens holds '<url>'"),
        ({"added_tokens": [{"id": 4, "content": "[MASK]", "normalized": True}]}, "has [MASK] with normalized=true"),
        ({"added_tokens": [{"id": 4, "content": "[MASK]"}]}, "added_tokens lacks [CLS], [PAD], [SEP], [UNK]"),
        ({"post_processor": None}, "post_processor is missing"),
        ({"post_processor": {"type": "TemplateProcessing", "single": ["x"], "pair": 1}}, "post_processor is Templ"),
        ({"post_processor": {"type": "TemplateProcessing", "single": TEMPLATE, "pair": []}}, "post_processor is Templ"),
    ],
)
def test_a_tokenizer_json_that_gives_other_ids_is_refused_by_name(tmp_path, changes, message):
    found = found_in(tmp_path, vocabulary=False, **changes)
    assert found.tokenizer is None
    [note] = found.notes
    assert note.startswith(f"no tokenizer: {tmp_path / 'tokenizer.json'}")
    assert message in note


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("do_basic_tokenize", False),
        ("unk_token", {"content": "<unk>"}),
        ("additional_special_tokens", ["<url>"]),
        ("added_tokens_decoder", {"9": {"content": "<url>"}}),
        ("added_tokens_decoder", {"4": {"content": "[MASK]", "single_word": True}}),
        ("tokenizer_class", "KoBertTokenizer"),
        ("auto_map", {"AutoTokenizer": ["mine.MyTokenizer", None]}),
    ],
)
def test_a_config_that_gives_other_ids_is_refused_by_name(tmp_path, key, value):
    found = found_in(tmp_path, {key: value})
    assert found.tokenizer is None
    [note] = found.notes
    assert note.startswith(f"no tokenizer: {tmp_path / 'tokenizer_config.json'}: {key}")


@pytest.mark.parametrize(
    ("file", "values", "message"),
    [
        ("added_tokens.json", {"[MASK]": 4, "<e1>": 11}, r"added_tokens\.json holds '<e1>', which is matched in texts"),
        ("config.json", {"tokenizer_class": "BertJapaneseTokenizer"}, r"/config\.json: tokenizer_class='BertJapanese"),
    ],
)
def test_files_beside_the_config_of_the_tokenizer_are_read_too(tmp_path, file, values, message):
    """Tokens that were added to a BertTokenizer in Python are in a file of their own."""
    (tmp_path / file).write_text(json.dumps(values))
    found = found_in(tmp_path, {"do_lower_case": False})
    assert found.tokenizer is None
    assert re.search(message, found.notes[0])


def test_a_class_in_the_config_of_the_tokenizer_counts_before_that_of_the_model(tmp_path):
    (tmp_path / "added_tokens.json").write_text('{"[MASK]": 4}')
    (tmp_path / "config.json").write_text('{"tokenizer_class": "KoBertTokenizer"}')
    assert found_in(tmp_path, {"do_lower_case": False, "tokenizer_class": "BertTokenizer"}).tokenizer is not None
    assert found_in(tmp_path, {"do_lower_case": False}).tokenizer is None


def test_lines_that_stand_for_no_piece_leave_the_ids_of_the_others(tmp_path):
    """As in transformers, where of equal lines the last one counts, and line breaks may be those of Windows."""
    lines = [*PIECES[:5], "가", "", "##는", "가", "[unused0]", "다", "", ""]
    (tmp_path / "vocab.txt").write_bytes("\r\n".join(lines).encode())
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    found = find_tokenizer(str(tmp_path), ReadOptions(), 11)
    assert found.tokenizer.encode("가는 다").ids == [2, 8, 7, 10, 3]
    assert found.tokenizer.vocabulary.pieces[5:7] == ["[unused1]", "[unused2]"]
    [note] = found.notes
    assert note.endswith("vocab.txt: no text becomes the piece of line 6, 7, which is empty or on a later line too")


def test_a_key_that_is_not_known_is_named(tmp_path):
    notes = found_in(tmp_path, {"spell_out_numbers": True, "is_new": None, "other": False}).notes
    assert any("because they are unknown: spell_out_numbers" in note for note in notes)


def test_a_vocabulary_that_is_named_stays_korean(tmp_path):
    found_in(tmp_path, {"do_basic_tokenize": False})
    options = ReadOptions(vocab_file=str(tmp_path / "vocab.txt"))
    assert "form" not in find_tokenizer(str(tmp_path), options, len(PIECES)).tokenizer.to_dict()
    with pytest.raises(InputError, match="has 11 pieces"):
        find_tokenizer(str(tmp_path), options, 5)


WORDS = "가나다라마바사아자차카타파하"
PAIR_PIECES = [*SPECIAL_TOKENS, *WORDS, *(f"##{word}" for word in WORDS[:11])]
LENGTHS = (0, 1, 2, 4, 5, 6, 9, 10, 14)
PAIRS = [tuple(" ".join(WORDS[:length]) for length in pair) for pair in itertools.product(LENGTHS, repeat=2)]


def of_library(folder, library, **settings):
    """Returns the tokenizer that a folder of a library's has here, saved and loaded."""
    (folder / "vocab.txt").write_text("\n".join(PAIR_PIECES), encoding="utf-8")
    if settings:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    find_tokenizer(str(folder), ReadOptions(strip_accents=False), len(PAIR_PIECES), library).tokenizer.save(
        folder / "ours"
    )
    return load_tokenizer(folder / "ours")


def googles_loop(first, second, room):
    first, second = list(first), list(second)
    while len(first) + len(second) > room:
        (first if len(first) > len(second) else second).pop()
    return first, second


@pytest.mark.parametrize("length", [8, 13])
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
    usual = KoreanWordPieceTokenizer(Vocabulary(PAIR_PIECES))
    assert "truncation" not in usual.to_dict()
    for rule in ("odd_to_longer", "odd_to_first"):
        tokenizer = KoreanWordPieceTokenizer(Vocabulary(PAIR_PIECES), truncation=rule)
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
        tokenizer = KoreanWordPieceTokenizer(Vocabulary(PAIR_PIECES), truncation=rule)
        place = tmp_path / rule
        place.mkdir()
        folder, _ = write_ours(place / "ours", config, None, tokenizer)
        to_theirs(folder, place / "theirs")
        to_ours(place / "theirs", place / "back")
        assert load_tokenizer(place / "back").vocabulary.truncation == rule
