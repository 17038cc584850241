"""Cleaning up text before it is split: fast with TensorFlow ops, and character by character to tell where each stands.

The steps, in order: control and format characters are removed; full-width characters become ASCII; letters are
lower-cased; accents are stripped; the text is composed (NFC); repeats are squeezed; every run of Unicode spaces becomes
one space, none at the ends. Composition comes after all that takes characters apart, so Hangul stays in syllables
whatever the switches say: the original's do_lower_case leaves it decomposed (NFD), which turns most Korean words into
[UNK]. NFC, unlike NFKC, also leaves compatibility jamo (ㅋㅋ, ㅠㅠ) as they are written.
"""

import dataclasses
import itertools
import re
import unicodedata

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text

from albert_tf.tokenization import bert_normalization, unicode_tables
from albert_tf.tokenization.arrays import cast, cumsum, expanded, gather, indices, masked, segment_max, where
from albert_tf.tokenization.unicode_tables import (
    LOWER_CASE,
    Characters,
    KindOfCharacter,
    Replacement,
    StarterPairs,
    before,
    codes_of,
    differs,
    dropped,
    kept,
    replaced,
)

SPACES = "\t\n\v\f\r\u0085"  # besides these, every character of category Z is a space

# All spaces except " ", which is most of them and needs no replacing.
OTHER_SPACE = r"[\t\n\v\f\r\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}]"
# Text that only lower-casing and squeezing change: most Korean text. Matching it takes a fraction of the steps' time.
_NORMAL_TEXT = r"([!-~가-힣ㄱ-ㅣ]+( [!-~가-힣ㄱ-ㅣ]+)*)?"
_NORMAL_WITHOUT_HANGUL = r"([!-~]+( [!-~]+)*)?"
REMOVED = r"[\p{Cc}\p{Cf}\x{FFFD}]"

FULL_WIDTH = range(0xFF01, 0xFF5F)
FULL_WIDTH_TO_ASCII = 0xFEE0  # how far a full-width character lies above its ASCII form

_HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb\uffa0-\uffdc"
SQUEEZED = rf"[\p{{P}}\p{{S}}{_HANGUL}]"
MOST_REPEATS = 2

_HANGUL_CHARACTER = re.compile(f"[{_HANGUL}]")

_SPACE = ord(" ")

FORMS = ("korean", "bert", "google")


@dataclasses.dataclass(frozen=True)
class NormalizationOptions:
    """Switches of the normalisation, each independent of the other.

    Attributes:
        lower_case: Map letters to lower case. Hangul has no case.
        strip_accents: Drop combining marks (é to e). Hangul is left composed.
        squeeze_repeats: Leave two of a Hangul character, punctuation mark or symbol that is repeated more often
            (ㅋㅋㅋㅋㅋ to ㅋㅋ). Digits and the letters of other scripts stay: 10000 is not 100, nor is III II.
        full_width_to_ascii: Map full-width letters, digits and punctuation (Ａ１！) to ASCII.
        keep_emoji: Keep joiners, tags and variation selectors where they hold an emoji together (👩‍🚀).
        form: "korean", the steps above; "bert" or "google", those of `bert_normalization`, for vocabularies made with
            BERT's tokenizers, of which `lower_case` and `strip_accents` are the only switches.
        special_tokens_in_text: Of "bert": let "[MASK]" in a text be the special token.
    """

    lower_case: bool = True
    strip_accents: bool = False
    squeeze_repeats: bool = False
    full_width_to_ascii: bool = False
    keep_emoji: bool = True
    form: str = "korean"
    special_tokens_in_text: bool = False

    @property
    def of_bert(self) -> bert_normalization.BertOptions:
        """The switches of a form that is not "korean"."""
        return bert_normalization.BertOptions(
            self.form, self.lower_case, self.strip_accents, self.special_tokens_in_text
        )


