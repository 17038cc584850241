"""What a vocabulary makes of a text: unknown words, length of pieces, borders of josa, pieces that nothing uses."""

import collections.abc
import importlib.util
import itertools
import os
import textwrap

import numpy as np
import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.files import replacing, write_json
from albert_tf.tokenization.building.morphemes import BORDER, MorphemeBorders, has_kiwi
from albert_tf.tokenization.tokenizer import KoreanWordPieceTokenizer
from albert_tf.tokenization.vocabulary import UNK
from albert_tf.tokenization.wordpiece import CONTINUATION_PREFIX
from albert_tf.tokenization.words import END_OF_WORD

REPORT_FILE = "vocabulary_report.json"
PLOT_FILE = "vocabulary_report.png"

_LINES_PER_BATCH = 4096
_NUM_LONGEST = 20
_LONGEST_IN_TABLE = 5
# So that neither the names nor the titles of the plot are cut.
_LETTERS_PER_INCH, _MOST_TITLE_LETTERS = 14, 20

# What the table and the plot show: key of the report, title, format.
_ROWS = (
    ("num_pieces", "pieces in the vocabulary", "{:,}"),
    ("num_sentences", "sentences", "{:,}"),
    ("num_words", "words", "{:,}"),
    ("unknown_words", "unknown words", "{:,}"),
    ("unknown_word_share", "share of unknown words", "{:.3%}"),
    ("unknown_sentence_share", "share of sentences with one", "{:.2%}"),
    ("pieces_per_word", "pieces per known word", "{:.3f}"),
    ("characters_per_piece", "characters per piece", "{:.3f}"),
    ("josa_borders", "borders before josa", "{:,}"),
    ("josa_border_share", "share that are borders of pieces", "{:.1%}"),
    ("never_used_pieces", "pieces never used", "{:,}"),
)
_PLOTTED = ("unknown_word_share", "unknown_sentence_share", "pieces_per_word", "josa_border_share")


def measure(tokenizer: KoreanWordPieceTokenizer, lines: collections.abc.Iterable[str]) -> dict:
    """Encodes a text and counts.

    Words are the tokenizer's: where punctuation is split, each mark is one. Averages leave unknown words out.

    Returns:
        Numbers by name, as in the JSON file. The share of josa borders (between a noun and its josa, as kiwipiepy sees
        it) that are borders of pieces is None without kiwipiepy, and where there are none.

    Raises:
        InputError: The text holds no words.
    """
    counts = _Counts(tokenizer)
    lines = iter(lines)
    while batch := list(itertools.islice(lines, _LINES_PER_BATCH)):
        counts.add(batch)
    if not counts.num_words:
        raise InputError("the text contains no words to report on")
    known_words = counts.num_words - counts.unknown_words
    known_pieces = counts.uses.sum() - counts.unknown_words
    pieces = tokenizer.vocabulary.pieces
    real = tokenizer.vocabulary.real_piece_ids
    longest = sorted(real, key=lambda i: (-len(_surface(pieces[i], tokenizer.wordpiece_scheme)), i))[:_NUM_LONGEST]
    never_used = [pieces[i] for i in real if not counts.uses[i]]
    return {
        "settings": tokenizer.to_dict(),
        "num_pieces": len(pieces),
        "num_sentences": counts.num_sentences,
        "num_words": counts.num_words,
        "unknown_words": counts.unknown_words,
        "unknown_word_share": counts.unknown_words / counts.num_words,
        "unknown_sentences": counts.unknown_sentences,
        "unknown_sentence_share": counts.unknown_sentences / counts.num_sentences,
        "pieces_per_word": _ratio(known_pieces, known_words),
        "characters_per_piece": _ratio(counts.known_characters, known_pieces),
        "josa_borders": counts.josa_borders,
        "josa_border_share": _ratio(counts.josa_borders_kept, counts.josa_borders),
        "never_used_pieces": len(never_used),
        "longest": [{"piece": pieces[i], "uses": int(counts.uses[i])} for i in longest],
        "never_used": never_used,
    }


