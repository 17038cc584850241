"""The normalisation of text before a SentencePiece model, and the way back: from its bytes to the text as given.

The model has a normaliser of its own besides. The steps are those of the original's `preprocess_text`, and of Hugging
Face's ALBERT tokenizer: every run of spaces becomes one, none at the ends; `` and '' become a quotation mark;
characters are taken apart (NFKD) and lose their accents; letters are lower-cased. Hangul is taken apart too: models
that were trained so put it together again (NFKC).

All of it is done by tables of Python's Unicode database with TensorFlow ops, in the same way in a graph and outside.
"""

import dataclasses
import itertools
import typing
import unicodedata

import numpy as np
import tensorflow as tf

from albert_tf.tokenization.normalization import clean_character
from albert_tf.tokenization.sentencepiece.model import SPACE_MARK, Engine, SentencePieceVocabulary
from albert_tf.tokenization.unicode_tables import (
    LOWER_CASE,
    Characters,
    KindOfCharacter,
    Replacement,
    characters_of,
    differs,
    dropped,
    end_words_in_sigma,
    kept,
    replaced,
    texts_of,
)
from albert_tf.tokenization.vocabulary import UNK

_SPACE, _QUOTATION_MARK = map(ord, ' "')
_GRAVE, _APOSTROPHE = map(ord, "`'")

# Text that only lower-casing of ASCII changes: most English text. Matching it takes a fraction of the steps' time.
_PLAIN = "!-~"
_HANGUL = "가-힣ㄱ-ㅣ"
_PAIR_OF_MARKS = ".*(``|'').*"


@dataclasses.dataclass(frozen=True)
class SentencePieceOptions:
    lower_case: bool = True  # map letters to lower case
    strip_accents: bool = True  # take characters apart (NFKD), and drop combining marks
    normalize_quotes: bool = False  # make `` and '' a quotation mark


class SentencePieceNormalizer:
    """Normalises texts with TensorFlow ops; `lowers_first` first lower-cases letters, each by itself."""

    def __init__(self, options: SentencePieceOptions, lowers_first: bool = False):
        self._options, self._lowers_first = options, lowers_first and options.lower_case
        kept = _PLAIN if options.strip_accents else _PLAIN + _HANGUL
        self._plain_text = f"([{kept}]+( [{kept}]+)*)?"

    def normalize(self, texts: tf.Tensor) -> tf.Tensor:
        is_plain = tf.strings.regex_full_match(texts, self._plain_text)
        if self._options.normalize_quotes:
            is_plain &= ~tf.strings.regex_full_match(texts, _PAIR_OF_MARKS)
        rows = tf.where(~is_plain)
        plain = tf.strings.lower(texts) if self._options.lower_case else texts
        return tf.cond(
            tf.size(rows) > 0,
            lambda: tf.tensor_scatter_nd_update(plain, rows, self._normalize_any(tf.gather_nd(texts, rows))),
            lambda: plain,
        )

    def characters(self, texts: tf.Tensor) -> Characters:
        """Returns the characters of normalised texts, and where they stand in the texts as given."""
        characters = characters_of(texts)
        if self._lowers_first:
            characters = replaced(characters, LOWER_CASE)
        characters = _collapse_spaces(characters)
        if self._options.normalize_quotes:
            characters = _join_pairs_of_marks(characters)
        if self._options.strip_accents:
            characters = _strip_accents(characters)
        if self._options.lower_case:
            characters = replaced(end_words_in_sigma(characters), LOWER_CASE)
        return characters

    def _normalize_any(self, texts):
        return texts_of(self.characters(texts), tf.size(texts))


def _collapse_spaces(characters):
    """Leaves one space of each run of them between other characters."""
    is_space = _IS_SPACE(characters.codes) > 0
    begins_text = differs(characters.rows)
    begins_run = differs(is_space) | begins_text
    # Of what follows the run, which is no space; a run at the end of a text has none.
    others = tf.concat([tf.boolean_mask(characters.rows, ~is_space), [-1]], axis=0)
    num_before = tf.cumsum(tf.cast(~is_space, tf.int32))
    is_followed = tf.equal(tf.gather(others, num_before), characters.rows)
    is_kept = ~is_space | (begins_run & ~begins_text & is_followed)
    characters = characters._replace(codes=tf.where(is_space, _SPACE, characters.codes))
    return kept(characters, is_kept)


def _join_pairs_of_marks(characters):
    """Makes each two of the same mark a quotation mark, from the first of a run on."""
    codes = characters.codes
    is_mark = tf.equal(codes, _GRAVE) | tf.equal(codes, _APOSTROPHE)
    begins_run = differs(codes) | differs(characters.rows)
    runs = tf.cumsum(tf.cast(begins_run, tf.int32)) - 1
    places = tf.range(tf.size(codes))
    is_even = tf.equal((places - tf.gather(tf.boolean_mask(places, begins_run), runs)) % 2, 0)
    is_second = is_mark & ~is_even
    is_first = is_mark & tf.concat([is_second, [False]], axis=0)[1:]
    return dropped(characters._replace(codes=tf.where(is_first, _QUOTATION_MARK, codes)), ~is_second)


