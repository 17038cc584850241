"""Checkpoints with a SentencePiece model beside them are converted with their tokenizer."""

import json
import re

import pytest
import sentencepiece_training
from random_models import config_in, write_ours
from tiny_config import tiny_config

from albert_tf.base.errors import InputError
from albert_tf.interchange.conversion import convert_checkpoint
from albert_tf.interchange.portable_model import ReadOptions
from albert_tf.tokenization import SentencePieceModel, SentencePieceTokenizer, Vocabulary, load_tokenizer
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS

TEXTS = ["In 2010, the ``model'' costs 1,000.", "Café [MASK] ½", ""]


def convert(source, target, input_path, output_dir, **options):
    return convert_checkpoint(source, target, str(input_path), str(output_dir), ReadOptions(**options))


@pytest.fixture
def released(tmp_path, english_tokenizer, english_model_file):
    """Makes a folder as others publish it: no file of ours, and their name of the model's file."""

    def make(form, model_name, vocab_size=None, **tokenizer_config):
        config = tiny_config(vocab_size or len(english_tokenizer))
        folder, _ = write_ours(tmp_path / f"random {form}", config)
        theirs = tmp_path / form
        convert("albert_tf", form, folder, theirs)
        assert not {path.name for path in theirs.iterdir()} & {"tokenizer.json", "spiece.model", "vocab.txt"}
        (theirs / model_name).write_bytes(english_model_file.read_bytes())
        if tokenizer_config:
            (theirs / "tokenizer_config.json").write_text(json.dumps(tokenizer_config))
        return theirs

    return make


def settings_in(folder):
    tokenizer = load_tokenizer(folder)
    assert type(tokenizer) is SentencePieceTokenizer
    return {name: value for name, value in tokenizer.to_dict().items() if type(value) is bool}


def test_googles_folder_is_used_as_the_original_uses_it(released, tmp_path, english_tokenizer):
    theirs = released("google", "30k-clean.model")
    (theirs / "30k-clean.vocab").write_text("<pad>\t0\n<unk>\t0\n")
    sentences = convert("google", "albert_tf", theirs, tmp_path / "ours")
    assert (
        "tokenizer: SentencePiece with form=google, lower_case=true, strip_accents=true, normalize_quotes=false, "
        "split_number_commas=true"
    ) in sentences
    assert load_tokenizer(tmp_path / "ours").identity == english_tokenizer.identity
    assert sorted(path.name for path in (tmp_path / "ours").iterdir() if "ckpt" not in path.name) == [
        "albert_config.json",
        "spiece.model",
        "tokenizer.json",
    ]


def test_model_is_found_where_other_formats_keep_it(released, tmp_path, english_tokenizer):
    hub, theirs = tmp_path / "hub", released("google", "30k-clean.model")
    for name in ("variables", "assets"):
        (hub / name).mkdir(parents=True)
    for path in theirs.iterdir():
        path.rename(hub / ("variables" if "ckpt" in path.name else "assets") / path.name)
    convert("google", "albert_tf", hub, tmp_path / "from hub")
    assert load_tokenizer(tmp_path / "from hub").identity == english_tokenizer.identity
    preset = released("keras_hub", "spm")
    (preset / "assets" / "tokenizer").mkdir(parents=True)
    (preset / "spm").rename(preset / "assets" / "tokenizer" / "vocabulary.spm")
    convert("keras_hub", "albert_tf", preset, tmp_path / "from keras_hub")
    alone = load_tokenizer(tmp_path / "from keras_hub")
    assert alone.form == "sentencepiece" and alone.model.sha256 == english_tokenizer.model.sha256
    convert("keras_hub", "albert_tf", preset, tmp_path / "lower", do_lower_case=True)
    assert settings_in(tmp_path / "lower") == {**ALL_OFF, "lower_case": True}


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("tokenizer", {"class_name": "BertTokenizer", "config": {}}, "class_name=BertTokenizer gives other ids than"),
        ("tokenizer", {"config": {"add_bos": True}}, "add_bos=True gives other ids than albert_tf's tokenizer, which"),
        ("tokenizer", {"config": {"dtype": "int32", "add_bos": False}}, None),
        ("tokenizer", {"config": {"lowercase": True}}, "tokenizer.json: ignored, because they are unknown: lowercase"),
        ("preprocessor", {"config": {"truncate": "waterfall"}}, "truncate=waterfall gives other ids than albert_tf's"),
        ("preprocessor", {"config": {"truncate": "round_robin", "x": 1}}, "json: ignored, because they are unknown: x"),
    ],
)
def test_what_a_preset_says_of_its_tokenizer_is_kept_or_named(released, tmp_path, name, values, message):
    preset = released("keras_hub", "vocabulary.spm")
    (preset / "assets" / "tokenizer").mkdir(parents=True)
    (preset / "vocabulary.spm").rename(preset / "assets" / "tokenizer" / "vocabulary.spm")
    (preset / f"{name}.json").write_text(json.dumps({"class_name": "AlbertTokenizer", **values}))
    sentences = convert("keras_hub", "albert_tf", preset, tmp_path / "ours")
    found = [sentence for sentence in sentences if message is not None and message in sentence]
    assert len(found) == (message is not None)
    is_refused = any(sentence.startswith("no tokenizer: ") for sentence in sentences)
    assert is_refused == (message is not None and "gives other ids" in message)


