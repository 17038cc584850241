"""Mentions of entities, by a list of names, become units of masking."""

import dataclasses
import hashlib
import itertools
import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.pretraining_data import PACKINGS
from albert_tf.pretraining_data.entities import NameList
from albert_tf.pretraining_data.making.beam_pipeline import run_on_beam
from albert_tf.pretraining_data.making.builder import build, shard_paths, start_workers
from albert_tf.pretraining_data.making.chunk_examples import BuilderOptions, ExampleMaker
from albert_tf.pretraining_data.manifest import manifest_identity
from albert_tf.pretraining_data.masking import MaskingOptions, mask_batch
from albert_tf.pretraining_data.show import show_shard
from albert_tf.reading.documents import CorpusReader, Documents

# Of one word and of several, and one that another begins with.
NAMES = ("가나", "가나 다", "라", "마바사")
OPTIONS = BuilderOptions(32, MaskingOptions(5), packing="document_sentences", short_seq_prob=0.0, held_out_fraction=0.0)


@pytest.fixture(scope="module")
def names(tiny_tokenizer):
    return NameList.from_rows([(name, "") for name in NAMES], tiny_tokenizer)


def with_names(options, names):
    return dataclasses.replace(options, names_sha256=names.sha256, num_names=len(names))


@pytest.fixture
def units_of(tiny_tokenizer, names):
    """Makes examples of one document; returns each as its units, a mention in square brackets."""

    def units(sentences, **options):
        options = with_names(dataclasses.replace(OPTIONS, **options), names)
        digest = [hashlib.sha256("\n".join(sentences).encode()).digest()]
        examples, _ = ExampleMaker(tiny_tokenizer, options, names).make(Documents((0, 0), [sentences], digest, digest))
        ids = tiny_tokenizer.vocabulary.id_of("[PAD]"), *map(tiny_tokenizer.vocabulary.id_of, ("[CLS]", "[SEP]"))
        features = examples["train"].padded(options.max_seq_length, *ids, tells_mentions=True)
        return [list(_units(tiny_tokenizer, *row)) for row in zip(*(features[name] for name in _READ))]

    return units


_READ = ("input_ids", "input_mask", "token_boundary", "in_mention")


def _units(tokenizer, ids, mask, boundary, in_mention):
    pieces = [tokenizer.vocabulary.pieces[each] for each in ids]
    for unit in np.split(np.arange(mask.sum()), np.flatnonzero(boundary[: mask.sum()]))[1:]:
        text = " ".join(pieces[place] for place in unit).replace(" ##", "")
        assert len(set(in_mention[unit])) == 1
        yield f"[{text}]" if in_mention[unit[0]] else text


def test_mention_is_a_unit_and_josa_another(units_of):
    [units] = units_of(["가나하 가나 다라 하가나 나다 라라"])
    assert units[1:-1] == ["[가나]", "##하", "[가나 다]", "##라", "하가나", "나다", "[라]", "##라"]


def test_no_mention_goes_on_in_the_next_sentence(units_of):
    [units] = units_of(["하 가나", "다 하"])
    assert units[1:-1] == ["하", "[가나]", "다", "하"]


@pytest.mark.parametrize("packing", sorted(name for name, packing in PACKINGS.items() if packing.masks_pieces))
def test_every_packing_that_masks_keeps_the_units(units_of, packing):
    if PACKINGS[packing].takes_pairs:
        packing = PACKINGS[packing].of_one_language().name
    rows = units_of(["하하 가나하 하하", "하하 하하 마바사하"] * 4, packing=packing)
    units = [unit for row in rows for unit in row]
    assert {"[가나]", "[마바사]"} & set(units)
    assert not {"가나하", "마바사하"} & set(units)


@pytest.fixture(scope="module")
def build_in(tiny_tokenizer, random_documents, write_corpus, tmp_path_factory):
    """Builds shards of random documents, with names or without."""
    folder = tmp_path_factory.mktemp("mentions")
    mentions = itertools.cycle(["가나하", "다 가나 다 하", "마바사", ""])
    documents = [[f"{text} {next(mentions)}" for text in document] for document in random_documents(60)]

    def build_shards(name, names=None, runner=None, documents=documents, num_workers=1, **options):
        options = {"max_seq_length": 32, "masking_options": MaskingOptions(5), **options}
        if names:
            options = {"names_sha256": names.sha256, "num_names": len(names), **options}
        options = BuilderOptions(**options)
        data = folder / name
        path = write_corpus(folder / "corpus.txt", documents)
        paths = shard_paths(str(data / "train.tfrecord"), 2), [str(data / "held_out.tfrecord")]
        common = CorpusReader([path]), tiny_tokenizer, options, *paths
        if runner:
            return data, run_on_beam(*common, runner, [], names=names)
        return data, build(*common, start_workers(num_workers), names=names)

    return build_shards


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (False, {"names_sha256": "0" * 64}, "are of other names than `names`"),
        (True, {"names_sha256": "0" * 64, "num_names": 4}, "are of other names than `names`"),
        (True, {"names_sha256": "", "num_names": 0}, "are of other names than `names`"),
        (True, {"num_names": 3}, "are of other names than `names`"),
        (True, {"packing": "document_blocks"}, "`packing=document_blocks` are not masked"),
        (True, {"masking_options": MaskingOptions(5, do_whole_word_mask=False)}, "do_whole_word_mask"),
    ],
)
@pytest.mark.parametrize("runner", [None, "DirectRunner"])
def test_options_and_names_that_contradict_each_other_are_refused(build_in, names, given, options, message, runner):
    if runner:
        pytest.importorskip("apache_beam", reason="needs Apache Beam: pip install -r requirements-beam.txt")
    if given:
        options = {"names_sha256": names.sha256, "num_names": len(names), **options}
    with pytest.raises(InputError, match=message) as refusal:
        build_in("refused", names if given else None, runner, **options)
    assert "\n" not in str(refusal.value)


