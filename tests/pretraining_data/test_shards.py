"""Shards, manifest, tokenizer, flags and model must go together; each contradiction stops with one sentence."""

import dataclasses
import json
import shutil

import pytest
import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.pretraining_data import PACKINGS
from albert_tf.pretraining_data.input_pipeline import train_dataset
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.vocabulary import Vocabulary

LENGTHS = {"max_seq_length": 32, "max_predictions_per_seq": 5}
SECOND = "train-00001-of-00003.tfrecord"


@pytest.fixture
def refuses(find):
    """Checks that shards are refused in one sentence that says `message`."""

    def check(message, *arguments, **options):
        with pytest.raises(InputError, match=message) as failure:
            find(*arguments, **options)
        assert "\n" not in str(failure.value)
        assert not str(failure.value).endswith(".")

    return check


@pytest.fixture
def edit_manifest(folder):
    """Changes the manifest of `folder`: calls a function with it."""

    def edit(change):
        path = folder / "manifest.json"
        manifest = json.loads(path.read_text(encoding="utf-8"))
        change(manifest)
        path.write_text(json.dumps(manifest), encoding="utf-8")

    return edit


@pytest.fixture
def bare_folder(static_shards, tmp_path):
    """Masked shards as the original makes them: with nothing beside them."""
    folder = tmp_path / "bare"
    folder.mkdir()
    for path in static_shards.train_paths:
        shutil.copy(path, folder)
    return folder


def test_manifest_and_tokenizer_say_how_to_read(find, dynamic_shards, tiny_tokenizer):
    found = find(dynamic_shards.folder / "*.tfrecord")
    assert found.train_paths == dynamic_shards.train_paths
    assert found.held_out_paths == dynamic_shards.held_out_paths
    assert found.tokenizer.identity == tiny_tokenizer.identity
    assert found.manifest["splits"].keys() == {"train", "held_out"}
    numbers = [sum(1 for _ in tf.data.TFRecordDataset(path)) for path in dynamic_shards.train_paths]
    assert found.examples_per_shard == numbers
    assert found.damage == {}
    assert (found.train_options.is_static, found.held_out_options.is_static) == (False, True)
    assert found.train_options.max_seq_length == found.held_out_options.max_seq_length == 32
    assert found.masking.tokens.mask_id == tiny_tokenizer.vocabulary.id_of("[MASK]")


def test_masking_and_packing_are_those_that_the_shards_were_made_with(find, folder, edit_manifest):
    changed = {"masked_lm_prob": 0.4, "ngram": 2, "do_whole_word_mask": False}

    def change(manifest):
        del manifest["features"]
        manifest["options"]["packing"] = "halves"
        manifest["options"]["masking_options"].update(changed)
        assert manifest["options"]["masking_options"].pop("replacement_unit") == "piece"

    edit_manifest(change)
    found = find(folder / "train*")
    options = dataclasses.asdict(found.masking)
    assert {name: options[name] for name in changed} == changed
    assert options["max_predictions_per_seq"] == 5
    assert found.packing is PACKINGS["halves"]


def of_another_version(manifest):
    manifest["version"] = "0.2.0"
    manifest["options"]["sentence_pair"] = manifest["options"].pop("packing")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda manifest: manifest["splits"]["held_out"].update(files=["../held_out.tfrecord"]),
            r'manifest.json names "../held_out.tfrecord", which is not a file in',
        ),
        (
            lambda manifest: manifest["options"]["masking_options"].update(of_tomorrow=True),
            "manifest.json, of version .*, has masking_options that this version .* doesn't know",
        ),
        (
            lambda manifest: manifest["options"]["masking_options"].update(replacement_unit="span"),
            "manifest.json says replacement_unit=span, but each piece",
        ),
        (
            of_another_version,
            "manifest.json, of version 0.2.0, doesn't say how its examples are packed, .*; make the shards again with",
        ),
        (
            lambda manifest: manifest.update(features={"language_ids": None}),
            r"declares the features \{'language_ids': None\} for the packing order, which has",
        ),
        (
            lambda manifest: manifest["options"].update(packing="of_tomorrow"),
            "manifest.json: there is no packing of_tomorrow; use one of order, next",
        ),
    ],
)
def test_manifest_that_makes_no_sense_here_is_refused(refuses, folder, edit_manifest, change, message):
    edit_manifest(change)
    refuses(message, folder / "train*")


def test_held_out_file_takes_the_place_of_the_manifests(find, dynamic_shards, static_shards):
    found = find(dynamic_shards.train_paths[0], static_shards.held_out_paths[0])
    assert found.train_paths == dynamic_shards.train_paths[:1]
    assert found.held_out_paths == static_shards.held_out_paths


def test_held_out_shards_of_another_tokenizer_are_refused(refuses, folder, static_shards, tmp_path, tiny_tokenizer):
    other = shutil.copytree(static_shards.folder, tmp_path / "other")
    KoreanWordPieceTokenizer(tiny_tokenizer.vocabulary, lower_case=False).save(other)
    message = f"`held_out_file`: the shards beside {other}/tokenizer.json were made with that tokenizer"
    refuses(message, folder / "train*", other / "held_out.tfrecord")