ALL_ON = {"lower_case": True, "strip_accents": True, "normalize_quotes": True, "split_number_commas": True}
ALL_OFF = dict.fromkeys(ALL_ON, False)
COMMAS = {"normalize_quotes": True, "split_number_commas": True}


@pytest.mark.parametrize(
    ("tokenizer_config", "options", "settings"),
    [
        ({}, {}, ALL_ON),
        ({"tokenizer_class": "AlbertTokenizer", "do_lower_case": False}, {}, {**ALL_ON, "lower_case": False}),
        ({"keep_accents": True, "do_lower_case": False}, {"do_lower_case": False}, {**ALL_OFF, **COMMAS}),
        ({"keep_accents": False}, {"split_number_commas": False}, {**ALL_ON, "split_number_commas": False}),
    ],
)
def test_settings_of_hugging_face_are_kept(released, tmp_path, tokenizer_config, options, settings):
    theirs = released("huggingface", "spiece.model", **tokenizer_config)
    sentences = convert("huggingface", "albert_tf", theirs, tmp_path / "ours", **options)
    assert settings_in(tmp_path / "ours") == settings
    assert load_tokenizer(tmp_path / "ours").form == "huggingface"
    assert any("AlbertTokenizer in Python (version 4, use_fast=False)" in sentence for sentence in sentences)


def test_folder_with_the_tokenizer_of_the_fast_class_needs_a_flag_that_says_which_is_meant(released, tmp_path):
    pytest.importorskip("transformers")
    theirs = released("huggingface", "spiece.model")
    model = SentencePieceModel.from_file(theirs / "spiece.model")
    fast = transformers_albert(model, do_lower_case=False, keep_accents=True)
    fast.save_pretrained(theirs)
    assert {"tokenizer.json", "spiece.model"} <= {path.name for path in theirs.iterdir()}
    flag = theirs / "spiece.model"
    with pytest.raises(
        InputError, match=re.escape(f"beside it, which is the one that can be kept; pass `spm_model_file={flag}` ")
    ):
        convert("huggingface", "albert_tf", theirs, tmp_path / "ours")
    assert not (tmp_path / "ours").exists()
    convert("huggingface", "albert_tf", theirs, tmp_path / "ours", spm_model_file=str(flag))
    assert settings_in(tmp_path / "ours") == {**ALL_OFF, **COMMAS}, "what the files say besides is kept"
    of_model = load_tokenizer(tmp_path / "ours")
    assert (
        fast.backend_tokenizer.encode("in 2010,", add_special_tokens=False).ids
        != of_model.encode_ids(["in 2010,"]).to_list()[0]
    )
    # A class that stands for any tokenizer.json says nothing of the model.
    config = json.loads((theirs / "tokenizer_config.json").read_text())
    (theirs / "tokenizer_config.json").write_text(json.dumps({**config, "tokenizer_class": "PreTrainedTokenizerFast"}))
    convert("huggingface", "albert_tf", theirs, tmp_path / "named", spm_model_file=str(flag))
    assert load_tokenizer(tmp_path / "named").identity == of_model.identity
    (theirs / "tokenizer.json").unlink()
    (theirs / "tokenizer_config.json").write_text(json.dumps(config))
    convert("huggingface", "albert_tf", theirs, tmp_path / "alone")
    assert load_tokenizer(tmp_path / "alone").identity == of_model.identity