def format_table(reports: dict[str, dict]) -> str:
    """Returns a Markdown table with a column for each vocabulary."""
    rows = [["", *reports], ["---", *["---:"] * len(reports)]]
    for key, title, form in _ROWS:
        rows.append([title, *("-" if report[key] is None else form.format(report[key]) for report in reports.values())])
    longest = (report["longest"][:_LONGEST_IN_TABLE] for report in reports.values())
    rows.append(["longest pieces", *(" ".join(f"`{entry['piece']}`" for entry in entries) for entries in longest)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def write_report(output_dir: str | os.PathLike, reports: dict[str, dict]) -> list[str]:
    """Writes the reports as JSON, and of several vocabularies as a plot if matplotlib is there; returns the paths."""
    paths = [os.path.join(output_dir, REPORT_FILE)]
    write_json(paths[0], reports)
    if len(reports) > 1 and importlib.util.find_spec("matplotlib"):
        paths.append(os.path.join(output_dir, PLOT_FILE))
        _plot(paths[1], reports)
    return paths


class _Counts:
    """Adds up what batches of sentences hold."""

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer
        self._unknown_id = tokenizer.vocabulary.id_of(UNK)
        self._borders = MorphemeBorders("noun_josa") if has_kiwi() else None
        self.uses = np.zeros(len(tokenizer.vocabulary), np.int64)
        self.num_sentences = self.num_words = self.unknown_words = self.unknown_sentences = self.known_characters = 0
        self.josa_borders, self.josa_borders_kept = (None, None) if self._borders is None else (0, 0)

    def add(self, lines):
        words, ids = self._tokenizer.split_words(lines), self._tokenizer.encode_words(lines)
        # An unknown word is one piece, [UNK].
        is_unknown = tf.reduce_any(ids.values == self._unknown_id, axis=1)
        lengths = tf.strings.length(words.flat_values, "UTF8_CHAR")
        if self._tokenizer.wordpiece_scheme == "end_of_word":
            lengths -= tf.cast(tf.strings.regex_full_match(words.flat_values, f".*{END_OF_WORD}"), tf.int32)
        self.num_sentences += len(lines)
        self.num_words += len(is_unknown)
        self.unknown_words += int(tf.math.count_nonzero(is_unknown))
        self.unknown_sentences += int(tf.math.count_nonzero(tf.reduce_any(words.with_flat_values(is_unknown), axis=1)))
        self.known_characters += int(tf.reduce_sum(tf.boolean_mask(lengths, ~is_unknown)))
        self.uses += np.bincount(ids.flat_values, minlength=len(self.uses))
        if self._borders:
            self._add_josa(self._borders.mark(lines))

    def _add_josa(self, marked_lines):
        marked_lines = [line for line in marked_lines if BORDER in line]
        encodings = self._tokenizer.encode_batch([line.replace(BORDER, "") for line in marked_lines])
        for line, encoding in zip(marked_lines, encodings):
            begins = {begin for begin, _ in encoding.offsets}
            position = 0
            for part in line.split(BORDER)[:-1]:
                position += len(part)
                self.josa_borders += 1
                self.josa_borders_kept += position in begins


def _ratio(numerator, denominator):
    return float(numerator / denominator) if denominator else None


def _surface(piece, wordpiece_scheme):
    """Returns the text that a piece stands for."""
    if wordpiece_scheme == "continuation":
        return piece.removeprefix(CONTINUATION_PREFIX)
    return piece.removesuffix(END_OF_WORD)


def _plot(path, reports):
    """Draws a panel for each measure with a bar for each vocabulary."""
    from matplotlib.figure import Figure

    titles = {key: (title, value_format) for key, title, value_format in _ROWS}
    names_inches = max(map(len, reports)) / _LETTERS_PER_INCH
    figure = Figure(figsize=(8 + names_inches, 1.5 + 0.4 * len(reports)), layout="constrained")
    for index, (axes, key) in enumerate(zip(figure.subplots(1, len(_PLOTTED)), _PLOTTED)):
        title, value_format = titles[key]
        bars = axes.barh(list(reports), [report[key] or 0 for report in reports.values()], color="C0")
        axes.bar_label(bars, [value_format.format(value) for value in bars.datavalues], padding=3, fontsize="small")
        axes.margins(x=0.35)
        axes.set_title(textwrap.fill(title, _MOST_TITLE_LETTERS), fontsize="small")
        axes.invert_yaxis()
        axes.tick_params(labelleft=index == 0, labelbottom=False, bottom=False, labelsize="small")
        axes.spines[["top", "right", "bottom"]].set_visible(False)
    with replacing(path) as file:
        figure.savefig(file, format="png", dpi=120)
