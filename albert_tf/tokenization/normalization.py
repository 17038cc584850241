"""Cleaning text up before it is split: the same result from TensorFlow ops and, with offsets, from Python.

The steps, in order: control and format characters are removed; letters are lower-cased; accents are stripped; the text
is composed (NFC); every run of Unicode spaces becomes one space, none at the ends. Composition comes last, so Hangul
stays in syllables whatever the switches say: the original's do_lower_case leaves it decomposed (NFD), which turns most
Korean words into [UNK]. NFC, unlike NFKC, also leaves compatibility jamo (ㅋㅋ, ㅠㅠ) as they are written.
"""

import dataclasses
import unicodedata

import tensorflow as tf
import tensorflow_text as tf_text

SPACES = "\t\n\v\f\r\u0085"  # besides these, every character of category Z is a space

# All but the space itself, and one at a time: a pattern that most texts don't match is several times as fast.
_SPACE_PATTERN = r"[\t\n\v\f\r\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}]"
_REMOVED_PATTERN = r"[\p{Cc}\p{Cf}\x{FFFD}]"


@dataclasses.dataclass(frozen=True)
class NormalizationOptions:
    """Switches of the normalisation, each independent of the other.

    Attributes:
        lower_case: Map letters to lower case. Hangul has no case.
        strip_accents: Drop combining marks (é to e). Hangul is left composed.
    """

    lower_case: bool = True
    strip_accents: bool = False


def normalize(texts: tf.Tensor, options: NormalizationOptions) -> tf.Tensor:
    """Normalises UTF-8 strings with TensorFlow ops.

    Args:
        texts: string tensor of any shape.
        options: The switches.

    Returns:
        string tensor of the same shape.
    """
    texts = tf.strings.regex_replace(texts, _SPACE_PATTERN, " ")
    texts = tf.strings.regex_replace(texts, _REMOVED_PATTERN, "")
    if options.lower_case:
        # Lower-casing of Unicode follows the machine's locale: in a Turkish one I becomes ı, unless ASCII goes first.
        texts = tf.strings.regex_replace(tf.strings.lower(texts), "İ", "i\u0307")
        texts = tf.strings.lower(texts, encoding="utf-8")
    if options.strip_accents:
        texts = tf_text.normalize_utf8(texts, "NFD")
        texts = tf.strings.regex_replace(texts, r"\p{Mn}", "")
    texts = tf_text.normalize_utf8(texts, "NFC")
    return tf.strings.strip(tf.strings.regex_replace(texts, "  +", " "))


def normalize_with_offsets(text: str, options: NormalizationOptions) -> tuple[str, list[tuple[int, int]]]:
    """Normalises one string and says where each character came from.

    Args:
        text: Any string.
        options: The switches.

    Returns:
        The normalised text, equal to that of `normalize`, and for each of its characters the half-open span
        (begin, end) of characters of `text` that it stands for.
    """
    characters = [(_clean(character), (i, i + 1)) for i, character in enumerate(text)]
    characters = [(character, span) for character, span in characters if character]
    if options.lower_case:
        characters = _lower(characters)
    if options.strip_accents:
        characters = _strip_accents(characters)
    characters = _compose(characters)
    characters = _squeeze_spaces(characters)
    return "".join(character for character, _ in characters), [span for _, span in characters]


def _clean(character):
    """Returns " " for a space, "" for a character that is removed, else the character."""
    category = unicodedata.category(character)
    if character in SPACES or category.startswith("Z"):
        return " "
    return "" if category in ("Cc", "Cf", "Cs") or character == "\ufffd" else character


def _lower(characters):
    # The whole text is lowered at once, because a capital sigma at the end of a word has its own lower case.
    lowered = iter("".join(character for character, _ in characters).lower())
    return [(next(lowered), span) for character, span in characters for _ in character.lower()]


def _strip_accents(characters):
    """Drops the combining marks of decomposed characters; a mark's span goes to the character before it."""
    stripped = []
    for character, (begin, end) in characters:
        for part in unicodedata.normalize("NFD", character):
            if unicodedata.category(part) != "Mn":
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


def _squeeze_spaces(characters):
    squeezed = []
    for character, span in characters:
        if character != " ":
            squeezed.append((character, span))
        elif squeezed and squeezed[-1][0] == " ":
            squeezed[-1] = (" ", (squeezed[-1][1][0], span[1]))
        elif squeezed:
            squeezed.append((character, span))
    if squeezed and squeezed[-1][0] == " ":
        squeezed.pop()
    return squeezed
