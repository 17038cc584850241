"""A report on a vocabulary and a text: unknown words, length of pieces, borders of josa, pieces that nothing uses."""

import collections.abc
import itertools

import numpy as np
import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.tokenization.building.morphemes import BORDER, MorphemeBorders, has_kiwi
from albert_tf.tokenization.tokenizer import KoreanWordPieceTokenizer
from albert_tf.tokenization.vocabulary import UNK
from albert_tf.tokenization.words import END_OF_WORD

_LINES_PER_BATCH = 4096

# What the table shows: key of the report, title, format.
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


def measure(tokenizer: KoreanWordPieceTokenizer, lines: collections.abc.Iterable[str]) -> dict:
    """Encodes a text and returns numbers by name; raises InputError if it holds no words.

    Words are the tokenizer's: where punctuation is split, each mark is one. Averages leave unknown words out. The share
    of josa borders that are borders of pieces is None without kiwipiepy, and where there are none.
    """
    counts = _Counts(tokenizer)
    lines = iter(lines)
    while batch := list(itertools.islice(lines, _LINES_PER_BATCH)):
        counts.add(batch)
    if not counts.num_words:
        raise InputError("the text contains no words to report on")
    known_words = counts.num_words - counts.unknown_words
    known_pieces = counts.uses.sum() - counts.unknown_words
    return {
        "num_pieces": len(tokenizer),
        "num_sentences": counts.num_sentences,
        "num_words": counts.num_words,
        "unknown_words": counts.unknown_words,
        "unknown_word_share": counts.unknown_words / counts.num_words,
        "unknown_sentence_share": counts.unknown_sentences / counts.num_sentences,
        "pieces_per_word": _ratio(known_pieces, known_words),
        "characters_per_piece": _ratio(counts.known_characters, known_pieces),
        "josa_borders": counts.josa_borders,
        "josa_border_share": _ratio(counts.josa_borders_kept, counts.josa_borders),
        "never_used_pieces": int((counts.uses[tokenizer.vocabulary.real_piece_ids] == 0).sum()),
    }


def format_table(name: str, report: dict) -> str:
    rows = [("", name), ("---", "---:")]
    rows += [(title, "-" if report[key] is None else form.format(report[key])) for key, title, form in _ROWS]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


class _Counts:
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
