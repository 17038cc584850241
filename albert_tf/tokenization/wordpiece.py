"""Cutting words into pieces: greedy longest match, by tensorflow_text."""

import collections.abc
import functools
import re
import types

import tensorflow as tf
import tensorflow_text as tf_text

from albert_tf.base.errors import InputError
from albert_tf.tokenization import unicode_tables
from albert_tf.tokenization.vocabulary import UNK, Vocabulary, is_reserved

# Splitting normalised text into words, the units that WordPiece then cuts up and that whole-word masking covers.
#
# A word ends at a space, around each CJK ideograph, when punctuation is split around each punctuation mark, and
# when digits are split around each number. A variation selector and a key cap stay with what they belong to (‼️,
# 1️⃣). In the end-of-word scheme a word that is followed by a space carries the mark `_` (영화는_ 재미있다), so that
# pieces put side by side give back the text; a `_` of the text itself is kept apart from the mark by writing it as
# U+FFFD, which normalised text never holds.

WORDPIECE_SCHEMES = ("continuation", "end_of_word")
END_OF_WORD = "_"
ESCAPED_UNDERSCORE = "\ufffd"

# Stands for END_OF_WORD while punctuation, which "_" is, gets isolated; normalised text holds no control character.
_MARK = "\x1f"

# ASCII symbols count as punctuation, as in the original's tokenization.py.
_PUNCTUATION = r"!-/:-@\[-`{-~\p{P}\x{FFFD}"
# The blocks that the original isolates; Hangul and Kana are not among them.
_IDEOGRAPHS = (
    r"\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{F900}-\x{FAFF}\x{20000}-\x{2A6DF}\x{2A700}-\x{2B73F}"
    r"\x{2B740}-\x{2B81F}\x{2B820}-\x{2CEAF}\x{2F800}-\x{2FA1F}"
)
# Where punctuation isn't split, it doesn't split a number either: 1,000 and 3.5 and 12:30 are one word.
_DIGITS = r"\p{Nd}+"
_NUMBER = r"\p{Nd}+(?:[.,:]\p{Nd}+)*"


def split_words(
    texts: tf.Tensor,
    wordpiece_scheme: str,
    split_punctuation: bool,
    split_digits: bool = False,
    keep_emoji: bool = True,
    split_emoji: bool = False,
) -> tf.RaggedTensor:
    """Splits normalised strings [N] into words, [N, (words)]; `keep_emoji` keeps selectors with their characters."""
    isolated = isolated_pattern(split_punctuation, split_digits, keep_emoji, split_emoji)
    if wordpiece_scheme == "continuation":
        return tf.strings.split(tf.strings.regex_replace(texts, f"({isolated})", r" \1 "))
    texts = tf.strings.regex_replace(texts, END_OF_WORD, ESCAPED_UNDERSCORE)
    texts = tf.strings.regex_replace(texts, " ", f"{_MARK} ")
    texts = tf.strings.regex_replace(texts, f"({isolated}{_MARK}?)", r" \1 ")
    return tf.strings.split(tf.strings.regex_replace(texts, _MARK, END_OF_WORD))


def isolated_pattern(split_punctuation: bool, split_digits: bool, keep_emoji: bool, split_emoji: bool = False) -> str:
    """Returns a pattern of words that stand by themselves everywhere; the switches are those of `split_words`."""
    isolated = f"[{_IDEOGRAPHS}{_PUNCTUATION if split_punctuation else ''}]"
    if split_digits:
        isolated = f"(?:{_DIGITS if split_punctuation else _NUMBER}|{isolated})"
    if split_emoji:
        isolated = f"(?:{unicode_tables.WHOLE_PICTURE}|{isolated})"
    if keep_emoji:
        isolated += f"[{unicode_tables.SELECTOR}{unicode_tables.KEY_CAP}]*"
    return isolated


def join_words(words: list[list[str]], wordpiece_scheme: str) -> str:
    """Puts words together from pieces without prefixes, with spaces between words in the continuation scheme."""
    texts = ["".join(pieces) for pieces in words]
    if wordpiece_scheme == "continuation":
        return " ".join(texts)
    return "".join(texts).replace(END_OF_WORD, " ").replace(ESCAPED_UNDERSCORE, "_").rstrip(" ")


CONTINUATION_PREFIX = "##"