def _strip_accents(characters):
    _, sources = _WITHOUT_ACCENTS(characters.codes)
    leaves_something = tf.math.unsorted_segment_sum(tf.ones_like(sources), sources, tf.size(characters.codes)) > 0
    return replaced(dropped(characters, leaves_something), _WITHOUT_ACCENTS)


def _without_marks(character):
    return "".join(part for part in unicodedata.normalize("NFKD", character) if not unicodedata.combining(part))


_IS_SPACE = KindOfCharacter(lambda character: int(character.isspace()))
_WITHOUT_ACCENTS = Replacement(_without_marks)


_A_SPACE, _REMOVED, _PART = range(3)


class Spans(typing.NamedTuple):
    """Where the pieces of several texts stand, text after text, each int32 [P]."""

    firsts: tf.Tensor  # the first character of each, counted through all normalised texts
    behinds: tf.Tensor  # the character behind its last one, the same for a piece that stands for none
    rows: tf.Tensor  # its text, ascending


def spans_of(byte_begins: tf.RaggedTensor, byte_ends: tf.RaggedTensor, characters: Characters) -> Spans:
    """Returns the spans in normalised texts of pieces that begin and end at bytes, int32 [N, (pieces)]."""
    sizes = 1 + sum(tf.cast(characters.codes >= least, tf.int32) for least in (0x80, 0x800, 0x10000))
    places = tf.concat([[0], tf.cumsum(sizes)], axis=0)  # where characters begin in all texts side by side
    rows = tf.cast(byte_begins.value_rowids(), tf.int32)
    text_begins = tf.gather(places, tf.searchsorted(characters.rows, rows))
    firsts, behinds = (
        tf.searchsorted(places[:-1], text_begins + tf.cast(values.values, tf.int32))
        for values in (byte_begins, byte_ends)
    )
    return Spans(firsts, behinds, rows)


def trimmed(spans: Spans, characters: Characters, is_space: tf.Tensor) -> Spans:
    """Returns spans of P pieces without spaces and removed characters at either end.

    The engine gives a piece all spaces before it, and only the last piece of several that stand for one character has a
    span that is not empty. `is_space`, bool [P], are pieces that are nothing but a space.
    """
    kinds = _KIND_OF_CHARACTER(characters.codes)
    text_ends = tf.searchsorted(characters.rows, spans.rows, side="right")
    first, behind = _without(spans, tf.equal(kinds, _PART), text_ends)
    other_first, other_behind = _without(spans, kinds > _A_SPACE, text_ends)
    # A piece may stand for nothing but what is usually removed; a space never does, though it may stand beside it.
    has_others = (first >= behind) & (other_first < other_behind) & ~is_space
    first, behind = tf.where(has_others, other_first, first), tf.where(has_others, other_behind, behind)
    # Only the space before a text, and spaces that are there, stand for no character.
    is_empty = is_space & (first >= behind) & ((spans.firsts < spans.behinds) | differs(spans.rows))
    first = tf.where(is_empty, other_first, first)
    behind = tf.where(is_empty, first, tf.maximum(behind, tf.minimum(first + 1, text_ends)))
    return Spans(first, behind, spans.rows)


def _without(spans, is_kept, text_ends):
    """Returns the first character to keep from where a span begins, and the place behind its last one, int32 [P]."""
    places = tf.cast(tf.where(is_kept)[:, 0], tf.int32)
    nexts = tf.concat([places, [tf.size(is_kept)]], axis=0)
    first = tf.minimum(tf.gather(nexts, tf.searchsorted(places, spans.firsts)), text_ends)
    behinds = tf.concat([[0], places + 1], axis=0)
    return first, tf.gather(behinds, tf.searchsorted(places, spans.behinds))


