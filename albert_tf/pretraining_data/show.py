"""Shows a shard to people: examples as coloured text, how much there is, and a picture of the lengths."""

import os
import sys

import numpy as np

from albert_tf.errors import InputError
from albert_tf.files import replacing
from albert_tf.pretraining_data.shard_reader import ShardReader
from albert_tf.tokenization.wordpiece import CONTINUATION_PREFIX

_PIECE_BORDER = "·"
_NUM_BINS = 32

# What terminals know of colours (ECMA-48, SGR).
_STYLES = {"bold": "1", "dim": "2", "A": "36", "B": "35", "masked": "30;43", "replaced": "97;41", "kept": "30;42"}

# The original gives a B from elsewhere the same label as a swapped one (google-research/albert#234).
_LABEL_MEANINGS_WITHOUT_MANIFEST = ("in the order of the text", "swapped, or B comes from another document")


def show_shard(
    path: str | os.PathLike, num_examples: int, plot_path: str | None = None, use_colour: bool | None = None
) -> None:
    """Prints the first examples of a shard and counts of all of it, and draws the lengths of its examples if asked."""
    if use_colour is None:
        use_colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")

    def paint(text, style):
        return f"\033[{_STYLES[style]}m{text}\033[m" if use_colour else text

    shard = ShardReader(path)
    print(*_introduction(shard, paint), sep="\n")
    lengths, shown = [], 0
    counts = np.zeros(4, np.int64)
    for batch in shard.read():
        for row in range(min(len(batch.labels), num_examples - shown)):
            shown += 1
            print("", *_example_lines(shard, batch, row, shown, paint), sep="\n")
        lengths.append(batch.is_used.sum(axis=1))
        mentioned = np.zeros_like(batch.is_used) if batch.in_mention is None else batch.in_mention
        kinds = (batch.is_chosen, mentioned & batch.word_starts, mentioned, mentioned & batch.is_chosen)
        counts += [kind.sum() for kind in kinds]
    lengths = np.concatenate(lengths)
    print("", *_count_lines(shard, lengths, *counts), sep="\n")
    if plot_path:
        _plot_lengths(shard, lengths, plot_path)


def _count_lines(shard, lengths, num_chosen, num_mentions, num_in_mentions, num_chosen_in_mentions):
    to_predict = f"; {num_chosen / lengths.sum():.2%} of the pieces to predict" if shard.is_masked else ""
    yield f"{len(lengths):,} examples of {lengths.mean():.2f} pieces on average{to_predict}"
    if num_mentions:
        of_chosen = f" and {num_chosen_in_mentions / num_chosen:.2%} of those to predict" if num_chosen else ""
        share = num_in_mentions / lengths.sum()
        yield f"{num_mentions:,} mentions of entities: {share:.2%} of the pieces{of_chosen}"


def _plot_lengths(shard, lengths, path):
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError("`plot` needs matplotlib, which is not installed; pip install matplotlib") from error
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    axes.hist(lengths, np.linspace(0, shard.max_seq_length, min(_NUM_BINS, shard.max_seq_length) + 1))
    axes.set(xlabel="pieces, [CLS] and [SEP] included", ylabel="examples", yscale="log")
    with replacing(path) as file:
        figure.savefig(file, format="png")


def _introduction(shard, paint):
    if shard.is_static:
        masking = "static, masked when it was made"
    elif shard.is_masked:
        masking = "dynamic, not masked yet; these masks are such as an epoch of training could have"
    elif not shard.packing.masks_pieces:
        masking = "without masks, for each piece can be predicted from those before it"
    else:
        masking = "dynamic, not masked yet; without manifest.json and vocab.txt beside it no masks can be shown"
    yield f"{paint(shard.path, 'bold')}: {masking}"
    if shard.vocabulary is None:
        yield "there is no vocab.txt beside it, so pieces are shown as ids"
    if shard.is_masked:
        yield (
            f"{paint('{x}', 'masked')} became [MASK], {paint('{x→y}', 'replaced')} became the piece y, "
            f"{paint('{x=}', 'kept')} stayed; x{paint(_PIECE_BORDER, 'dim')}y are pieces of one word"
        )


def _example_lines(shard, batch, row, number, paint):
    facts = [f"{batch.is_used[row].sum()} pieces"]
    if shard.is_masked:
        facts.append(f"{batch.is_chosen[row].sum()} to predict")
    meanings = shard.packing.label_meanings if shard.manifest else _LABEL_MEANINGS_WITHOUT_MANIFEST
    if meanings:
        facts.append(f"label {batch.labels[row]}, {meanings[int(batch.labels[row] == 1)]}")
    yield f"{paint(f'example {number}', 'bold')}: {'; '.join(facts)}"
    used = np.flatnonzero(batch.is_used[row])
    segments = batch.segment_ids[row, used]
    for positions in np.split(used, np.flatnonzero(np.diff(segments)) + 1):
        name = "AB"[batch.segment_ids[row, positions[0]]]
        yield " ".join([paint(name, name), *_words(shard, batch, row, positions, paint)])


def _words(shard, batch, row, positions, paint):
    words = []
    for position in positions:
        piece = _piece(shard, batch, row, position, paint)
        if batch.word_starts[row, position]:
            words.append(piece)
        else:
            words[-1] += paint(_PIECE_BORDER, "dim") + piece
    return words


def _piece(shard, batch, row, position, paint):
    original, seen = batch.original_ids[row, position], batch.input_ids[row, position]
    name = shard.name_of(original)
    if not batch.word_starts[row, position]:
        name = name.removeprefix(CONTINUATION_PREFIX)
    if batch.is_special[row, position]:
        return paint(name, "dim")
    if not batch.is_chosen[row, position]:
        return paint(name, "AB"[batch.segment_ids[row, position]])
    if seen == shard.mask_id:
        return paint(f"{{{name}}}", "masked")
    if seen == original:
        return paint(f"{{{name}=}}", "kept")
    return paint(f"{{{name}→{shard.name_of(seen)}}}", "replaced")
