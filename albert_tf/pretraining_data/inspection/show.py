"""Shows a shard to people: examples as coloured text, and statistics of all of it."""

import itertools
import os
import re
import shutil
import sys
import unicodedata

import numpy as np

from albert_tf.pretraining_data.inspection.statistics import ShardStatistics
from albert_tf.pretraining_data.shard_reader import ShardReader
from albert_tf.tokenization.wordpiece import CONTINUATION_PREFIX

_MOST_FREQUENT = 10
_PIECE_BORDER = "·"

# What terminals know of colours (ECMA-48, SGR).
_STYLES = {
    "bold": "1",
    "special": "2",
    "border": "2",
    "A": "36",
    "B": "35",
    "masked": "30;43",
    "replaced": "97;41",
    "kept": "30;42",
}
_STYLE_CODE = re.compile("\033\\[[\\d;]*m")

# The original gives a B from elsewhere the same label as a swapped one (google-research/albert#234).
_LABEL_MEANINGS_WITHOUT_MANIFEST = ("in the order of the text", "swapped, or B comes from another document")


def inspect_shard(path: str | os.PathLike, num_examples: int, use_colour: bool | None = None, write=print) -> None:
    """Shows the first examples of a shard, and statistics of the whole shard.

    Args:
        path: A shard, static or dynamic. The manifest and the tokenizer beside it are used if they are there.
        num_examples: How many examples to show.
        use_colour: Whether to colour text for a terminal; None: if standard output is one and NO_COLOR is not set.
        write: Called with each line.

    Raises:
        InputError: The file is no shard or is damaged, or what lies beside it does not belong to it.
    """
    if use_colour is None:
        use_colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")

    def paint(text, style):
        return f"\033[{_STYLES[style]}m{text}\033[m" if use_colour else text

    shard = ShardReader(path)
    rows = ((batch, row) for batch in shard.read() for row in range(len(batch.labels)))
    examples = (
        ["", *_example_lines(shard, batch, row, number, paint)]
        for number, (batch, row) in enumerate(itertools.islice(rows, num_examples), start=1)
    )
    for line in itertools.chain(_introduction(shard, paint), *examples):
        write(line)
    for line in ["", *_statistics_lines(shard, ShardStatistics(shard), paint)]:
        write(line)


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
            f"{paint('{x=}', 'kept')} stayed; x{paint(_PIECE_BORDER, 'border')}y are pieces of one word"
        )


def _example_lines(shard, batch, row, number, paint):
    facts = [f"{batch.is_used[row].sum()} pieces"]
    if shard.is_masked:
        facts.append(f"{batch.is_chosen[row].sum()} to predict")
    meanings = _label_meanings(shard)
    if meanings:
        facts.append(f"label {batch.labels[row]}, {meanings[int(batch.labels[row] == 1)]}")
    yield f"{paint(f'example {number}', 'bold')}: {'; '.join(facts)}"
    used = np.flatnonzero(batch.is_used[row])
    segments = batch.segment_ids[row, used]
    for positions in np.split(used, np.flatnonzero(np.diff(segments)) + 1):
        name = "AB"[batch.segment_ids[row, positions[0]]]
        yield from _wrap(paint(name, name), _words(shard, batch, row, positions, paint))


def _label_meanings(shard):
    return shard.packing.label_meanings if shard.manifest else _LABEL_MEANINGS_WITHOUT_MANIFEST


def _words(shard, batch, row, positions, paint):
    """Returns the words at these positions, painted."""
    words = []
    for position in positions:
        piece = _piece(shard, batch, row, position, paint)
        if batch.word_starts[row, position]:
            words.append(piece)
        else:
            words[-1] += paint(_PIECE_BORDER, "border") + piece
    return words


def _piece(shard, batch, row, position, paint):
    original, seen = batch.original_ids[row, position], batch.input_ids[row, position]
    name = shard.name_of(original)
    if not batch.word_starts[row, position]:
        name = name.removeprefix(CONTINUATION_PREFIX)
    if batch.is_special[row, position]:
        return paint(name, "special")
    if not batch.is_chosen[row, position]:
        return paint(name, "AB"[batch.segment_ids[row, position]])
    if seen == shard.mask_id:
        return paint(f"{{{name}}}", "masked")
    if seen == original:
        return paint(f"{{{name}=}}", "kept")
    return paint(f"{{{name}→{shard.name_of(seen)}}}", "replaced")


