"""Tables of translations become pairs in both orders, whole ones alone; a bad table costs one sentence."""

import functools
import gzip
import json
import random

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.pretraining_data import records
from albert_tf.pretraining_data.full_sentences import TranslationPairs
from albert_tf.pretraining_data.languages import SourceReader
from albert_tf.pretraining_data.packing import Text
from albert_tf.pretraining_data.shards import find_shards

FIRST, SECOND = "가나다라마바사아", "자차카타파하거너"  # what the texts of either language are made of


def test_pairs_stay_whole_in_orders_that_are_drawn():
    lengths = np.random.default_rng(0).integers(1, 12, [2000, 2])
    ends = np.cumsum(lengths).reshape(-1, 2)
    pairs = [np.array([end - length - other, end - other, end]) for (_, end), (length, other) in zip(ends, lengths)]
    packing, room = TranslationPairs(), 15
    kept, counts = packing.select([*pairs, np.array([0, 3])], room)
    sizes = lengths.sum(axis=1)
    assert counts == {"empty_pairs": 1, "long_pairs": int((sizes > room).sum())} and len(kept) == (sizes <= room).sum()
    segments = list(packing.make_segments(Text(kept, None, None), room, 0.0, random.Random(0)))
    for (begin, middle, end), each in zip(kept, segments, strict=True):
        first, second = (begin, middle), (middle, end)
        assert each == ((*second, *first, 1) if each.label else (*first, *second, 0))
    ones = sum(each.label for each in segments)
    assert abs(ones - len(kept) / 2) < 4 * np.sqrt(len(kept) / 4)


def pairs_of(count, longest=6):
    draws = np.random.default_rng(count)

    def text(letters):
        return " ".join("".join(draws.choice(list(letters), 2)) for _ in range(draws.integers(1, longest)))

    return [(text(FIRST), text(SECOND)) for _ in range(count)]


def write_table(path, rows, columns=("korean", "english")):
    """Writes a table as the end of its name says."""
    separator = "," if ".csv" in path.name else "\t"
    text = "\n".join(separator.join(row) for row in [columns, *rows]) + "\n"
    if ".jsonl" in path.name:
        text = "\n".join(json.dumps(dict(zip(columns, row)), ensure_ascii=False) for row in rows) + "\n"
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.fixture
def create(create):
    """Runs the script for pairs; flags may be replaced or added."""
    return functools.partial(create, objective="translation", max_seq_length=24, held_out_fraction=0.2)


def read(path, features={"languages": 2}, num_predictions=None):  # noqa: B006
    spec = records.feature_spec(24, num_predictions, features)
    parsed = tf.io.parse_example(list(tf.data.TFRecordDataset([str(path)])), spec)
    return {name: values.numpy() for name, values in parsed.items()}


@pytest.mark.parametrize("name", ["pairs.csv.gz", "pairs.jsonl"])
def test_every_table_gives_the_same_pairs(create, run_script, read_manifest, workspace, name, tiny_tokenizer):
    rows = pairs_of(60)
    result = create(input_file=write_table(workspace / name, rows))
    assert (result.code, result.errors) == (0, "")
    manifest = read_manifest()
    split = manifest["splits"]["train"]
    assert manifest["features"] == {"languages": 2} and manifest["options"]["sources"] == ["korean+english"]
    assert manifest["long_pairs"] == 60 - sum(each["pairs"] for each in manifest["splits"].values())
    assert f"left out: {manifest['long_pairs']} long pairs, 0 empty pairs" in result.output
    assert f"{split['pairs']} pairs, {split['share_other_order']:.1%} with the second language first" in result.output
    shard = workspace / "data" / "train.tfrecord"
    shown = run_script("create_pretraining_data.py", inspect=shard, num_inspected=9).output
    assert "label 0, in the order of the table's columns" in shown and "label 1, the second column first" in shown
    found = read(shard)
    encoded = {tuple(tuple(tiny_tokenizer.encode_ids([text])[0].numpy()) for text in row) for row in rows}
    labels = found["next_sentence_labels"][:, 0]
    for ids, mask, segments, label, languages in zip(
        found["input_ids"], found["input_mask"], found["segment_ids"], labels, found["languages"]
    ):
        texts = [tuple(ids[(segments == which) & (mask == 1)][1 - which : -1]) for which in (0, 1)]
        assert tuple(texts[::-1] if label else texts) in encoded
        assert languages.tolist() == ([1, 0] if label else [0, 1])
    assert split["share_other_order"] == pytest.approx(labels.mean(), abs=1e-4) and 0.2 < labels.mean() < 0.8
    assert "share_masked" in manifest["splits"]["held_out"] and "unigram_entropy" in manifest["splits"]["held_out"]