def test_training_shards_of_several_tokenizers_are_refused(find, refuses, static_shards, tmp_path, tiny_tokenizer):
    """Of bare shards, which no manifest tells apart."""
    for name in ("a", "b"):
        folder = shutil.copytree(static_shards.folder, tmp_path / name)
        (folder / "manifest.json").unlink()
    assert find(tmp_path / "*" / "train*", **LENGTHS).tokenizer is not None
    KoreanWordPieceTokenizer(tiny_tokenizer.vocabulary, lower_case=False).save(tmp_path / "b")
    message = f"`input_file`: the shards beside {tmp_path}/b/tokenizer.json were made with that tokenizer"
    refuses(message, tmp_path / "*" / "train*", **LENGTHS)
    for path in (tmp_path / "a").glob("[tv]o*"):
        path.unlink()  # of the first folder nothing is known
    refuses(message, tmp_path / "*" / "train*", **LENGTHS)


def test_shards_without_held_out_examples_have_none(find, build_shards, random_documents, tmp_path):
    shards = build_shards(tmp_path, random_documents(5), held_out_fraction=0.0)
    assert find(shards.train_paths[0]).held_out_paths == []


@pytest.mark.parametrize("manifest", [None, '{"name": "a web page"}'])
def test_bare_masked_shards_are_read_as_the_flags_say(find, bare_folder, prepare, manifest):
    if manifest:
        (bare_folder / "manifest.json").write_text(manifest)
    found = find(bare_folder / "*.tfrecord", **LENGTHS)
    assert (found.tokenizer, found.held_out_paths) == (None, [])
    assert (found.examples_per_shard, found.packing.name) == (None, "order")
    assert found.train_options.is_static
    batch = next(iter(train_dataset(found.train_paths, found.train_options, prepare, 2, 1)))
    assert batch["input_ids"].shape == [2, 32]


def test_bare_masked_shards_default_to_the_originals_lengths(refuses, bare_folder, config):
    # 512 and 20, which these don't have.
    long_config = dataclasses.replace(config, max_position_embeddings=512)
    refuses("`max_seq_length=512` and `max_predictions_per_seq=20`", bare_folder / "*", config=long_config)


@pytest.mark.parametrize(("flag", "value", "held"), [("max_seq_length", 64, 32), ("max_predictions_per_seq", 20, 5)])
def test_flag_that_contradicts_the_manifest_is_refused(find, refuses, folder, flag, value, held):
    message = f"`{flag}={value}` contradicts {folder}/manifest.json, which says {held}"
    refuses(message, folder / "train*", **{flag: value})
    assert find(folder / "train*", **{flag: held})


@pytest.mark.parametrize("without", ["manifest.json", "tokenizer.json"])
def test_model_of_another_vocabulary_size_is_refused(find, refuses, static_shards, config, tmp_path, without):
    folder = shutil.copytree(static_shards.folder, tmp_path / "data")
    (folder / without).unlink()
    assert (find(folder / "train*", **LENGTHS).tokenizer is None) == (without == "tokenizer.json")
    wrong = dataclasses.replace(config, vocab_size=30000)
    message = f"vocab_size in `albert_config_file` is 30000, but .* {config.vocab_size} pieces"
    refuses(message, folder / "train*", **LENGTHS, config=wrong)


def test_sequences_longer_than_the_models_positions_are_refused(refuses, folder, config):
    short = dataclasses.replace(config, max_position_embeddings=16)
    message = "the shards' max_seq_length=32 is more than .*max_position_embeddings, 16; make sequences"
    refuses(message, folder / "train*", config=short)


def test_missing_shards_are_refused(refuses, folder):
    refuses(f"`input_file`: no file matches {folder}/gone\\*", folder / "gone*")
    refuses("`input_file`: no file given", None)
    refuses(f"`input_file`: {folder}/held_out.tfrecord names held-out shards only", folder / "held_out.tfrecord")
    refuses("`held_out_file`: no file matches gone", folder / "train*", "gone")
    (folder / "held_out.tfrecord").unlink()
    refuses(f"`held_out_file`: no file matches {folder}/held_out.tfrecord", folder / "train*")
    (folder / SECOND).unlink()
    refuses(f"{SECOND} is missing, but .*/manifest.json lists it", folder / "train*")


def test_shard_that_the_manifest_does_not_list_is_refused(refuses, folder, dynamic_shards):
    shutil.copy(folder / SECOND, folder / "train-00007-of-00008.tfrecord")
    refuses("`input_file`: .*/train-00007-of-00008.tfrecord is not among the shards", folder / "train*")
    two_builds = [dynamic_shards.train_paths[0], folder / "train-00000*"]
    refuses(f"{folder}/train-00000-of-00003.tfrecord is not among .* {dynamic_shards.folder}/m", two_builds)


