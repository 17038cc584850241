"""Shards, manifest, tokenizer, flags and model must go together; each contradiction stops with one sentence."""

import dataclasses
import shutil

import pytest
import tensorflow as tf
from refusals import refuses

from albert_tf.pretraining_data import PACKINGS
from albert_tf.pretraining_data.input_pipeline import eval_dataset, train_dataset
from albert_tf.pretraining_data.manifest import read_manifest
from albert_tf.pretraining_data.records import LABEL_FEATURE
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.vocabulary import Vocabulary


def test_manifest_that_leads_out_of_its_folder_is_refused(find, folder, edit_manifest):
    edit_manifest(lambda manifest: manifest["splits"]["held_out"].update(files=["../held_out.tfrecord"]))
    refuses(r'manifest.json names "../held_out.tfrecord", which is not a file in', find, folder / "train*")


@pytest.mark.slow
def test_manifest_and_tokenizer_say_how_to_read(find, dynamic_shards, tiny_tokenizer, prepare):
    found = find(dynamic_shards.folder / "*.tfrecord")
    assert found.train_paths == dynamic_shards.train_paths
    assert found.held_out_paths == dynamic_shards.held_out_paths
    assert found.tokenizer.identity == tiny_tokenizer.identity
    assert found.manifest["splits"].keys() == {"train", "held_out"}
    assert found.examples_per_shard == [
        sum(1 for _ in tf.data.TFRecordDataset(path)) for path in dynamic_shards.train_paths
    ]
    assert found.damage == {}
    assert (found.train_options.is_static, found.held_out_options.is_static) == (False, True)
    assert found.train_options.max_seq_length == found.held_out_options.max_seq_length == 32
    assert found.masking.tokens.mask_id == tiny_tokenizer.vocabulary.id_of("[MASK]")
    assert len(list(train_dataset(found.train_paths, found.train_options, prepare, 2, 1).take(1))) == 1
    assert len(list(eval_dataset(found.held_out_paths, found.held_out_options, prepare, 1000))) == 1


def test_masking_follows_the_options_the_shards_were_made_with(find, folder, edit_manifest):
    changed = {"masked_lm_prob": 0.4, "ngram": 2, "do_whole_word_mask": False}
    edit_manifest(lambda manifest: manifest["options"]["masking_options"].update(changed))
    options = dataclasses.asdict(find(folder / "train*").masking)
    assert {name: options[name] for name in changed} == changed
    assert options["max_predictions_per_seq"] == 5
    edit_manifest(lambda manifest: manifest["options"]["masking_options"].update(of_tomorrow=True))
    refuses(
        "manifest.json, of version .*, has masking_options that this version .* doesn't know", find, folder / "train*"
    )


def test_pieces_were_replaced_one_by_one(find, folder, edit_manifest):
    assert read_manifest(str(folder / "manifest.json"))["options"]["masking_options"]["replacement_unit"] == "piece"
    edit_manifest(lambda manifest: manifest["options"]["masking_options"].update(replacement_unit="span"))
    refuses("manifest.json says replacement_unit=span, but each piece", find, folder / "train*")
    edit_manifest(lambda manifest: manifest["options"]["masking_options"].pop("replacement_unit"))
    assert find(folder / "train*").masking.max_predictions_per_seq == 5


# The others have records of their own.
WITHOUT_FURTHER_FEATURES = [name for name, packing in PACKINGS.items() if {*packing.features} <= {LABEL_FEATURE}]


@pytest.mark.slow
@pytest.mark.parametrize("name", WITHOUT_FURTHER_FEATURES)
def test_manifest_says_how_examples_were_packed(find, folder, edit_manifest, name):
    def change(manifest):
        del manifest["features"]
        manifest["options"]["packing"] = name

    edit_manifest(change)
    assert find(folder / "train*").packing is PACKINGS[name]


def test_manifest_that_does_not_say_it_is_refused(find, folder, edit_manifest):
    def change(manifest):
        manifest["version"] = "0.2.0"
        manifest["options"]["sentence_pair"] = manifest["options"].pop("packing")

    edit_manifest(change)
    message = "manifest.json, of version 0.2.0, doesn't say how its examples are packed, .*; make the shards again with"
    refuses(message, find, folder / "train*")


def test_features_that_the_packing_does_not_have_are_refused(find, folder, edit_manifest):
    edit_manifest(lambda manifest: manifest.update(features={"language_ids": None}))
    refuses(r"declares the features \{'language_ids': None\} for the packing order, which has", find, folder / "train*")