def transformers_albert(model, **settings):
    import transformers

    vocabulary = [(piece.text, piece.score) for piece in model.pieces]
    return transformers.AlbertTokenizer(
        vocab=vocabulary, _spm_precompiled_charsmap=model.normalizer or None, **settings
    )


@pytest.mark.parametrize(
    ("tokenizer_config", "options", "message"),
    [
        ({"remove_space": False}, {}, "remove_space=False gives other ids than albert_tf's tokenizer, which has True"),
        ({"tokenizer_class": "T5Tokenizer"}, {}, "tokenizer_class='T5Tokenizer' gives other ids than albert_tf's tok"),
        ({"mask_token": "<url>"}, {}, "mask_token='<url>' gives other ids than albert_tf's tokenizer, which has '[MA"),
        ({"added_tokens_decoder": {"5": {"content": "<url>"}}}, {}, "added_tokens_decoder holds '<url>'"),
        ({"keep_accents": True}, {"strip_accents": True}, "`strip_accents=True` contradicts the tokenizer's files in"),
    ],
)
def test_what_gives_other_ids_is_refused_by_name(released, tmp_path, tokenizer_config, options, message):
    theirs = released("huggingface", "spiece.model", **tokenizer_config)
    sentences = convert("huggingface", "albert_tf", theirs, tmp_path / "ours", **options)
    assert any(sentence.startswith("no tokenizer: ") and message in sentence for sentence in sentences)
    assert not (tmp_path / "ours" / "tokenizer.json").exists()


def test_what_can_not_be_kept_is_said(released, tmp_path):
    theirs = released("google", "30k-clean.model", do_lower_case="yes")
    sentences = convert("google", "albert_tf", theirs, tmp_path / "without")
    assert any("do_lower_case must be true or false. Received: 'yes'" in sentence for sentence in sentences)
    assert (tmp_path / "without" / "spiece.model").exists()
    assert not (tmp_path / "without" / "tokenizer.json").exists()


@pytest.mark.parametrize("tokenizer_class", ["BertTokenizer", "AlbertTokenizer", None])
def test_vocabulary_beside_a_model_is_the_tokenizer_unless_the_class_is_alberts(released, tmp_path, tokenizer_class):
    theirs = released("huggingface", "spiece.model", tokenizer_class=tokenizer_class)
    Vocabulary([*SPECIAL_TOKENS, "##a"]).to_file(theirs / "vocab.txt")
    convert("huggingface", "albert_tf", theirs, tmp_path / "ours")
    is_sentencepiece = type(load_tokenizer(tmp_path / "ours")) is SentencePieceTokenizer
    assert is_sentencepiece == (tokenizer_class == "AlbertTokenizer")


def test_model_is_filled_up_to_the_size_of_the_table(released, tmp_path, english_tokenizer):
    size = len(english_tokenizer)
    theirs = released("huggingface", "spiece.model", vocab_size=size + 8)
    sentences = convert("huggingface", "albert_tf", theirs, tmp_path / "ours")
    assert any("filled up with 8 [unused] pieces" in sentence for sentence in sentences)
    tokenizer = load_tokenizer(tmp_path / "ours")
    assert len(tokenizer) == size + 8 == config_in(tmp_path / "ours").vocab_size
    assert len(tokenizer.vocabulary.real_piece_ids) == len(english_tokenizer.vocabulary.real_piece_ids)


def test_model_larger_than_the_table_is_refused(released, tmp_path):
    theirs = released("huggingface", "spiece.model", vocab_size=2990)
    with pytest.raises(InputError, match=r"spiece.model has 3000 pieces, and the model 2990; .* `spm_model_file`$"):
        convert("huggingface", "albert_tf", theirs, tmp_path / "ours")