def normalize(texts: tf.Tensor, options: NormalizationOptions) -> tf.Tensor:
    """Normalises UTF-8 strings of any shape with TensorFlow ops."""
    return normalize_and_find_unusual(texts, options)[0]


def normalize_and_find_unusual(texts: tf.Tensor, options: NormalizationOptions) -> tuple[tf.Tensor, tf.Tensor]:
    """Normalises strings; returns also the indices, int64 [M, dimensions], of those beyond ASCII, Hangul and jamo."""
    if options.squeeze_repeats:  # any text may hold them
        return _normalize_any(texts, options), tf.where(tf.ones_like(texts, tf.bool))
    texts = bert_normalization.mark_special_tokens(texts, options.of_bert)
    if options.lower_case:
        texts = tf.strings.lower(texts)
    takes_hangul_apart = options.form != "korean" and options.strip_accents
    normal_text = _NORMAL_WITHOUT_HANGUL if takes_hangul_apart else _NORMAL_TEXT
    rows = tf.where(~tf.strings.regex_full_match(texts, normal_text))
    return tf.tensor_scatter_nd_update(texts, rows, _normalize_any(tf.gather_nd(texts, rows), options)), rows


def _normalize_any(texts, options):
    if options.form != "korean":
        return bert_normalization.normalize(texts, options.of_bert)
    texts = tf.strings.regex_replace(texts, OTHER_SPACE, " ")
    texts = _remove(texts, REMOVED, unicode_tables.JOINED_PICTURES if options.keep_emoji else None)
    if options.full_width_to_ascii:
        texts = _full_width_to_ascii(texts)
    if options.lower_case:
        # Lower-casing of Unicode follows the machine's locale: in a Turkish one I becomes ı, unless ASCII goes first.
        texts = tf.strings.regex_replace(tf.strings.lower(texts), "İ", "i\u0307")
        texts = tf.strings.lower(texts, encoding="utf-8")
    if options.strip_accents:
        texts = tf_text.normalize_utf8(texts, "NFD")
        texts = _remove(texts, r"\p{Mn}", unicode_tables.SELECTED_PICTURE if options.keep_emoji else None)
    texts = tf_text.normalize_utf8(texts, "NFC")
    if options.squeeze_repeats:
        texts = _squeeze_repeats(texts)
    return tf.strings.strip(tf.strings.regex_replace(texts, "  +", " "))


def _remove(texts, pattern, kept):
    """Removes matches of a pattern, save where they are part of a match of `kept`."""
    if kept:
        return tf.strings.regex_replace(texts, f"({kept})|{pattern}", r"\1")
    return tf.strings.regex_replace(texts, pattern, "")


def _full_width_to_ascii(texts):
    pattern = f"(?s).*[{chr(FULL_WIDTH.start)}-{chr(FULL_WIDTH.stop - 1)}].*"
    rows = tf.where(tf.strings.regex_full_match(texts, pattern))
    characters = tf.strings.unicode_decode(tf.gather_nd(texts, rows), "UTF-8")
    converted = characters.with_flat_values(_to_ascii(characters.flat_values))
    return tf.tensor_scatter_nd_update(texts, rows, tf.strings.unicode_encode(converted, "UTF-8"))


def _to_ascii(codes):
    is_wide = (codes >= FULL_WIDTH.start) & (codes < FULL_WIDTH.stop)
    return where(is_wide, codes - FULL_WIDTH_TO_ASCII, codes)


