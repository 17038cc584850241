"""What --inspect and --plot say of a shard is what an independent reader finds in it."""

import json
import pathlib
import re
import shutil

import numpy as np
import pytest

from albert_tf.errors import InputError
from albert_tf.pretraining_data.inspection.plots import plot_shard
from albert_tf.pretraining_data.inspection.show import inspect_shard
from albert_tf.pretraining_data.inspection.statistics import ShardStatistics
from albert_tf.pretraining_data.shard_reader import ShardReader

pytestmark = pytest.mark.slow


def inspect(path, num_examples=2, use_colour=False):
    lines = []
    inspect_shard(path, num_examples, use_colour, lines.append)
    return "\n".join(lines)


@pytest.fixture(scope="module")
def masked_shard(build_shards, random_documents, tmp_path_factory):
    """A larger static shard, for statistics."""
    folder = tmp_path_factory.mktemp("masked")
    return build_shards(folder, random_documents(600, num_sentences=(4, 12)), masking="static", held_out_fraction=0.0)


def shown_words(record, pieces):
    """The first segment of an example as --inspect should show it without colours, put together piece by piece."""
    features, words = record.features, []
    original = dict(zip(features["masked_lm_positions"], features["masked_lm_ids"]))
    for position in range(int(features["input_mask"].sum())):
        if features["segment_ids"][position]:
            break
        seen = pieces[features["input_ids"][position]]
        text = seen
        if position and position in original:
            was = pieces[original[position]]
            change = "" if seen == "[MASK]" else "=" if seen == was else f"→{seen}"
            text = f"{{{was}{change}}}"
        words.append(text)
    return words


def test_examples_are_shown_with_masks_and_what_they_hide(static_shards, read_records, tiny_tokenizer):
    pieces = tiny_tokenizer.vocabulary.pieces
    output = inspect(static_shards.train_paths[0], num_examples=5)
    for number, record in enumerate(read_records(static_shards.train_paths)[:5], start=1):
        shown = re.search(rf"example {number}: (.*?)\n\s*A(.*?)\n\s*B(.*?)(\n\n|$)", output, re.DOTALL)
        assert f"{int(record.features['input_mask'].sum())} pieces" in shown[1]
        assert f"{int(record.features['masked_lm_weights'].sum())} to predict" in shown[1]
        assert f"label {record.features['next_sentence_labels'][0]}" in shown[1]
        # Spaces, line ends and marks between pieces aside, and without the prefix that the joined pieces have lost.
        expected = "".join(shown_words(record, pieces)).replace("##", "")
        assert re.sub(r"[\s·]", "", shown[2]).replace("##", "") == expected


def test_colours_change_nothing_but_colours(static_shards):
    path = static_shards.train_paths[0]
    coloured = inspect(path, use_colour=True)
    assert "\033[" in coloured
    assert re.sub(r"\033\[[\d;]*m", "", coloured) == inspect(path)


def test_statistics_are_those_of_an_independent_reader(masked_shard, read_records, tiny_tokenizer):
    records = read_records(masked_shard.train_paths)
    statistics = ShardStatistics(ShardReader(masked_shard.train_paths[0]))
    lengths = [int(record.features["input_mask"].sum()) for record in records]
    assert statistics.num_examples == len(records)
    assert statistics.num_pieces == sum(lengths)
    assert statistics.median_length == np.median(lengths)
    assert statistics.label_ones == sum(int(record.features["next_sentence_labels"][0]) for record in records)
    mask_id, counts = tiny_tokenizer.vocabulary.id_of("[MASK]"), {"masked": 0, "kept": 0, "replaced": 0}
    for record in records:
        features = record.features
        for position, was, weight in zip(
            features["masked_lm_positions"], features["masked_lm_ids"], features["masked_lm_weights"]
        ):
            if weight:
                seen = features["input_ids"][position]
                counts["masked" if seen == mask_id else "kept" if seen == was else "replaced"] += 1
    assert (statistics.num_masked, statistics.num_kept, statistics.num_replaced) == tuple(
        counts[name] for name in ("masked", "kept", "replaced")
    )
    assert statistics.num_chosen == sum(counts.values())
    low, high = statistics.label_interval
    assert low < 0.5 < high


def test_runs_are_as_long_as_theory_expects(masked_shard):
    statistics = ShardStatistics(ShardReader(masked_shard.train_paths[0]))
    found = statistics.runs / statistics.runs.sum()
    standard_errors = np.sqrt(statistics.expected_runs * (1 - statistics.expected_runs) / statistics.runs.sum())
    for length in (1, 2, 3, 4):
        assert abs(found[length] - statistics.expected_runs[length]) < 5 * standard_errors[length] + 0.01
    # Neighbouring n-grams merge: theory must not be p(n) itself.
    assert abs(statistics.expected_runs[4:].sum() - found[4:].sum()) < 0.02


def test_dynamic_shard_shows_masks_that_an_epoch_could_have(dynamic_shards):
    output = inspect(dynamic_shards.train_paths[0])
    assert "dynamic, not masked yet" in output
    assert "{" in output and "to predict" in output


def test_permuted_pieces_are_expected_too(folder, edit_manifest):
    more = {"do_permutation": True, "max_predictions_per_seq": 12}
    edit_manifest(lambda manifest: manifest["options"]["masking_options"].update(more))
    statistics = ShardStatistics(ShardReader(folder / "train-00000-of-00003.tfrecord"))
    assert statistics.num_chosen / statistics.num_pieces == pytest.approx(statistics.expected_mask_rate, rel=0.1)


def test_bare_shard_of_the_original_shows_ids(static_shards, tmp_path):
    path = shutil.copy(static_shards.train_paths[0], tmp_path)
    output = inspect(path)
    assert "no vocab.txt beside it" in output
    assert re.search(r"\d+ \d+", output)


def test_other_files_are_refused(tmp_path, static_shards):
    text = tmp_path / "text.tfrecord"
    text.write_text("no records here", encoding="utf-8")
    damaged = tmp_path / "damaged.tfrecord"
    content = bytearray(pathlib.Path(static_shards.train_paths[0]).read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    for path in (text, damaged):
        with pytest.raises(InputError, match=str(path)):
            inspect(path)


def test_masking_options_of_another_version_are_refused(dynamic_shards, tmp_path):
    folder = shutil.copytree(dynamic_shards.folder, tmp_path / "data")
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["options"]["masking_options"]["of_tomorrow"] = True
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(InputError, match=r"manifest\.json, of version .*, has masking_options that this version"):
        inspect(folder / pathlib.Path(dynamic_shards.train_paths[0]).name)


def test_plot_is_written_whole_or_not_at_all(static_shards, dynamic_shards, tmp_path):
    for number, path in enumerate([static_shards.train_paths[0], dynamic_shards.train_paths[0]]):
        plot = tmp_path / f"{number}.png"
        plot_shard(path, plot)
        assert plot.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError):
        plot_shard(tmp_path / "missing.tfrecord", tmp_path / "missing.png")
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".png"] * (number + 1)