def test_text_and_pairs_go_into_shards_of_their_own(
    create, read_manifest, workspace, write_corpus, random_documents, config
):
    write_corpus(workspace / "ko.txt", random_documents(30))
    write_corpus(workspace / "en.txt", random_documents(20, seed=8))
    table = write_table(workspace / "pairs.tsv", pairs_of(40))
    files = ",".join(str(path) for path in (workspace / "ko.txt", workspace / "en.txt", table))
    languages = "korean,english,korean+english"
    result = create(input_file=files, languages=languages, num_shards=2)
    assert (result.code, result.errors) == (0, "")
    shards = find_shards([str(workspace / "data" / "train-*")], config)
    assert shards.sources == tuple(languages.split(","))
    assert shards.sources_of_shards == [0, 0, 1, 1, 2, 2]
    assert read_manifest()["source_per_input_file"] == languages.split(",")
    # Not finished if the languages are exchanged, or said of other files.
    for others, resumed in ((languages, "nothing to resume"), ("english,korean,korean+english", "pass --overwrite")):
        result = create(input_file=files, languages=others, num_shards=2, resume=True)
        assert resumed in result.output + result.errors
    split = read_manifest()["splits"]["train"]
    assert sum(shards.tokens_of_sources) == split["tokens"] == sum(split["tokens_per_source"].values())
    numbers = {0: {(0, 0)}, 1: {(1, 1)}, 2: {(0, 1), (1, 0)}}
    for path, source in zip(shards.train_paths, shards.sources_of_shards):
        found = read(path)
        assert {tuple(each) for each in found["languages"].tolist()} == numbers[source]
        assert found["segment_ids"].any() == (source == 2)
    held_out = read(workspace / "data" / "held_out.tfrecord", num_predictions=4)
    assert {tuple(each) for each in held_out["languages"].tolist()} == {(0, 0), (1, 1), (0, 1), (1, 0)}
    assert sum(found["next_sentence_labels"].size for found in [held_out]) == len(held_out["languages"])


def test_bad_rows_are_named_or_counted(create, refuses, read_manifest, workspace):
    rows = pairs_of(30)
    rows[4] = (rows[4][0], " ")
    rows[7] = ("뷁", "\u200b")  # nothing is left of the second
    table = write_table(workspace / "pairs.tsv", [*rows, ("하나",)])
    empty = f'{table}, line 6: "english" is empty; a pair needs a text in both languages, or pass --on_bad_text=skip'
    refuses(empty, input_file=table)
    result = create(input_file=table, on_bad_text="skip")
    assert (result.code, result.errors) == (0, "")
    manifest = read_manifest()
    assert (manifest["bad_lines"], manifest["documents"]) == (2, 29)
    assert manifest["empty_pairs"] + manifest["bad_lines"] >= 2


def test_table_is_judged_by_all_of_its_rows(tmp_path):
    bad, good = [("가", " ")] * 1001, [("가", "a")] * 1002
    reader = SourceReader([str(write_table(tmp_path / "pairs.tsv", [*bad, *good]))], "skip", sources=["korean+english"])
    (chunk,) = reader.chunks(0)
    assert (len(chunk.documents), chunk.counts["bad_lines"]) == (1002, 1001)
    path = write_table(tmp_path / "bad.tsv", [*bad, *good[1:], *bad[:1]])
    with pytest.raises(InputError, match=r"bad.tsv, line 2: .* \(1,002 of 2,003 rows are bad, which is too much for"):
        list(SourceReader([str(path)], "skip", sources=["korean+english"]).chunks(0))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"languages": "korean+german"}, "no column named german; the header has korean, english; name the languages"),
        ({"languages": "korean,english"}, "--languages names 2 (korean, english) and --input_file 1 paths or globs"),
        ({"languages": "a+b+c"}, "'a+b+c' is neither a language nor two of them, as in korean+english"),
        ({"objective": "roberta"}, "pairs.tsv is a table, for --objective=translation; other objectives need text"),
        (
            {"objective": "roberta", "languages": "korean+english"},
            "korean+english is a table of pairs, which only --objective=translation takes; leave it out",
        ),
        ({"languages": "korean"}, "pairs.tsv is a table, for --objective=translation"),
        ({"max_seq_length": 8, "max_predictions_per_seq": 2}, "no pair fits an example"),
    ],
)
def test_what_does_not_go_together_is_one_sentence(refuses, workspace, changes, message):
    table = write_table(workspace / "pairs.tsv", [(one * 4, two * 4) for one, two in pairs_of(20)])
    refuses(message, input_file=table, **changes)


def test_table_without_names_is_not_read_as_if_it_had_them(create, refuses, workspace):
    """A first pair would be taken for the names of two languages, and be in no example."""
    table = write_table(workspace / "pairs.tsv", pairs_of(20), ("첫째 문장", "first sentence"))
    refuses(
        "begins with '첫째 문장' and 'first sentence', which look like texts, not the names of two", input_file=table
    )
    assert create(input_file=table, languages="첫째 문장+first sentence").code == 0


def test_language_without_examples_is_named(refuses, workspace, write_corpus, random_documents):
    files = write_corpus(workspace / "ko.txt", random_documents(40)) + f",{workspace / 'en.txt'}"
    (workspace / "en.txt").write_text("나 다\n")
    message = "of english are too few for its 3 shards; give more of its text"
    refuses(message, input_file=files, languages="korean,english", objective="roberta", num_shards=3)


def test_table_of_three_columns_asks_for_two(create, refuses, read_manifest, workspace):
    rows = [(*row, "0") for row in pairs_of(20)]
    table = write_table(workspace / "pairs.csv", rows, ("korean", "english", "score"))
    refuses("has the columns korean, english, score, but a pair has two; name these with --languages", input_file=table)
    assert create(input_file=table, languages="english+korean").code == 0
    assert read_manifest()["options"]["sources"] == ["english+korean"]