def _squeeze_repeats(texts):
    characters = tf.strings.unicode_decode(tf.reshape(texts, [-1]), "UTF-8")
    values, rows = characters.flat_values, characters.value_rowids()
    # A character is one too many if it equals the two before it, in the same text.
    is_repeat = tf.ones_like(values[MOST_REPEATS:], tf.bool)
    for distance in range(1, MOST_REPEATS + 1):
        begin, end = MOST_REPEATS - distance, tf.size(values) - distance
        is_repeat &= (values[MOST_REPEATS:] == values[begin:end]) & (rows[MOST_REPEATS:] == rows[begin:end])
    repeats = tf.where(is_repeat) + MOST_REPEATS
    is_squeezed = tf.strings.regex_full_match(
        tf.strings.unicode_encode(tf.gather_nd(values, repeats)[:, tf.newaxis], "UTF-8"), SQUEEZED
    )
    is_kept = tf.tensor_scatter_nd_update(tf.ones_like(values, tf.bool), repeats, ~is_squeezed)
    kept = tf.ragged.boolean_mask(characters, characters.with_flat_values(is_kept))
    return tf.reshape(tf.strings.unicode_encode(kept, "UTF-8"), tf.shape(texts))


def normalized_characters(texts: list[str] | tf.Tensor, options: NormalizationOptions) -> Characters:
    """Returns the characters of `normalize`d texts, strings or string [N], but for spaces, and where they stand.

    Those of strings are arrays, the same as of a tensor. A capital sigma is lower-cased as if it ended no word.
    """
    characters = bert_normalization.marked_characters(texts, options.of_bert)
    if options.form != "korean":
        characters = bert_normalization.normalize_characters(characters, options.of_bert)
    else:
        characters = _korean_characters(characters, options)
    return kept(characters, characters.codes != _SPACE)


def _korean_characters(characters, options):
    cleaned = _CLEANED(characters.codes)
    if options.keep_emoji:
        cleaned = where(_matches(characters, unicode_tables.JOINED_PICTURES), _KEPT, cleaned)
    characters = characters._replace(codes=where(cleaned == _A_SPACE, _SPACE, characters.codes))
    characters = kept(characters, cleaned < _REMOVED)
    if options.full_width_to_ascii:
        characters = characters._replace(codes=_to_ascii(characters.codes))
    if options.lower_case:
        characters = replaced(characters, LOWER_CASE)
    if options.strip_accents:
        characters = replaced(characters, _DECOMPOSED)
        is_kept = _IS_MARK(characters.codes) < 1
        if options.keep_emoji:
            is_kept |= _matches(characters, unicode_tables.SELECTED_PICTURE)
        characters = dropped(characters, is_kept)
    characters = _compose(characters)
    if options.squeeze_repeats:
        begins_repeat = differs(characters.rows) | differs(characters.codes)
        places = indices(characters.codes)
        count = places - gather(masked(places, begins_repeat), cumsum(cast(begins_repeat)) - 1)
        characters = dropped(characters, (count < MOST_REPEATS) | (_IS_SQUEEZED(characters.codes) < 1))
    return characters


def _compose(characters):
    """Composes each shortest run of characters that can't combine with what follows; all of it has its span."""
    codes, rows = characters.codes, characters.rows
    is_first = differs(rows)
    pair = where(is_first, -1, _COMPOSED_PAIR(before(codes, 0), codes))
    # What the character before was composed to, in its turn, may compose with this one.
    pair_before = before(pair, -1)
    joined = _COMPOSED_PAIR(where(pair_before >= 0, pair_before, before(codes, 0)), codes) >= 0
    begins_run = is_first | (codes < 128) | ((_COMBINES(codes) < 1) & ~joined)
    runs = cumsum(cast(begins_run)) - 1
    of_runs = masked(characters.begins, begins_run), segment_max(characters.ends, runs), masked(rows, begins_run)
    composed, sources = _composed_runs(codes, begins_run, runs)
    return Characters(composed, *(gather(values, sources) for values in of_runs))


def _composed_runs(codes, begins_run, runs):
    """Returns the code points of the NFC of each run, and which run each is of, int32 [K] both."""
    if tf.is_tensor(codes):
        num_runs = tf.math.count_nonzero(begins_run)
        rows = tf.RaggedTensor.from_value_rowids(codes, tf.cast(runs, tf.int64), num_runs)
        composed = tf_text.normalize_utf8(tf.strings.unicode_encode(rows, "UTF-8"), "NFC")
        decoded = tf.strings.unicode_decode(composed, "UTF-8")
        return decoded.values, decoded.value_rowids()
    text, borders = "".join(map(chr, codes)), [*np.flatnonzero(begins_run), len(codes)]
    composed = [unicodedata.normalize("NFC", text[begin:end]) for begin, end in itertools.pairwise(borders)]
    return codes_of("".join(composed)), expanded(np.array(list(map(len, composed)), np.int32))[1]