def in_texts(spans: Spans, characters: Characters) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns where spans begin and end in the texts as given, int32 [P] each."""
    # One more, so that there is something to look up also where nothing is left of the texts.
    begins, ends, rows = (tf.concat([values, [-1]], axis=0) for values in characters[1:])
    text_begins = tf.searchsorted(characters.rows, spans.rows)
    last = tf.maximum(spans.behinds - 1, text_begins)
    # A space at the end of a text has nothing behind it.
    is_inside = tf.equal(tf.gather(rows, spans.firsts), spans.rows)
    begin = tf.where(is_inside, tf.gather(begins, spans.firsts), tf.gather(ends, last))
    return begin, tf.where(spans.firsts < spans.behinds, tf.gather(ends, last), begin)


# Of which only `_PART` may stand at the ends of a span.
_KIND_OF_CHARACTER = KindOfCharacter(
    lambda character: {" ": _A_SPACE, SPACE_MARK: _A_SPACE, "": _REMOVED}.get(clean_character(character), _PART)
)


# Pieces that end in a digit and a comma, cut before the comma.
#
# The original does this (`encode_pieces`), so that a number is spelled alike whether a comma follows it or not:
# where the model says `▁2010,` it makes `▁2010` and `,`. The part before the comma is encoded by itself.

# Characters to the end of a piece, however many these are.
_ALL = 1 << 20


class NumberCommas:
    """Cuts the pieces of encoded texts; the engine encodes the part before a comma."""

    def __init__(self, vocabulary: SentencePieceVocabulary, engine: Engine):
        parts = [[(piece_id, 0, _ALL)] for piece_id in range(len(vocabulary))]
        pieces = [piece for piece in vocabulary.pieces if ends_in_number_comma(piece)]
        stems = [piece[:-1].replace(SPACE_MARK, "") for piece in pieces]
        encoded = engine.tokenize(tf.constant(stems, tf.string, shape=[len(stems)])).to_list()
        for piece, stem, ids in zip(pieces, stems, encoded):
            parts[vocabulary.id_of(piece)] = _parts(piece, stem, ids, vocabulary)
        counts = np.array([len(row) for row in parts], np.int32)
        self._starts, self._counts = (np.cumsum(counts) - counts).astype(np.int32), counts
        self._ids, self._begins, self._ends = np.array(list(itertools.chain.from_iterable(parts)), np.int32).T

    def split(self, ids: tf.RaggedTensor) -> tf.RaggedTensor:
        """Returns ids int32 [N, (pieces)] with the parts of cut pieces in their place."""

        def split():
            places, _, splits = self._cut(ids.values, ids.row_splits)
            return tf.gather(self._ids, places), splits

        values, splits = tf.cond(self._is_any(ids.values), split, lambda: (ids.values, ids.row_splits))
        return tf.RaggedTensor.from_row_splits(values, splits, validate=False)

    def split_spans(self, ids: tf.Tensor, splits: tf.Tensor, spans: Spans) -> tuple[tf.Tensor, tf.Tensor, Spans]:
        """Does the same to ids int32 [P], texts' splits int64 [N + 1] and spans."""

        def split():
            places, sources, new_splits = self._cut(ids, splits)
            firsts, behinds, rows = (tf.gather(values, sources) for values in spans)
            # What the model's normaliser has made shorter or longer is shared out as far as it goes.
            begins = tf.minimum(tf.gather(self._begins, places), tf.maximum(behinds - firsts - 1, 0))
            ends = tf.minimum(tf.gather(self._ends, places), behinds - firsts)
            new_spans = Spans(firsts + begins, firsts + tf.maximum(begins, ends), rows)
            return tf.gather(self._ids, places), new_splits, new_spans

        return tf.cond(self._is_any(ids), split, lambda: (ids, splits, spans))

    def _is_any(self, ids):
        return tf.reduce_any(tf.gather(self._counts, ids) > 1)

    def _cut(self, ids, splits):
        """Returns the places of the parts in the table, the piece that each is of, and the texts' splits."""
        counts = tf.gather(self._counts, ids)
        parts = tf.ragged.range(counts)
        sources = parts.value_rowids()
        places = tf.gather(tf.gather(self._starts, ids), sources) + parts.values
        ends = tf.concat([[0], tf.cumsum(tf.cast(counts, tf.int64))], axis=0)
        return places, sources, tf.gather(ends, splits)


def ends_in_number_comma(piece: str) -> bool:
    return len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()


def _parts(piece, stem, ids, vocabulary):
    """Returns (id, first character, character behind the last) of each part of a piece, its mark of a space left out.

    The stem is the part before the comma, and `ids` are the model's of that by itself, behind a mark of a space.
    """

    def id_of(text):
        return vocabulary.id_of(text if text in vocabulary else UNK)

    texts = [vocabulary.pieces[part] for part in ids]
    if not piece.startswith(SPACE_MARK) and texts and texts[0].startswith(SPACE_MARK):
        texts = [texts[0].removeprefix(SPACE_MARK), *texts[1:]]
        texts = texts if texts[0] else texts[1:]
    lengths = [len(text.replace(SPACE_MARK, "")) for text in texts]
    borders = np.minimum(np.cumsum([0, *lengths]), len(stem)).tolist()
    if texts:
        borders[-1] = len(stem)
    parts = [(id_of(text), begin, end) for text, begin, end in zip(texts, borders, borders[1:])]
    return [*parts, (id_of(","), len(stem), _ALL)]
