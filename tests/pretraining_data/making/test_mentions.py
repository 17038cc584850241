"""Mentions of entities, by a list of names, become units of masking, which packings cut only where they must."""

import dataclasses
import hashlib
import itertools
import json
import random
import shutil

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.pretraining_data import PACKINGS
from albert_tf.pretraining_data.entities import NameList
from albert_tf.pretraining_data.making.beam_pipeline import run_on_beam
from albert_tf.pretraining_data.making.builder import build, shard_paths
from albert_tf.pretraining_data.making.chunk_examples import BuilderOptions, ExampleMaker
from albert_tf.pretraining_data.manifest import manifest_identity
from albert_tf.pretraining_data.masking import MaskingOptions, mask_batch
from albert_tf.pretraining_data.show import ShardReader, show_shard
from albert_tf.reading.documents import CorpusReader, Documents

# Of one word and of several, and one that another begins with.
NAMES = ("가나", "가나 다", "라", "마바사")
LONG_NAME = "가 나 다 라 마 바"
OPTIONS = BuilderOptions(32, MaskingOptions(5), packing="document_sentences", short_seq_prob=0.0, held_out_fraction=0.0)
OF_PAIRS = ("next", "order")  # a segment ends wherever the drawn length says
OF_WHOLE_SENTENCES = ("document_sentences", "full_sentences", "halves")


@pytest.fixture(scope="module")
def list_of(tiny_tokenizer):
    """Makes a list of names; returns it, and options that go with it."""

    def names_of(names, **options):
        options = dataclasses.replace(OPTIONS, **options)
        if not names:
            return None, options
        names = NameList.from_rows([(name, "") for name in names], tiny_tokenizer)
        return names, dataclasses.replace(options, names_sha256=names.sha256, num_names=len(names))

    return names_of


@pytest.fixture(scope="module")
def names(list_of):
    return list_of(NAMES)[0]


@pytest.fixture
def segments_of(tiny_tokenizer, list_of):
    """Makes examples of documents; returns each segment as its units, a mention in angle brackets."""

    def segments(documents, names=NAMES, **options):
        names, options = list_of(names, **options)
        digests = [hashlib.sha256("\n".join(lines).encode()).digest() for lines in documents]
        examples, _ = ExampleMaker(tiny_tokenizer, options, names).make(Documents((0, 0), documents, digests, digests))
        examples = examples["train"]
        pieces = np.array(tiny_tokenizer.vocabulary.pieces)[examples.ids]
        starts, in_mention = examples.pieces >> 31 == 1, examples.pieces >> 30 & 1 == 1
        lengths = np.stack([examples.first_lengths, examples.second_lengths], axis=1).ravel()
        ends = np.cumsum(lengths)
        for begin, end in zip(ends - lengths, ends):
            if begin == end:  # there is no second segment
                continue
            units = []
            for first, last in itertools.pairwise([*np.flatnonzero(starts[begin:end]) + begin, end]):
                assert len(set(in_mention[first:last])) == 1
                text = " ".join(pieces[first:last]).replace(" ##", "")
                units.append(f"<{text}>" if in_mention[first] else text)
            yield units

    return segments


def test_mention_is_a_unit_and_josa_another(segments_of):
    [units] = segments_of([["가나하 가나 다라 하가나 나다 라라"]])
    assert units == ["<가나>", "##하", "<가나 다>", "##라", "하가나", "나다", "<라>", "##라"]


def test_no_mention_goes_on_in_the_next_sentence(segments_of):
    assert list(segments_of([["하 가나", "다 하"]])) == [["하", "<가나>", "다", "하"]]


def documents_of(num_documents, seed, name=LONG_NAME):
    """Documents of sentences with 8 to 54 words around a name."""
    draw = random.Random(seed)

    def sentence():
        sides = [" ".join(["하"] * draw.randint(4, 27)) for _ in range(2)]
        return f"{sides[0]} {name}하 {sides[1]}"

    return [[sentence() for _ in range(draw.randint(3, 6))] for _ in range(num_documents)]


@pytest.mark.parametrize("packing", OF_WHOLE_SENTENCES)
def test_mentions_stay_whole(segments_of, packing):
    documents = documents_of(40, seed=3)
    units = [unit for segment in segments_of(documents, [LONG_NAME], packing=packing) for unit in segment]
    assert [unit for unit in units if unit[0] == "<"] == [f"<{LONG_NAME}>"] * sum(map(len, documents))
    assert units.count("##하") == sum(map(len, documents))


@pytest.mark.parametrize("packing", OF_PAIRS)
def test_mentions_of_pairs_are_whole_but_for_where_a_segment_ends(segments_of, packing):
    segments = list(segments_of(documents_of(40, seed=3), [LONG_NAME], packing=packing))
    assert len(segments) > 100
    for *units, last in segments:
        assert {unit for unit in units if unit[0] == "<"} <= {f"<{LONG_NAME}>"}
        assert last[0] != "<" or LONG_NAME.startswith(last[1:-1])


