"""A report on a vocabulary and a text: unknown words, length of pieces, borders of josa, pieces that nothing uses."""

import collections.abc
import itertools
import re

import numpy as np
import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.tokenization.tokenizer import KoreanWordPieceTokenizer
from albert_tf.tokenization.vocabulary import UNK, UNUSED, Vocabulary, is_reserved
from albert_tf.tokenization.vocabulary_training import BORDER, MorphemeBorders, has_kiwi
from albert_tf.tokenization.wordpiece import CONTINUATION_PREFIX, END_OF_WORD, MAX_BYTES_PER_PIECE, fits, piece_text

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


# Giving a vocabulary pieces, first in its [unused] slots, so that the ids of all others stay.

_ANY_LETTER = "가"


def assign_unused(tokenizer: KoreanWordPieceTokenizer, pieces: list[str]) -> KoreanWordPieceTokenizer:
    """Returns a tokenizer with pieces in the place of its first [unused] slots, and the rest behind all others.

    It has another identity, and a model takes it by `init_checkpoint` of pre-training. Pieces are spelled as in a
    vocabulary file, with ## or _ where the scheme asks for it. Raises InputError for none, or what can't be a piece.
    """
    slots = [index for index, piece in enumerate(tokenizer.vocabulary.pieces) if UNUSED.fullmatch(piece)]
    if not pieces:
        raise InputError("there is no piece to add; name at least one")
    for number, piece in enumerate(pieces):
        reason = _reason_against(tokenizer, piece) or ("it is named twice" if piece in pieces[:number] else None)
        if reason:
            raise InputError(f'"{piece}" can\'t be a piece of {tokenizer.vocabulary.source}: {reason}; leave it out')
    assigned = [*tokenizer.vocabulary.pieces, *pieces[len(slots) :]]
    for slot, piece in zip(slots, pieces):
        assigned[slot] = piece
    settings = {name: value for name, value in tokenizer.to_dict().items() if name != "vocab_sha256"}
    return KoreanWordPieceTokenizer(Vocabulary(assigned, tokenizer.vocabulary.source), **settings)


def _reason_against(tokenizer, piece):
    text = piece_text(piece, tokenizer.wordpiece_scheme)
    if is_reserved(piece):
        return "it is reserved"
    if piece in tokenizer.vocabulary:
        return f"it is there already, with id {tokenizer.vocabulary.id_of(piece)}"
    if not text or re.search(r"\s", piece):
        return "it must be text without spaces"
    if not fits(text):
        return f"it has more than {MAX_BYTES_PER_PIECE} bytes"
    words = _words_around(tokenizer, piece, text)
    if words != _expected_words(tokenizer, piece, text):
        return f"the tokenizer makes of it {' '.join(words) or 'nothing'}, so no text would ever lead to it"
    return None


def _words_around(tokenizer, piece, text):
    """Returns the words of a text in which the piece ought to match."""
    if tokenizer.wordpiece_scheme == "end_of_word":
        text = f"{text.removesuffix(END_OF_WORD)} {_ANY_LETTER}"
    elif piece.startswith(CONTINUATION_PREFIX):
        text = _ANY_LETTER + text
    return [word.decode() for word in tokenizer.split_words([text])[0].numpy()]


def _expected_words(tokenizer, piece, text):
    if tokenizer.wordpiece_scheme == "end_of_word":
        return [text.removesuffix(END_OF_WORD) + END_OF_WORD, _ANY_LETTER]
    return [_ANY_LETTER + text] if piece.startswith(CONTINUATION_PREFIX) else [text]