# A longer word becomes [UNK]: 200 Hangul syllables, the original's limit of 200 characters.
MAX_BYTES_PER_WORD = 600

# What UTF-8 needs for a character at most, and what the engine can count.
_BYTES_PER_CHARACTER = 4
_MOST_BYTES = 2**31 - 1

# What tensorflow_text can hold, the ## of a piece inside a word not counted: 85 Hangul syllables.
MAX_BYTES_PER_PIECE = 256

# Normalised text holds no control character, so no word of it can match a piece that starts with one.
_UNREACHABLE = "\x1f"
_INSIDE_WORD = "\x1e"
_CONTROLS = re.compile("[\x00-\x1f]")

_SENTENCEPIECE_SPACE = "▁"

# What `split_words` and the engine's own splitting treat differently: marks that the engine's version of Unicode
# doesn't know as punctuation, and the parts of emoji that stay with the character before them.
SPLIT_DIFFERENTLY = (
    f"[{unicode_tables.SELECTOR}{unicode_tables.KEY_CAP}\u1b4e\u1b4f\u1b7f\U00010d6e\U000113d4\U000113d5\U000113d7\U000113d8"
    "\U00011be1\U00016d6d-\U00016d6f\U0001e5ff]"
)


def check_scheme(vocabulary: Vocabulary, wordpiece_scheme: str) -> None:
    """Raises InputError if a vocabulary looks as if it was made for another scheme.

    That is if no piece starts with ## in "continuation", or more pieces do than end in _ in "end_of_word".
    """
    pieces = [piece for piece in vocabulary.pieces if not is_reserved(piece)]
    num_inside = sum(piece.startswith(CONTINUATION_PREFIX) for piece in pieces)
    num_marked = sum(piece.endswith(END_OF_WORD) and piece.strip("#_") != "" for piece in pieces)
    if wordpiece_scheme == "end_of_word" and num_inside > num_marked:
        raise InputError(
            f"{vocabulary.source} looks like a vocabulary of the continuation scheme, because more pieces start with "
            f"{CONTINUATION_PREFIX} ({num_inside}) than end in {END_OF_WORD} ({num_marked}); "
            "use wordpiece_scheme=continuation"
        )
    if wordpiece_scheme == "continuation" and pieces and not num_inside:
        if num_marked:
            advice = "it looks like one of the end_of_word scheme; use wordpiece_scheme=end_of_word"
        elif any(piece.startswith(_SENTENCEPIECE_SPACE) for piece in pieces):
            advice = "it looks like SentencePiece's; name its .model file in `spm_model_file`"
        else:
            advice = "a word of more than one piece could never be spelled; check that it is a WordPiece vocabulary"
        raise InputError(f"{vocabulary.source} has no piece that starts with {CONTINUATION_PREFIX}: {advice}")


def join_pieces(pieces: list[str], wordpiece_scheme: str) -> str:
    """Puts pieces of text together again, as far as the scheme tells what stood between them."""
    words = []
    for piece in pieces:
        if wordpiece_scheme == "continuation" and piece.startswith(CONTINUATION_PREFIX) and words:
            words[-1].append(piece.removeprefix(CONTINUATION_PREFIX))
        else:
            words.append([piece])
    return join_words(words, wordpiece_scheme)


def piece_text(piece: str, wordpiece_scheme: str) -> str:
    return piece.removeprefix(CONTINUATION_PREFIX) if wordpiece_scheme == "continuation" else piece


def fits(text: str) -> bool:
    return len(text.encode()) <= MAX_BYTES_PER_PIECE