def test_flag_names_the_model(released, tmp_path, english_model_file, sample_lines):
    theirs = released("google", "other.name")
    sentences = convert("google", "albert_tf", theirs, tmp_path / "none")
    assert "no tokenizer: there is none beside it; name one with `vocab_file` or `spm_model_file`" in sentences
    convert("google", "albert_tf", theirs, tmp_path / "ours", spm_model_file=str(english_model_file))
    assert settings_in(tmp_path / "ours") == {**ALL_ON, "normalize_quotes": False}
    (tmp_path / "x.model").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"x.model is not a SentencePiece model"):
        convert("google", "albert_tf", theirs, tmp_path / "x", spm_model_file=str(tmp_path / "x.model"))
    with pytest.raises(InputError, match="`vocab_file` and `spm_model_file` name two tokenizers"):
        convert("google", "albert_tf", theirs, tmp_path / "x", spm_model_file="a", vocab_file="b")


def test_own_settings_are_not_contradicted(tmp_path, english_tokenizer):
    folder, _ = write_ours(tmp_path / "ours", tiny_config(len(english_tokenizer)), None, english_tokenizer)
    for target in ("google", "huggingface", "keras_hub"):
        sentences = convert("albert_tf", target, folder, tmp_path / target)
        convert(target, "albert_tf", tmp_path / target, tmp_path / f"back from {target}")
        assert load_tokenizer(tmp_path / f"back from {target}").identity == english_tokenizer.identity
        told = convert(target, "albert_tf", tmp_path / target, tmp_path / f"no {target}", split_number_commas=False)
        assert any("`split_number_commas=False` contradicts the tokenizer in" in sentence for sentence in told)
    assert any("spiece.model and albert_tf_tokenizer.json are for albert_tf" in sentence for sentence in sentences)


@pytest.mark.slow
@pytest.mark.parametrize("korean", [False, True])
def test_tokenizer_for_transformers_gives_the_same_ids(tmp_path, english_tokenizer, sample_lines, korean):
    transformers = pytest.importorskip("transformers")
    tokenizer, lines = english_tokenizer, sentencepiece_training.english_lines()
    if korean:
        path, lines = tmp_path / "a.model", sample_lines
        path.write_bytes(sentencepiece_training.train_model(lines, 3000, normalization_rule_name="nmt_nfkc"))
        tokenizer = SentencePieceTokenizer.from_model_file(path, split_number_commas=False).with_unused(3)
    folder, _ = write_ours(tmp_path / "ours", tiny_config(len(tokenizer)), None, tokenizer)
    convert("albert_tf", "huggingface", folder, tmp_path / "theirs")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    assert (theirs.mask_token_id, theirs.pad_token, len(theirs)) == (
        tokenizer.vocabulary.id_of("[MASK]"),
        "<pad>",
        len(tokenizer),
    )
    same = [theirs(line)["input_ids"] == encoding.ids for line, encoding in zip(lines, tokenizer.encode_batch(lines))]
    assert sum(same) > 0.98 * len(lines)  # ties are cut otherwise, and which ones there are hangs on the documents
    for text in TEXTS:
        assert theirs(text, "the")["input_ids"] == tokenizer.encode(text, "the").ids
    assert theirs.decode(theirs("the model, 16")["input_ids"], skip_special_tokens=True) == "the model, 16"


def test_model_of_another_kind_is_not_written_for_transformers(tmp_path, sample_lines):
    path = tmp_path / "a.model"
    path.write_bytes(sentencepiece_training.train_model(sample_lines[:500], 1000, model_type="bpe"))
    tokenizer = SentencePieceTokenizer.from_model_file(path)
    folder, _ = write_ours(tmp_path / "ours", tiny_config(len(tokenizer)), None, tokenizer)
    sentences = convert("albert_tf", "huggingface", folder, tmp_path / "theirs")
    assert any("spiece.model is not a unigram model" in sentence for sentence in sentences)
    convert("huggingface", "albert_tf", tmp_path / "theirs", tmp_path / "back")
    assert load_tokenizer(tmp_path / "back").identity == tokenizer.identity