def test_packing_that_is_not_known_is_refused(find, folder, edit_manifest):
    edit_manifest(lambda manifest: manifest["options"].update(packing="of_tomorrow"))
    refuses("manifest.json: there is no packing of_tomorrow; use one of order, next", find, folder / "train*")


def test_held_out_file_takes_the_place_of_the_manifests(find, dynamic_shards, static_shards):
    found = find(dynamic_shards.train_paths[0], static_shards.held_out_paths[0])
    assert found.train_paths == dynamic_shards.train_paths[:1]
    assert found.held_out_paths == static_shards.held_out_paths


def test_held_out_shards_of_another_tokenizer_are_refused(find, folder, static_shards, tmp_path, tiny_tokenizer):
    other = shutil.copytree(static_shards.folder, tmp_path / "other")
    KoreanWordPieceTokenizer(tiny_tokenizer.vocabulary, lower_case=False).save(other)
    message = f"`held_out_file`: the shards beside {other}/tokenizer.json were made with that tokenizer"
    refuses(message, find, folder / "train*", other / "held_out.tfrecord")


def test_training_shards_of_several_tokenizers_are_refused(find, static_shards, tmp_path, tiny_tokenizer):
    """Of bare shards, which no manifest tells apart."""
    for name in ("a", "b"):
        folder = shutil.copytree(static_shards.folder, tmp_path / name)
        (folder / "manifest.json").unlink()
    lengths = {"max_seq_length": 32, "max_predictions_per_seq": 5}
    assert find(tmp_path / "*" / "train*", **lengths).tokenizer is not None
    KoreanWordPieceTokenizer(tiny_tokenizer.vocabulary, lower_case=False).save(tmp_path / "b")
    message = f"`input_file`: the shards beside {tmp_path}/b/tokenizer.json were made with that tokenizer"
    refuses(message, find, tmp_path / "*" / "train*", **lengths)
    for path in (tmp_path / "a").glob("[tv]o*"):
        path.unlink()  # of the first folder nothing is known
    refuses(message, find, tmp_path / "*" / "train*", **lengths)


def test_shards_without_held_out_examples_have_none(find, build_shards, random_documents, tmp_path):
    shards = build_shards(tmp_path, random_documents(5), held_out_fraction=0.0)
    assert find(shards.train_paths[0]).held_out_paths == []


def test_bare_masked_shards_are_read_as_the_flags_say(find, bare_folder, prepare):
    found = find(bare_folder / "*", max_seq_length=32, max_predictions_per_seq=5)
    assert (found.tokenizer, found.manifest, found.held_out_paths) == (None, {}, [])
    assert (found.examples_per_shard, found.packing.name) == (None, "order")
    assert found.train_options.is_static
    assert next(iter(train_dataset(found.train_paths, found.train_options, prepare, 2, 1)))["input_ids"].shape == [
        2,
        32,
    ]


def test_bare_masked_shards_default_to_the_originals_lengths(find, bare_folder, config):
    # 512 and 20, which these don't have.
    long_config = dataclasses.replace(config, max_position_embeddings=512)
    refuses("`max_seq_length=512` and `max_predictions_per_seq=20`", find, bare_folder / "*", config=long_config)


@pytest.mark.parametrize(("flag", "value", "held"), [("max_seq_length", 64, 32), ("max_predictions_per_seq", 20, 5)])
def test_flag_that_contradicts_the_manifest_is_refused(find, folder, flag, value, held):
    message = f"`{flag}={value}` contradicts {folder}/manifest.json, which says {held}"
    refuses(message, find, folder / "train*", **{flag: value})
    assert find(folder / "train*", **{flag: held})


@pytest.mark.parametrize("with_manifest", [True, False])
def test_model_of_another_vocabulary_size_is_refused(find, folder, config, with_manifest):
    if not with_manifest:
        (folder / "manifest.json").unlink()
    wrong = dataclasses.replace(config, vocab_size=30000)
    message = f"vocab_size in `albert_config_file` is 30000, but .* {config.vocab_size} pieces"
    refuses(message, find, folder / "train*", max_seq_length=32, max_predictions_per_seq=5, config=wrong)


def test_manifest_alone_knows_the_vocabulary_size_too(find, static_shards, config, tmp_path):
    folder = shutil.copytree(static_shards.folder, tmp_path / "data")
    (folder / "tokenizer.json").unlink()
    assert find(folder / "train*").tokenizer is None
    wrong = dataclasses.replace(config, vocab_size=30000)
    message = f"30000, but {folder}/manifest.json has {config.vocab_size} pieces"
    refuses(message, find, folder / "train*", config=wrong)