def _wrap(name, words):
    """Yields lines that fit the terminal: the name of a segment, then its words, aligned."""
    room = shutil.get_terminal_size().columns - 2
    line, used = [], 0
    for word in words:
        width = _width(word)
        if line and used + width > room:
            yield f"{name} {' '.join(line)}"
            name, line, used = " ", [], 0
        line.append(word)
        used += width + 1
    yield f"{name} {' '.join(line)}"


def _width(text):
    """Returns how many columns of a terminal a text takes: two a Hangul syllable, none a mark or a change of colour."""
    characters = _STYLE_CODE.sub("", text)
    return sum(
        0
        if unicodedata.category(character) in ("Mn", "Me", "Cf")
        else 1 + (unicodedata.east_asian_width(character) in "WF")
        for character in characters
    )


def _statistics_lines(shard, statistics, paint):
    """Yields a line for each fact."""
    count, lengths = statistics.num_examples, statistics.lengths
    yield f"{paint('statistics', 'bold')} of all {count:,} examples"
    yield _fact(
        "length",
        f"mean {statistics.num_pieces / count:.1f}, median {statistics.median_length:g}, "
        f"full ({shard.max_seq_length} pieces) {lengths[-1] / count:.1%}",
    )
    if _label_meanings(shard):
        low, high = statistics.label_interval
        share = statistics.label_ones / count
        yield _fact("label 1", f"{share:.1%}, 95% confidence interval {low:.1%} to {high:.1%}")
    if statistics.unknown_rate is not None:
        yield _fact("unknown", f"{statistics.unknown_rate:.2%} of the pieces are [UNK]")
    uses = statistics.piece_uses
    frequent = (f"{shard.name_of(i)} {uses_of / uses.total():.1%}" for i, uses_of in uses.most_common(_MOST_FREQUENT))
    yield _fact("most frequent", "  ".join(frequent))
    if statistics.num_mentions is not None:
        share = statistics.num_in_mentions / statistics.num_pieces
        yield _fact("mentions", f"{statistics.num_mentions:,}, {share:.2%} of the pieces")
    if shard.is_masked:
        yield from _mask_lines(statistics)


def _mask_lines(statistics):
    """Yields a line for each fact about masks."""
    rate = statistics.num_chosen / statistics.num_pieces
    expected = statistics.expected_mask_rate
    yield _fact("to predict", f"{rate:.2%} of the pieces" + (f", expected {expected:.2%}" if expected else ""))
    if not statistics.num_chosen:
        return
    if statistics.num_mentions is not None:
        yield _fact("", f"of them {statistics.num_chosen_in_mentions / statistics.num_chosen:.2%} lie in mentions")
    fates = np.array([statistics.num_masked, statistics.num_replaced, statistics.num_kept]) / statistics.num_chosen
    yield _fact("", "of them {:.2%} became [MASK], {:.2%} another piece, {:.2%} stayed".format(*fates))

    probabilities = statistics.ngram_probabilities
    num_columns = max(4, 1 + len(probabilities)) if probabilities is not None else 4
    titles = [str(length) for length in range(1, num_columns)]
    yield _fact("n-grams", _columns([*titles, "more"]) + f"  {statistics.unit}s")
    if probabilities is not None:
        yield _fact("  drawn", _columns(map("{:.1%}".format, probabilities)))
        yield _fact("  runs expected", _shares_by_length(statistics.expected_runs, num_columns))
    yield _fact("  runs found", _shares_by_length(statistics.runs / statistics.runs.sum(), num_columns))


def _shares_by_length(shares, num_columns):
    return _columns(f"{share:.1%}" for share in [*shares[1:num_columns], shares[num_columns:].sum()])


def _columns(texts):
    return "".join(f"{text:>8}" for text in texts)


def _fact(name, text):
    return f"  {name:<16}{text}"
