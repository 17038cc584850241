"""--inspect and --plot say of a shard what an independent reader finds in it."""

import contextlib
import io
import pathlib
import re
import shutil

import pytest

from albert_tf.base.errors import InputError
from albert_tf.pretraining_data.show import show_shard

pytestmark = pytest.mark.slow


def inspect(path, num_examples=2, plot_path=None, use_colour=False):
    with contextlib.redirect_stdout(io.StringIO()) as output:
        show_shard(path, num_examples, plot_path, use_colour)
    return output.getvalue()


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


@pytest.fixture(scope="module")
def shown(static_shards):
    """The description of five masked examples."""
    return inspect(static_shards.train_paths[0], num_examples=5)


def test_examples_are_shown_with_masks_and_what_they_hide(shown, static_shards, read_records, tiny_tokenizer):
    pieces = tiny_tokenizer.vocabulary.pieces
    for number, record in enumerate(read_records(static_shards.train_paths)[:5], start=1):
        found = re.search(rf"example {number}: (.*?)\n\s*A(.*?)\n\s*B(.*?)(\n\n|$)", shown, re.DOTALL)
        assert f"{int(record.features['input_mask'].sum())} pieces" in found[1]
        assert f"{int(record.features['masked_lm_weights'].sum())} to predict" in found[1]
        assert f"label {record.features['next_sentence_labels'][0]}" in found[1]
        # Spaces, line ends and marks between pieces aside, and without the prefix that the joined pieces have lost.
        expected = "".join(shown_words(record, pieces)).replace("##", "")
        assert re.sub(r"[\s·]", "", found[2]).replace("##", "") == expected


def test_colours_change_nothing_but_colours(shown, static_shards):
    coloured = inspect(static_shards.train_paths[0], num_examples=5, use_colour=True)
    assert "\033[" in coloured
    assert re.sub(r"\033\[[\d;]*m", "", coloured) == shown


def test_counts_are_those_of_an_independent_reader(shown, static_shards, read_records):
    records = read_records(static_shards.train_paths)
    lengths = [int(record.features["input_mask"].sum()) for record in records]
    share = sum(record.features["masked_lm_weights"].sum() for record in records) / sum(lengths)
    average = sum(lengths) / len(records)
    assert shown.splitlines()[-1] == (
        f"{len(records):,} examples of {average:.2f} pieces on average; {share:.2%} of the pieces to predict"
    )


def test_dynamic_shard_shows_masks_that_an_epoch_could_have(dynamic_shards):
    output = inspect(dynamic_shards.train_paths[0])
    assert "dynamic, not masked yet" in output
    assert "{" in output and "to predict" in output


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


def test_plot_is_written_whole_or_not_at_all(static_shards, dynamic_shards, tmp_path):
    for number, path in enumerate([static_shards.train_paths[0], dynamic_shards.train_paths[0]]):
        plot = tmp_path / f"{number}.png"
        inspect(path, 0, plot)
        assert plot.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError):
        inspect(tmp_path / "missing.tfrecord", 0, tmp_path / "missing.png")
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".png"] * (number + 1)