def test_sequences_longer_than_the_models_positions_are_refused(find, folder, config):
    short = dataclasses.replace(config, max_position_embeddings=16)
    refuses(
        "the shards' max_seq_length=32 is more than .*max_position_embeddings, 16; make sequences",
        find,
        folder / "train*",
        config=short,
    )


def test_missing_shards_are_refused(find, folder):
    refuses(f"`input_file`: no file matches {folder}/gone\\*", find, folder / "gone*")
    refuses("`input_file`: no file given", find, None)
    refuses(f"`input_file`: {folder}/held_out.tfrecord names held-out shards only", find, folder / "held_out.tfrecord")


def test_shard_that_the_manifest_lists_must_be_there(find, folder):
    (folder / "train-00001-of-00003.tfrecord").unlink()
    refuses("train-00001-of-00003.tfrecord is missing, but .*/manifest.json lists it", find, folder / "train*")


def test_shard_that_the_manifest_does_not_list_is_refused(find, folder, dynamic_shards):
    shutil.copy(folder / "train-00001-of-00003.tfrecord", folder / "train-00007-of-00008.tfrecord")
    refuses("`input_file`: .*/train-00007-of-00008.tfrecord is not among the shards", find, folder / "train*")
    two_builds = [dynamic_shards.train_paths[0], folder / "train-00000*"]
    refuses(f"{folder}/train-00000-of-00003.tfrecord is not among .* {dynamic_shards.folder}/m", find, two_builds)


def test_some_of_the_shards_may_be_chosen(find, folder):
    found = find(folder / "train-0000[12]*")
    assert [path[-23:-18] for path in found.train_paths] == ["00001", "00002"]
    assert found.examples_per_shard == found.manifest["splits"]["train"]["examples_per_shard"][1:]


def test_unfinished_build_is_refused(find, folder):
    (folder / "create_pretraining_data.unfinished").mkdir()
    assert find(folder / "train*"), "the manifest vouches for the shards of an earlier build"
    (folder / "manifest.json").unlink()
    message = f"{folder} holds shards of an unfinished build; run create_pretraining_data.py --resume"
    refuses(message, find, folder / "train*")
    refuses(message, find, folder / "none of these is there yet*")
    refuses(message, find, folder.parent / "d*" / "train*")


def test_missing_held_out_shards_are_refused(find, folder):
    refuses("`held_out_file`: no file matches gone", find, folder / "train*", "gone")
    (folder / "held_out.tfrecord").unlink()
    refuses(f"`held_out_file`: no file matches {folder}/held_out.tfrecord", find, folder / "train*")


@pytest.mark.slow
def test_held_out_shards_of_another_length_are_refused(find, folder, build_shards, random_documents, tmp_path):
    other = build_shards(tmp_path / "other", random_documents(20), max_seq_length=16).held_out_paths[0]
    refuses(f"{other} doesn't hold examples of `max_seq_length=32`", find, folder / "train*", other)


def test_unmasked_shards_without_their_tokenizer_are_refused(find, folder):
    (folder / "tokenizer.json").unlink()
    refuses("is not masked yet; put tokenizer.json and vocab.txt", find, folder / "train*")


def test_tokenizer_that_did_not_make_the_shards_is_refused(find, folder, tiny_tokenizer):
    pieces = tiny_tokenizer.vocabulary.pieces
    KoreanWordPieceTokenizer(Vocabulary([*pieces[:-2], *pieces[:-3:-1]])).save(folder)
    refuses(f"{folder}/tokenizer.json is not the tokenizer that the shards were made with", find, folder / "train*")


def test_vocabulary_swapped_under_its_tokenizer_is_refused(find, folder, tiny_tokenizer):
    Vocabulary(tiny_tokenizer.vocabulary.pieces[:-1]).to_file(folder / "vocab.txt")
    refuses("vocab.txt is not the vocabulary that .*tokenizer.json was written for", find, folder / "train*")


def test_manifest_of_something_else_is_ignored_where_it_says_nothing(find, bare_folder):
    (bare_folder / "manifest.json").write_text('{"name": "a web page"}')
    assert find(bare_folder / "*.tfrecord", max_seq_length=32, max_predictions_per_seq=5).train_options.is_static