class WordPiece:
    """Greedy longest-match-first WordPiece; a word that can't be covered whole is one [UNK].

    Special tokens and [unused] slots are never matched by text, even where it spells "[MASK]", save by the words that
    `special` has for tokens; nor does "##b" in text match the piece ##b, which stands for a b inside a word. A word of
    more than `max_characters_per_word` is [UNK], or, where that is None, of more than `MAX_BYTES_PER_WORD`. Raises
    InputError if a piece is longer than `MAX_BYTES_PER_PIECE`.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        wordpiece_scheme: str,
        max_characters_per_word: int | None = None,
        special: collections.abc.Mapping[str, str] = types.MappingProxyType({}),
    ):
        self._max_characters = max_characters_per_word
        for line, piece in enumerate(vocabulary.pieces, start=1):
            if not fits(piece_text(piece, wordpiece_scheme)):
                raise InputError(
                    f"{vocabulary.source}, line {line}: the piece has more than {MAX_BYTES_PER_PIECE} bytes; put an "
                    "[unused] slot in its place"
                )
        has_prefix = wordpiece_scheme == "continuation"
        # A word that is not known is [UNK] anyway, and the engine crashes where text matches that.
        special = {token: word for token, word in special.items() if token != UNK}
        self._make_engine = functools.partial(
            tf_text.FastWordpieceTokenizer,
            vocab=[
                special.get(piece) or _engine_piece(piece_id, piece, has_prefix)
                for piece_id, piece in enumerate(vocabulary.pieces)
            ],
            suffix_indicator=_INSIDE_WORD if has_prefix else "",
            max_bytes_per_word=MAX_BYTES_PER_WORD
            if max_characters_per_word is None
            else min(_BYTES_PER_CHARACTER * max_characters_per_word, _MOST_BYTES),
            token_out_type=tf.int32,
            unknown_token=_UNREACHABLE + UNK,
        )

    # The engines take up to 0.1 s each, so they are made when they are first used.

    @functools.cached_property
    def _tokenizer(self):
        with tf.init_scope():  # the first use may be inside a function that is being traced
            return self._make_engine(no_pretokenization=True)

    @functools.cached_property
    def _splitting_tokenizer(self):
        with tf.init_scope():
            try:
                return self._make_engine(no_pretokenization=False)
            except RuntimeError:  # It refuses a vocabulary without any piece that its own splitting could lead to.
                return None

    @property
    def can_split(self) -> bool:
        """Whether `split_and_tokenize` works for this vocabulary."""
        return self._splitting_tokenizer is not None

    def tokenize(self, words: tf.RaggedTensor) -> tf.RaggedTensor:
        """Returns int32 ids [N, (words), (pieces)] for a ragged string tensor [N, (words)]."""
        return self._tokenizer.tokenize(words.with_flat_values(self._without_long(words.flat_values)))

    def split_and_tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Returns int32 ids [N, (pieces)] for normalised texts [N], which the engine itself splits into words.

        It splits as `split_words`, but for `SPLIT_DIFFERENTLY`, and pays no heed to `max_characters_per_word`.
        """
        return self._splitting_tokenizer.tokenize(texts)

    def tokenize_with_byte_offsets(self, words: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Returns ids, begin and end, each [words, (pieces)]; the offsets count UTF-8 bytes of the word."""
        ids, begins, ends = self._tokenizer.tokenize_with_offsets(self._without_long(words))
        if self._max_characters is None:
            return ids, begins, ends
        # A long word is one [UNK] as long as it.
        rows = ends.value_rowids()
        lengths = tf.cast(tf.strings.length(words), ends.dtype)
        long_ends = tf.where(tf.gather(self._is_long(words), rows), tf.gather(lengths, rows), ends.values)
        return ids, begins, ends.with_values(long_ends)

    def may_hold_long_word(self, texts: tf.Tensor) -> tf.Tensor:
        """Returns which of the texts [N] hold more characters between spaces than a word may have, bool [N]."""
        words = tf.strings.split(texts, " ")
        return tf.reduce_any(words.with_flat_values(self._is_long(words.flat_values)), axis=1)

    def _is_long(self, words):
        return tf.strings.length(words, "UTF8_CHAR") > self._max_characters

    def _without_long(self, words):
        """Replaces words [M] that are too long by a text that matches no piece."""
        if self._max_characters is None:
            return words
        return tf.where(self._is_long(words), _UNREACHABLE, words)


def _engine_piece(piece_id, piece, has_prefix):
    """Returns a piece as the engine is given it, with marks that no text can spell."""
    if _CONTROLS.search(piece):  # the engine reads no NUL, and the marks are such characters themselves
        return f"{_UNREACHABLE}{piece_id}"
    if is_reserved(piece) or (has_prefix and piece == CONTINUATION_PREFIX):
        return _UNREACHABLE + piece
    if has_prefix and piece.startswith(CONTINUATION_PREFIX):
        return _INSIDE_WORD + piece.removeprefix(CONTINUATION_PREFIX)
    return piece
