"""Shards, manifest, tokenizer, flags and model must go together; each contradiction stops with one sentence."""

import dataclasses
import json
import shutil

import pytest

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.pretraining_data.input_pipeline import eval_dataset, train_dataset
from albert_tf.pretraining_data.shards import find_shards
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.vocabulary import Vocabulary


@pytest.fixture
def config(tiny_tokenizer):
    """A model for the tiny vocabulary."""
    return AlbertConfig(
        vocab_size=len(tiny_tokenizer.vocabulary),
        embedding_size=8,
        hidden_size=16,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )


@pytest.fixture
def folder(dynamic_shards, tmp_path):
    """A copy of the dynamic shards, to break."""
    return shutil.copytree(dynamic_shards.folder, tmp_path / "data")


@pytest.fixture
def find(config):
    """Calls `find_shards` with lists for strings and None for what is left out."""

    def call(input_file, held_out_file=None, max_seq_length=None, max_predictions_per_seq=None, config=config):
        patterns = [[str(pattern)] if pattern else [] for pattern in (input_file, held_out_file)]
        return find_shards(*patterns, max_seq_length, max_predictions_per_seq, config)

    return call


def refuses(message, call, *arguments, **options):
    """Checks that a call ends in an InputError of one sentence that says `message`."""
    with pytest.raises(InputError, match=message) as failure:
        call(*arguments, **options)
    assert "\n" not in str(failure.value)
    assert not str(failure.value).endswith(".")


def test_manifest_and_tokenizer_say_how_to_read(find, dynamic_shards, tiny_tokenizer):
    found = find(dynamic_shards.folder / "*.tfrecord")
    assert found.train_paths == dynamic_shards.train_paths
    assert found.held_out_paths == dynamic_shards.held_out_paths
    assert found.tokenizer.identity == tiny_tokenizer.identity
    assert found.manifest["splits"].keys() == {"train", "held_out"}
    assert (found.train_options.is_static, found.held_out_options.is_static) == (False, True)
    assert found.train_options.max_seq_length == found.held_out_options.max_seq_length == 32
    assert found.train_options.masking_tokens.mask_id == tiny_tokenizer.vocabulary.id_of("[MASK]")
    assert len(list(train_dataset(found.train_paths, found.train_options, 2, 1).take(1))) == 1
    assert len(list(eval_dataset(found.held_out_paths, found.held_out_options, 1000))) == 1


def test_masking_follows_the_options_the_shards_were_made_with(find, build_shards, random_documents, tmp_path):
    shards = build_shards(tmp_path, random_documents(30), max_predictions_per_seq=3)
    path = shards.folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["options"]["masking_options"] |= {"masked_lm_prob": 0.4, "ngram": 2, "do_whole_word_mask": False}
    path.write_text(json.dumps(manifest), encoding="utf-8")
    options = find(shards.train_paths[0]).train_options.masking_options
    assert dataclasses.asdict(options) == {
        "max_predictions_per_seq": 3,
        "masked_lm_prob": 0.4,
        "ngram": 2,
        "favor_shorter_ngram": True,
        "do_whole_word_mask": False,
    }


def test_held_out_file_takes_the_place_of_the_manifests(find, dynamic_shards, static_shards):
    found = find(dynamic_shards.train_paths[0], static_shards.held_out_paths[0])
    assert found.train_paths == dynamic_shards.train_paths[:1]
    assert found.held_out_paths == static_shards.held_out_paths


def test_shards_without_held_out_examples_have_none(find, build_shards, random_documents, tmp_path):
    shards = build_shards(tmp_path, random_documents(5), held_out_fraction=0.0)
    assert find(shards.train_paths[0]).held_out_paths == []


@pytest.fixture
def bare_folder(static_shards, tmp_path):
    """Masked shards as the original makes them: with nothing beside them."""
    folder = tmp_path / "bare"
    folder.mkdir()
    for path in static_shards.train_paths:
        shutil.copy(path, folder)
    return folder


def test_bare_masked_shards_are_read_as_the_flags_say(find, bare_folder):
    found = find(bare_folder / "*", max_seq_length=32, max_predictions_per_seq=5)
    assert (found.tokenizer, found.manifest, found.held_out_paths) == (None, {}, [])
    assert found.train_options.is_static
    assert next(iter(train_dataset(found.train_paths, found.train_options, 2, 1)))["input_ids"].shape == [2, 32]


