"""Draws what a shard holds beside what theory expects: lengths of examples, mask rates and n-grams."""

import os

import numpy as np

from albert_tf.errors import InputError
from albert_tf.files import replacing
from albert_tf.pretraining_data.inspection.statistics import ShardStatistics
from albert_tf.pretraining_data.shard_reader import ShardReader

_NUM_BINS = 32
_FOUND = {"color": "C0", "alpha": 0.75, "label": "found"}
_EXPECTED = {"color": "C1", "linewidth": 1.8, "label": "expected"}


def plot_shard(path: str | os.PathLike, plot_path: str | os.PathLike) -> None:
    """Draws histograms of a shard as PNG; those of masks are left out where nothing is masked.

    Args:
        path: A shard, static or dynamic; see `inspect_shard`.
        plot_path: The file to write; it replaces one that is there.

    Raises:
        InputError: matplotlib is not installed, or the shard can't be read.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError("`plot` needs matplotlib, which is not installed; pip install matplotlib") from error
    shard = ShardReader(path)
    statistics = ShardStatistics(shard)
    panels = [_draw_lengths, _draw_mask_rates, _draw_runs] if statistics.num_chosen else [_draw_lengths]
    figure = Figure(figsize=(4.6 * len(panels), 4.2), layout="constrained")
    # matplotlib's own font has no Hangul.
    name = os.path.basename(shard.path).encode("ascii", "replace").decode()
    figure.suptitle(f"{name}: {statistics.num_examples:,} examples, {'static' if shard.is_static else 'dynamic'}")
    for axes, draw in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels):
        draw(axes, shard, statistics)
        axes.set_ylabel("share (%)")
        axes.grid(axis="y", alpha=0.3)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(fontsize="small", frameon=False)
    _save(figure, os.fspath(plot_path))


def _draw_lengths(axes, shard, statistics):
    bins = np.linspace(0, shard.max_seq_length, min(_NUM_BINS, shard.max_seq_length) + 1)
    lengths = np.arange(shard.max_seq_length + 1)
    axes.hist(lengths, bins, weights=_percent(statistics.lengths), **_FOUND)
    expected = _expected_lengths(shard)
    if expected is not None:
        shares, _ = np.histogram(lengths, bins, weights=_percent(expected))
        axes.stairs(shares, bins, **{**_EXPECTED, "label": "expected of endless documents"})
    axes.set_yscale("log")
    axes.set(title="length of examples", xlabel="pieces, [CLS] and [SEP] included")


def _expected_lengths(shard):
    """Returns the distribution of target lengths; None where examples are not cut to them."""
    short_seq_prob = shard.manifest.get("options", {}).get("short_seq_prob")
    return None if short_seq_prob is None else shard.packing.expected_lengths(shard.max_seq_length, short_seq_prob)


def _draw_mask_rates(axes, shard, statistics):
    lengths, numbers = np.nonzero(statistics.examples)
    rates = 100 * numbers / lengths
    limit = max(rates.max(), 1)
    bins = np.linspace(0, limit * 1.02, _NUM_BINS + 1)
    axes.hist(rates, bins, weights=_percent(statistics.examples[lengths, numbers]), **_FOUND)
    if statistics.budgets is not None:
        used = np.flatnonzero(statistics.lengths)
        budgets = 100 * statistics.budgets[used] / used
        shares, _ = np.histogram(budgets, bins, weights=_percent(statistics.lengths[used]))
        axes.stairs(shares, bins, **{**_EXPECTED, "label": "expected if every budget is spent"})
    axes.set(title="masked pieces an example", xlabel="masked (%)")


def _draw_runs(axes, shard, statistics):
    probabilities = statistics.ngram_probabilities
    num_shown = 6 if probabilities is None else 2 * len(probabilities) + 1
    numbers = np.arange(1, num_shown + 1)
    axes.bar(numbers, _percent(statistics.runs)[1 : num_shown + 1], width=0.7, **_FOUND)
    if probabilities is not None:
        axes.hlines(
            100 * statistics.expected_runs[1 : num_shown + 1],
            numbers - 0.42,
            numbers + 0.42,
            **{**_EXPECTED, "label": "expected: neighbours merge, ends are cut"},
        )
        axes.plot(numbers[: len(probabilities)], 100 * probabilities, "k_", markersize=14, label="drawn n-grams, p(n)")
    axes.set(title="runs of masked words", xlabel=f"{statistics.unit}s", xticks=numbers)


def _percent(counts):
    return 100 * counts / counts.sum()


def _save(figure, path):
    with replacing(path) as file:
        figure.savefig(file, format="png", dpi=120)