@pytest.mark.parametrize("packing", [*OF_WHOLE_SENTENCES, *OF_PAIRS])
def test_mention_that_has_to_be_cut_is_cut_between_its_words(segments_of, packing):
    name = " ".join(["가나다라"] * 8)
    segments = segments_of([["하 " * number + name for number in range(6)]] * 3, [name], packing=packing)
    parts = [unit for segment in segments for unit in segment if unit[0] == "<"]
    assert len(parts) > 5 and {part[1] for part in parts} == {"가"}


@pytest.mark.parametrize("packing", [*OF_WHOLE_SENTENCES, *OF_PAIRS])
def test_names_that_are_nowhere_change_nothing(segments_of, random_documents, packing):
    documents = random_documents(30, num_words=(1, 40))
    plain, with_name = (list(segments_of(documents, names, packing=packing)) for names in ([], ["가나다라마바사아"]))
    assert plain == with_name


@pytest.mark.parametrize(
    ("packing", "num_words"),
    [("order", 1), ("order", 16), *((name, 7) for name, packing in PACKINGS.items() if packing.masks_pieces)],
)
def test_manifest_counts_mentions_as_a_reader_does(tmp_path, write_corpus, tiny_tokenizer, list_of, packing, num_words):
    name = " ".join(["가나"] * num_words)
    path = write_corpus(tmp_path / "corpus.txt", [*documents_of(20, 5, name), [f"{name}하", f"{name}하"]])
    names, options = list_of([name], packing=packing, masking="static")
    shard = str(tmp_path / "data" / "train.tfrecord")
    train = build(CorpusReader([path]), tiny_tokenizer, options, [shard], [], names=names)["splits"]["train"]
    batches = list(ShardReader(shard).read())
    assert train["mentions"] == sum((batch.in_mention & batch.word_starts).sum() for batch in batches) > 0
    num_pieces = sum(batch.is_used.sum() for batch in batches)
    assert train["share_in_mentions"] == round(sum(batch.in_mention.sum() for batch in batches) / num_pieces, 4)


def test_mentions_too_long_to_be_masked_have_no_share_of_what_is_masked(
    capsys, tmp_path, write_corpus, tiny_tokenizer, list_of
):
    path = write_corpus(tmp_path / "corpus.txt", [[LONG_NAME]] * 20)
    names, options = list_of([LONG_NAME], masking="static")
    shard = str(tmp_path / "data" / "train.tfrecord")
    train = build(CorpusReader([path]), tiny_tokenizer, options, [shard], [], names=names)["splits"]["train"]
    assert train["share_masked"] == 0.0 and train["mentions"] == 20
    assert "share_of_masked_in_mentions" not in train
    show_shard(shard, 1)
    assert "0.00% of the pieces to predict" in capsys.readouterr().out


@pytest.fixture(scope="module")
def build_in(tiny_tokenizer, random_documents, write_corpus, tmp_path_factory):
    """Builds shards of random documents, with names or without."""
    folder = tmp_path_factory.mktemp("mentions")
    mentions = itertools.cycle(["가나하", "다 가나 다 하", "마바사", ""])
    documents = [[f"{text} {next(mentions)}" for text in document] for document in random_documents(60)]

    def build_shards(name, names=None, runner=None, **options):
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
        return data, build(*common, names=names)

    return build_shards


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (False, {"names_sha256": "0" * 64}, "are of other names than `names`"),
        (True, {"num_names": 3}, "are of other names than `names`"),
        (True, {"packing": "document_blocks"}, "`packing=document_blocks` are not masked"),
        (True, {"masking_options": MaskingOptions(5, do_whole_word_mask=False)}, "do_whole_word_mask"),
    ],
)
def test_options_and_names_that_contradict_each_other_are_refused(build_in, names, given, options, message):
    if given:
        options = {"names_sha256": names.sha256, "num_names": len(names), **options}
    with pytest.raises(InputError, match=message) as refusal:
        build_in("refused", names if given else None, **options)
    assert "\n" not in str(refusal.value)


@pytest.fixture(scope="module")
def unmasked(build_in, names):
    """The folder of shards with names."""
    return build_in("unmasked", names)[0]


@pytest.mark.slow
def test_beam_knows_the_names(build_in, names, unmasked, contents_of):
    pytest.importorskip("apache_beam", reason="needs Apache Beam: pip install -r requirements-beam.txt")
    beam, _ = build_in("beam", names, "DirectRunner")
    assert contents_of(unmasked) == contents_of(beam)


@pytest.fixture(scope="module")
def both(build_in, names):
    """Masked shards of the same documents with names and without: folder and manifest of each."""
    return [build_in(name, given, masking="static") for name, given in (("names", names), ("words", None))]


def test_manifest_says_names_and_mentions(both, names):
    (_, manifest), (_, plain) = both
    assert manifest["options"]["names_sha256"] == names.sha256
    assert manifest["options"]["num_names"] == len(names) == 4
    assert manifest["features"]["in_mention"] is None and "in_mention" in manifest["features"]
    train = manifest["splits"]["train"]
    assert train["share_masked"] == pytest.approx(plain["splits"]["train"]["share_masked"], abs=0.001)
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


def test_masks_of_training_take_mentions_whole(unmasked, find):
    shards = find(str(unmasked / "train*"))
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