def test_bare_masked_shards_default_to_the_originals_lengths(find, bare_folder, config):
    # 512 and 20, which these don't have.
    long_config = dataclasses.replace(config, max_position_embeddings=512)
    refuses("--max_seq_length=512 and --max_predictions_per_seq=20", find, bare_folder / "*", config=long_config)


@pytest.mark.parametrize(("flag", "value", "held"), [("max_seq_length", 64, 32), ("max_predictions_per_seq", 20, 5)])
def test_flag_that_contradicts_the_manifest_is_refused(find, folder, flag, value, held):
    message = f"--{flag}={value} contradicts {folder}/manifest.json, which says {held}"
    refuses(message, find, folder / "train*", **{flag: value})
    assert find(folder / "train*", **{flag: held})


@pytest.mark.parametrize("with_manifest", [True, False])
def test_model_of_another_vocabulary_size_is_refused(find, folder, config, with_manifest):
    if not with_manifest:
        (folder / "manifest.json").unlink()
    wrong = dataclasses.replace(config, vocab_size=30000)
    message = f"vocab_size in --albert_config_file is 30000, but .* {config.vocab_size} pieces"
    refuses(message, find, folder / "train*", max_seq_length=32, max_predictions_per_seq=5, config=wrong)


def test_sequences_longer_than_the_models_positions_are_refused(find, folder, config):
    short = dataclasses.replace(config, max_position_embeddings=16)
    refuses("sequences of 32, but .*max_position_embeddings is 16", find, folder / "train*", config=short)


def test_missing_shards_are_refused(find, folder):
    refuses(f"--input_file: no file matches {folder}/gone\\*", find, folder / "gone*")
    refuses("--input_file: no file given", find, None)
    refuses(f"--input_file: {folder}/held_out.tfrecord names held-out shards only", find, folder / "held_out.tfrecord")


def test_missing_held_out_shards_are_refused(find, folder):
    refuses("--held_out_file: no file matches gone", find, folder / "train*", "gone")
    (folder / "held_out.tfrecord").unlink()
    refuses(f"--held_out_file: no file matches {folder}/held_out.tfrecord", find, folder / "train*")


def test_held_out_shards_of_another_length_are_refused(find, folder, build_shards, random_documents, tmp_path):
    other = build_shards(tmp_path / "other", random_documents(20), max_seq_length=16).held_out_paths[0]
    refuses(f"{other} doesn't hold examples of --max_seq_length=32", find, folder / "train*", other)


def test_unmasked_shards_without_their_tokenizer_are_refused(find, folder):
    (folder / "tokenizer.json").unlink()
    refuses("is not masked yet, which needs tokenizer.json and vocab.txt", find, folder / "train*")


def test_tokenizer_that_did_not_make_the_shards_is_refused(find, folder, tiny_tokenizer):
    pieces = tiny_tokenizer.vocabulary.pieces
    KoreanWordPieceTokenizer(Vocabulary([*pieces[:-2], *pieces[:-3:-1]])).save(folder)
    refuses(f"{folder}/tokenizer.json is not the tokenizer that the shards were made with", find, folder / "train*")


def test_vocabulary_swapped_under_its_tokenizer_is_refused(find, folder, tiny_tokenizer):
    Vocabulary(tiny_tokenizer.vocabulary.pieces[:-1]).to_file(folder / "vocab.txt")
    refuses("vocab.txt is not the vocabulary that .*tokenizer.json was written for", find, folder / "train*")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("manifest.json", b"{", "manifest.json, line 1: not valid JSON"),
        ("manifest.json", b"[]", "manifest.json must hold one JSON object"),
        ("train-00001-of-00003.tfrecord", b"", "train-00001-of-00003.tfrecord holds no record"),
        ("train-00001-of-00003.tfrecord", b"text" * 20, "train-00001-of-00003.tfrecord is not a TFRecord file"),
        ("held_out.tfrecord", b"text" * 20, "held_out.tfrecord is not a TFRecord file"),
    ],
)
def test_damaged_file_is_named(find, folder, name, content, message):
    (folder / name).write_bytes(content)
    refuses(message, find, folder / "train*")


def test_manifest_of_something_else_is_ignored_where_it_says_nothing(find, bare_folder):
    (bare_folder / "manifest.json").write_text('{"name": "a web page"}')
    assert find(bare_folder / "*.tfrecord", max_seq_length=32, max_predictions_per_seq=5).train_options.is_static