def _matches(characters, pattern):
    """Returns which characters are part of a match of a pattern, bool [M]."""
    codes, rows = characters.codes, characters.rows
    if not tf.is_tensor(codes):
        text, is_match = "".join(map(chr, codes)), np.zeros(len(codes), bool)
        for begin, end in itertools.pairwise([*np.flatnonzero(differs(rows)), len(codes)]):
            for match in re.compile(pattern).finditer(text, begin, end):
                is_match[slice(*match.span())] = True
        return is_match
    num_texts = 1 + tf.reduce_max(tf.concat([[-1], rows], axis=0))
    # Splitting ends at NUL; another character of one byte, of no pattern, stands in for it.
    codes = tf.RaggedTensor.from_value_rowids(
        tf.maximum(codes, 1), tf.cast(rows, tf.int64), tf.cast(num_texts, tf.int64)
    )
    parts, begins, _ = tf_text.regex_split_with_offsets(tf.strings.unicode_encode(codes, "UTF-8"), pattern, pattern)
    sizes = 1 + sum(tf.cast(codes.values >= least, tf.int64) for least in (0x80, 0x800, 0x10000))
    places = tf.cumsum(sizes, exclusive=True)
    starts = tf.gather(tf.concat([places, [0]], axis=0), codes.row_starts())
    part_places = begins.values + tf.gather(starts, begins.value_rowids())
    of_part = tf.searchsorted(part_places, places, side="right") - 1
    is_match = tf.strings.regex_full_match(parts.values, pattern)
    return tf.gather(tf.concat([is_match, [False]], axis=0), tf.maximum(of_part, 0))


def clean_character(character: str) -> str:
    """Returns " " for a space, "" for a character that is removed outside emoji, else the character."""
    category = unicodedata.category(character)
    if character in SPACES or category.startswith("Z"):
        return " "
    return "" if category in ("Cc", "Cf", "Cs") or character == "\ufffd" else character


def _is_squeezed(character):
    return unicodedata.category(character)[0] in "PS" or _HANGUL_CHARACTER.match(character) is not None


_KEPT, _A_SPACE, _REMOVED = range(3)
_CLEANED = KindOfCharacter(lambda character: {"": _REMOVED, " ": _A_SPACE}.get(clean_character(character), _KEPT))
_IS_MARK = KindOfCharacter(lambda character: int(unicodedata.category(character) == "Mn"))
# Of Tibetan signs it is the first part that combines.
_COMBINES = KindOfCharacter(
    lambda character: int(unicodedata.combining(unicodedata.normalize("NFD", character)[0]) != 0)
)
_IS_SQUEEZED = KindOfCharacter(lambda character: int(_is_squeezed(character)))
# Syllables are composed of the same letters again, and no letter is a mark.
_DECOMPOSED = Replacement(
    lambda character: character if "가" <= character <= "힣" else unicodedata.normalize("NFD", character)
)
_COMPOSED_PAIR = StarterPairs()


def depends_on_neighbours(character: str, options: NormalizationOptions) -> bool:
    """Whether what a character becomes, or whether it stays, may be another matter beside others."""
    if options.form != "korean":
        first = unicode_tables.decompose(character)[0]
        return options.strip_accents and (unicode_tables.is_mark(first) or unicode_tables.combining_class(first) > 0)
    if options.keep_emoji and unicode_tables.may_join(character):
        return True
    return unicodedata.category(character).startswith("M") or "\u1100" <= character <= "\u11ff"