@pytest.fixture(scope="module")
def local(build_in, names):
    """The folder of shards that one process has made."""
    return build_in("local", names)[0]


@pytest.mark.slow
def test_workers_know_the_names(build_in, names, local, contents_of):
    workers, _ = build_in("workers", names, num_workers=2)
    assert contents_of(local) == contents_of(workers)


@pytest.mark.slow
def test_beam_knows_the_names(build_in, names, local, contents_of):
    pytest.importorskip("apache_beam", reason="needs Apache Beam: pip install -r requirements-beam.txt")
    beam, _ = build_in("beam", names, "DirectRunner")
    assert contents_of(local) == contents_of(beam)


@pytest.fixture(scope="module")
def both(build_in, names):
    """Masked shards of the same documents with names and without: folder and manifest of each."""
    return [build_in(name, given, masking="static") for name, given in (("names", names), ("words", None))]


def test_masked_share_is_that_of_words(both):
    shares = [manifest["splits"]["train"]["share_masked"] for _, manifest in both]
    assert shares[0] == pytest.approx(shares[1], abs=0.001)


def test_manifest_says_names_and_mentions(both, names):
    (_, manifest), (_, plain) = both
    assert manifest["options"]["names_sha256"] == names.sha256
    assert manifest["options"]["num_names"] == len(names) == 4
    assert manifest["features"]["in_mention"] is None and "in_mention" in manifest["features"]
    train = manifest["splits"]["train"]
    assert train["mentions"] > 100
    # [CLS] and [SEP] are among all pieces, and not among those that may be masked.
    share = train["share_in_mentions"] / (1 - 3 / train["mean_tokens_per_example"])
    assert train["share_of_masked_in_mentions"] == pytest.approx(share, rel=0.2)
    new = {"names_sha256", "num_names"}
    assert not new & plain["options"].keys() and "mentions" not in plain["splits"]["train"]
    assert "in_mention" not in plain["features"]
    assert manifest_identity(manifest) != manifest_identity(plain)


def test_mentions_are_counted_where_a_shard_is_shown(both, capsys):
    folder, manifest = both[0]
    show_shard(str(folder / "held_out.tfrecord"), 1)
    last = capsys.readouterr().out.splitlines()[-1]
    held_out = manifest["splits"]["held_out"]
    assert last.startswith(f"{held_out['mentions']:,} mentions of entities: {held_out['share_in_mentions']:.2%}"[:-2])
    assert f" and {held_out['share_of_masked_in_mentions']:.2%}"[:-2] in last


def test_masks_of_training_take_mentions_whole(local, tiny_tokenizer, find):
    shards = find(str(local / "train*"))
    records = list(tf.data.TFRecordDataset(shards.train_paths))
    read = ("input_ids", "input_mask", "segment_ids", "token_boundary", "in_mention")
    spec = {name: tf.io.FixedLenFeature([32], tf.int64) for name in read}
    features = {name: tf.cast(values, tf.int32) for name, values in tf.io.parse_example(records, spec).items()}
    masked = mask_batch(features, dataclasses.replace(shards.masking, ngram=1), tf.constant([1, 2]))
    is_chosen = np.zeros(features["input_ids"].shape, bool)
    rows, places = np.nonzero(masked["masked_lm_weights"])
    is_chosen[rows, masked["masked_lm_positions"].numpy()[rows, places]] = True
    units = np.cumsum(features["token_boundary"]) * (features["in_mention"].numpy().ravel() == 1)
    chosen_of = [is_chosen.ravel()[units == unit] for unit in np.unique(units)[1:]]
    assert sum(chosen.all() for chosen in chosen_of if len(chosen) > 1) > 10
    assert all(chosen.all() or not chosen.any() for chosen in chosen_of)


def test_shards_whose_mentions_the_text_itself_marked_are_read_as_before(both, find, tmp_path):
    """Earlier builders read marks too; their records are like those made with names."""
    marked, plain = (shutil.copytree(folder, tmp_path / folder.name) for folder, _ in both)
    manifest = json.loads((marked / "manifest.json").read_text())
    del manifest["options"]["names_sha256"], manifest["options"]["num_names"]
    manifest["options"]["entity_markup"] = True
    (marked / "manifest.json").write_text(json.dumps(manifest))
    assert find(str(marked / "train*"), str(marked / "held_out.tfrecord")).packing.name == "order"
    with pytest.raises(InputError, match="lists other names of entities"):
        find(str(marked / "train*"), str(plain / "held_out.tfrecord"))


def test_held_out_shards_of_other_names_are_refused(both, find, tmp_path):
    folders = [shutil.copytree(folder, tmp_path / folder.name) for folder, _ in both]
    find(str(folders[0] / "train*"), str(folders[0] / "held_out.tfrecord"))
    for one, other in (folders, folders[::-1]):
        with pytest.raises(InputError, match="lists other names of entities"):
            find(str(one / "train*"), str(other / "held_out.tfrecord"))