def test_some_of_the_shards_may_be_chosen(find, folder):
    found = find(folder / "train-0000[12]*")
    assert [path[-23:-18] for path in found.train_paths] == ["00001", "00002"]
    assert found.examples_per_shard == found.manifest["splits"]["train"]["examples_per_shard"][1:]


def test_unfinished_build_is_refused(find, refuses, folder):
    (folder / "create_pretraining_data.unfinished").mkdir()
    assert find(folder / "train*"), "the manifest vouches for the shards of an earlier build"
    (folder / "manifest.json").unlink()
    message = f"{folder} holds shards of an unfinished build; run create_pretraining_data.py --resume"
    for paths in (folder / "train*", folder / "none of these is there yet*", folder.parent / "d*" / "train*"):
        refuses(message, paths)


def test_held_out_shards_of_another_length_are_refused(refuses, folder, build_shards, random_documents, tmp_path):
    other = build_shards(tmp_path / "other", random_documents(20), max_seq_length=16).held_out_paths[0]
    refuses(f"{other} doesn't hold examples of `max_seq_length=32`", folder / "train*", other)


def test_unmasked_shards_need_the_tokenizer_that_made_them(refuses, folder, tiny_tokenizer):
    pieces = tiny_tokenizer.vocabulary.pieces
    Vocabulary(pieces[:-1]).to_file(folder / "vocab.txt")
    refuses("vocab.txt is not the vocabulary that .*tokenizer.json was written for", folder / "train*")
    KoreanWordPieceTokenizer(Vocabulary([*pieces[:-2], *pieces[:-3:-1]])).save(folder)
    refuses(f"{folder}/tokenizer.json is not the tokenizer that the shards were made with", folder / "train*")
    (folder / "tokenizer.json").unlink()
    refuses("is not masked yet; put tokenizer.json and vocab.txt", folder / "train*")


def without_sizes(manifest):
    """Makes a manifest that does not tell the sizes of shards."""
    for split in manifest["splits"].values():
        del split["bytes_per_shard"]


def change_byte(path, position):
    """Changes a byte; a negative position counts from the end."""
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("manifest.json", b"{", "manifest.json, line 1: not valid JSON"),
        ("manifest.json", b"[]", "manifest.json must hold one JSON object"),
        (SECOND, b"", f"{SECOND} contains no records"),
        (SECOND, b"text" * 20, f"{SECOND} is not a TFRecord file"),
        ("held_out.tfrecord", b"text" * 20, "held_out.tfrecord is not a TFRecord file"),
    ],
)
def test_damaged_file_is_named(refuses, folder, edit_manifest, name, content, message):
    edit_manifest(without_sizes)
    (folder / name).write_bytes(content)
    refuses(message, folder / "train*")


def test_shard_of_another_build_is_told_by_its_size_or_where_all_are_read_by_its_hash(find, refuses, folder):
    path = folder / SECOND
    records = list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())
    size = path.stat().st_size
    # With every checksum right: cut between two records, and of the same size.
    for written in (records[:-1], records[::-1]):
        with tf.io.TFRecordWriter(str(path)) as writer:
            for record in written:
                writer.write(record)
        reason = "changed since it was made, by its SHA-256"
        if path.stat().st_size != size:
            reason = f"{path.stat().st_size:,} bytes instead of {size:,}"
            refuses(f"damaged: {path} \\({reason}\\); .*--on_damaged_shard=skip", folder / "train*")
        assert find(folder / "train*", on_damaged_shard="skip").damage == {str(path): reason}


def test_damaged_shards_are_left_out_on_request(find, refuses, folder, edit_manifest):
    edit_manifest(without_sizes)
    paths = sorted(folder.glob("train*"))
    number = sum(1 for _ in tf.data.TFRecordDataset(str(paths[2])))
    change_byte(paths[2], -1)
    found = find(folder / "train*", on_damaged_shard="skip")
    assert found.damage == {str(paths[2]): f"record {number} can't be read"}
    assert found.train_paths == list(map(str, paths[:2]))
    assert found.examples_per_shard == found.manifest["splits"]["train"]["examples_per_shard"][:2]

    change_byte(paths[0], 30)
    change_byte(paths[1], 30)
    message = f"damaged: {paths[0]} .record 1 can't be read., {paths[1]} .* {paths[2]} "
    refuses(message, folder / "train*", on_damaged_shard="skip")


def test_bare_shards_are_read_through_on_request(find, refuses, bare_folder):
    (path,) = bare_folder.iterdir()
    change_byte(path, -1)
    assert find(path, **LENGTHS), "only the first record is read"
    refuses(f"damaged: {path} .record ", path, **LENGTHS, on_damaged_shard="skip")


def test_evaluation_leaves_no_shard_out(refuses, folder):
    path = folder / "held_out.tfrecord"
    path.write_bytes(path.read_bytes()[:-3])
    for on_damaged_shard in ("fail", "skip"):
        refuses(f"damaged: {path} \\(", folder / "train*", on_damaged_shard=on_damaged_shard)
