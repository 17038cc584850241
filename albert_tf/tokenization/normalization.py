"""Cleaning up text before it is split, with TensorFlow ops and, with offsets, in Python; both give the same result.

The steps, in order: control and format characters are removed; full-width characters become ASCII; letters are
lower-cased; accents are stripped; the text is composed (NFC); repeats are squeezed; every run of Unicode spaces becomes
one space, none at the ends. Composition comes after all that takes characters apart, so Hangul stays in syllables
whatever the switches say: the original's do_lower_case leaves it decomposed (NFD), which turns most Korean words into
[UNK]. NFC, unlike NFKC, also leaves compatibility jamo (ㅋㅋ, ㅠㅠ) as they are written.
"""

import dataclasses
import re
import unicodedata

import tensorflow as tf
import tensorflow_text as tf_text

from albert_tf.tokenization import bert_normalization, unicode_tables

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

_JOINED_PICTURES = re.compile(unicode_tables.JOINED_PICTURES)
_SELECTED_PICTURE = re.compile(unicode_tables.SELECTED_PICTURE)
_HANGUL_CHARACTER = re.compile(f"[{_HANGUL}]")

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
    values = characters.flat_values
    is_wide = (values >= FULL_WIDTH.start) & (values < FULL_WIDTH.stop)
    converted = characters.with_flat_values(tf.where(is_wide, values - FULL_WIDTH_TO_ASCII, values))
    return tf.tensor_scatter_nd_update(texts, rows, tf.strings.unicode_encode(converted, "UTF-8"))


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


def normalize_with_offsets(text: str, options: NormalizationOptions) -> tuple[str, list[tuple[int, int]]]:
    """Normalises one string like `normalize`; returns also the half-open span of the text for each character."""
    if options.form != "korean":
        characters = bert_normalization.characters_with_spans(text, options.of_bert)
    else:
        characters = _korean_characters(text, options)
    characters = _strip(_squeeze(characters, " ".__eq__, 1))
    return "".join(character for character, _ in characters), [span for _, span in characters]


def _korean_characters(text, options):
    characters = _clean(text, options.keep_emoji)
    if options.full_width_to_ascii:
        characters = [
            (chr(ord(character) - FULL_WIDTH_TO_ASCII) if ord(character) in FULL_WIDTH else character, span)
            for character, span in characters
        ]
    if options.lower_case:
        characters = _lower(characters)
    if options.strip_accents:
        characters = _strip_accents(characters, options.keep_emoji)
    characters = _compose(characters)
    if options.squeeze_repeats:
        characters = _squeeze(characters, is_squeezed, MOST_REPEATS)
    return characters


def _clean(text, keep_emoji):
    """Returns (character, span) of all that isn't removed, spaces as " "."""
    # Lone surrogates go first: they have no UTF-8 form, so the TensorFlow ops never see them.
    characters = [(character, (i, i + 1)) for i, character in enumerate(text) if not "\ud800" <= character <= "\udfff"]
    kept = _matched_positions(_JOINED_PICTURES, characters) if keep_emoji else ()
    cleaned = [
        (character if i in kept else clean_character(character), span) for i, (character, span) in enumerate(characters)
    ]
    return [(character, span) for character, span in cleaned if character]


def clean_character(character: str) -> str:
    """Returns " " for a space, "" for a character that is removed outside emoji, else the character."""
    category = unicodedata.category(character)
    if character in SPACES or category.startswith("Z"):
        return " "
    return "" if category in ("Cc", "Cf", "Cs") or character == "\ufffd" else character


def _matched_positions(pattern, characters):
    text = "".join(character for character, _ in characters)
    return {i for match in pattern.finditer(text) for i in range(*match.span())}


def _lower(characters):
    # The whole text is lowered at once, because a capital sigma at the end of a word has its own lower case.
    lowered = iter("".join(character for character, _ in characters).lower())
    return [(next(lowered), span) for character, span in characters for _ in character.lower()]


def _strip_accents(characters, keep_emoji):
    """Drops the combining marks of decomposed characters; a mark's span goes to the character before it."""
    parts = [(part, span) for character, span in characters for part in unicodedata.normalize("NFD", character)]
    kept = _matched_positions(_SELECTED_PICTURE, parts) if keep_emoji else ()
    stripped = []
    for i, (part, (begin, end)) in enumerate(parts):
        if i in kept or unicodedata.category(part) != "Mn":
            stripped.append((part, (begin, end)))
        elif stripped:
            base, (base_begin, _) = stripped[-1]
            stripped[-1] = (base, (base_begin, end))
    return stripped


def _compose(characters):
    """Composes each shortest run of characters that can't combine with what follows; its span is the whole run's."""
    composed, run, begin, end = [], "", 0, 0

    def close_run():
        composed.extend((character, (begin, end)) for character in unicodedata.normalize("NFC", run))

    for character, span in characters:
        if run and _is_boundary(run, character):
            close_run()
            run = ""
        if not run:
            begin = span[0]
        run += character
        end = span[1]
    close_run()
    return composed


def _is_boundary(run, character):
    if character.isascii():
        return True
    if unicodedata.combining(character):
        return False
    # A starter may still compose with what precedes it: conjoining jamo do, and some vowel signs.
    joined = unicodedata.normalize("NFC", run + character)
    return joined == unicodedata.normalize("NFC", run) + unicodedata.normalize("NFC", character)


def is_squeezed(character: str) -> bool:
    """Whether a character that is repeated too often is squeezed, where that is asked for."""
    return unicodedata.category(character)[0] in "PS" or _HANGUL_CHARACTER.match(character) is not None


def _squeeze(characters, may_squeeze, most):
    """Leaves at most so many of each run of a character; the last that is left gets the spans of the rest."""
    squeezed, length = [], 0
    for character, span in characters:
        length = length + 1 if squeezed and squeezed[-1][0] == character else 1
        if length > most and may_squeeze(character):
            squeezed[-1] = (character, (squeezed[-1][1][0], span[1]))
        else:
            squeezed.append((character, span))
    return squeezed


def _strip(characters):
    begin = int(bool(characters) and characters[0][0] == " ")
    end = len(characters) - int(len(characters) > begin and characters[-1][0] == " ")
    return characters[begin:end]
