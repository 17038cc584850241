"""The tokenizer's promises, in plain Python, one character at a time: the engine is judged by it."""

import functools
import itertools
import re
import unicodedata

from google_tokenizer import IDEOGRAPHS, is_punctuation

UNKNOWN = "[UNK]"
MAX_BYTES_PER_WORD = 600

_RESERVED = re.compile(r"\[(PAD|UNK|CLS|SEP|MASK|unused\d+)\]")

JOINER, SELECTOR, KEY_CAP, FLAG = "\u200d", "\ufe0f", "\u20e3", "\U0001f3f4"

# Emoji that others can be joined to: single ones, then ranges.
_SINGLE_PICTURES = "©®™ℹ↩↪⌚⌛⌨⎈⏏▪▫▶◀➕➖➗➡➰➿⤴⤵⬅⬆⬇⬛⬜⭐⭕㊗㊙"
_PICTURES = [
    (0x2194, 0x2199),
    (0x23E9, 0x23FA),
    (0x25FB, 0x25FE),
    (0x2600, 0x2767),
    (0x1F000, 0x1F12F),
    (0x1F16C, 0x1F1E5),
    (0x1F200, 0x1F3FA),
    (0x1F400, 0x1FAFF),
]
_HANGUL = [(0x1100, 0x11FF), (0x3131, 0x318E), (0xA960, 0xA97C), (0xAC00, 0xD7A3), (0xD7B0, 0xD7FB), (0xFFA0, 0xFFDC)]


def normalize(
    text: str,
    lower_case: bool = True,
    strip_accents: bool = False,
    squeeze_repeats: bool = False,
    full_width_to_ascii: bool = False,
    keep_emoji: bool = True,
) -> str:
    """Removes control characters, then converts widths, lowers, strips accents, composes and squeezes."""
    text = "".join(character for character in text if unicodedata.category(character) != "Cs")
    text = _remove_controls(text, keep_emoji)
    if full_width_to_ascii:
        text = "".join(chr(ord(mark) - ord("！") + ord("!")) if "！" <= mark <= "～" else mark for mark in text)
    if lower_case:
        text = text.lower()
    if strip_accents:
        text = _remove_marks(unicodedata.normalize("NFD", text), keep_emoji)
    text = unicodedata.normalize("NFC", text)
    if squeeze_repeats:
        runs = [(mark, len(list(run))) for mark, run in itertools.groupby(text)]
        text = "".join(
            character * (min(length, 2) if _is_squeezed(character) else length) for character, length in runs
        )
    return " ".join(part for part in text.split(" ") if part)


def split_words(
    text: str,
    wordpiece_scheme: str = "continuation",
    split_punctuation: bool = True,
    split_digits: bool = False,
    keep_emoji: bool = True,
    split_emoji: bool = False,
) -> list[str]:
    """Splits normalised text; in the end-of-word scheme a word before a space ends in `_`."""
    chunks = [_isolate(chunk, split_punctuation, split_digits, keep_emoji, split_emoji) for chunk in text.split()]
    if wordpiece_scheme == "continuation":
        return [word for chunk in chunks for word in chunk]
    words = [[word.replace("_", "\ufffd") for word in chunk] for chunk in chunks]
    for chunk in words[:-1]:
        chunk[-1] += "_"
    return [word for chunk in words for word in chunk]


class ReferenceTokenizer:
    """The same constructor settings as `KoreanWordPieceTokenizer`, over a list of pieces."""

    def __init__(
        self,
        pieces,
        wordpiece_scheme="continuation",
        split_punctuation=True,
        split_digits=False,
        keep_emoji=True,
        split_emoji=False,
        **normalization,
    ):
        self.pieces = {piece for piece in pieces if not _RESERVED.fullmatch(piece)}
        self.wordpiece_scheme = wordpiece_scheme
        self.normalize = functools.partial(normalize, keep_emoji=keep_emoji, **normalization)
        self.split = functools.partial(
            split_words,
            wordpiece_scheme=wordpiece_scheme,
            split_punctuation=split_punctuation,
            split_digits=split_digits,
            keep_emoji=keep_emoji,
            split_emoji=split_emoji,
        )
        self.cut = functools.cache(self._cut)

    def words(self, text: str) -> list[str]:
        """Returns the words of any text."""
        return self.split(self.normalize(text))

    def tokenize(self, text: str) -> list[str]:
        """Returns the pieces of any text."""
        return [piece for word in self.words(text) for piece in self.cut(word)]

    def _cut(self, word):
        """Takes the longest piece that fits, again and again; a word that can't be used up is unknown."""
        if len(word.encode()) > MAX_BYTES_PER_WORD:
            return [UNKNOWN]
        found, begin = [], 0
        while begin < len(word):
            lengths = range(len(word) - begin, 0, -1)
            spelled = (self._piece(word[begin : begin + length], begin > 0) for length in lengths)
            piece = next((piece for piece in spelled if piece), None)
            if piece is None:
                return [UNKNOWN]
            found.append(piece)
            begin += len(piece) - (len("##") if self.wordpiece_scheme == "continuation" and begin else 0)
        return found

    def _piece(self, characters, inside_word):
        """Returns the piece that stands for characters at the begin of a word or inside it, None if there is none."""
        if self.wordpiece_scheme == "continuation":
            if inside_word:
                characters = f"##{characters}"
            elif characters.startswith("##"):
                return None
        return characters if characters in self.pieces else None


@functools.cache
def _clean(character):
    category = unicodedata.category(character)
    if character in "\t\n\v\f\r\x85" or category in ("Zs", "Zl", "Zp"):
        return " "
    return "" if category in ("Cc", "Cf", "Cs") or character == "\N{REPLACEMENT CHARACTER}" else character


def _remove_controls(text, keep_emoji):
    """Cleans one character after the other, but steps over what emoji are joined by."""
    cleaned, position = [], 0
    while position < len(text):
        end = _end_of_joined(text, position) if keep_emoji else position
        if end == position:
            cleaned.append(_clean(text[position]))
            position += 1
        else:
            cleaned.append(text[position:end])
            position = end
    return "".join(cleaned)


def _end_of_joined(text, begin):
    """Returns where a sequence held together by joiners or tags ends, `begin` if none begins there."""
    end = last = _end_of_picture(text, begin)
    while end > begin and text[end : end + 1] == JOINER and (last := _end_of_picture(text, end + 1)) > end + 1:
        end = last
    if JOINER in text[begin:end]:
        return end
    end = begin + 1
    while text[begin] == FLAG and "\U000e0020" <= text[end : end + 1] <= "\U000e007e":
        end += 1
    return end + 1 if end > begin + 1 and text[end : end + 1] == "\U000e007f" else begin


def _end_of_picture(text, begin):
    """Returns where one emoji with its skin tone and selector ends, `begin` if there is none."""
    if not _is_picture(text[begin : begin + 1]):
        return begin
    end = begin + 1
    end += "\U0001f3fb" <= text[end : end + 1] <= "\U0001f3ff"
    return end + (text[end : end + 1] == SELECTOR)


def _remove_marks(decomposed, keep_emoji):
    parts = []
    for position, part in enumerate(decomposed):
        if unicodedata.category(part) != "Mn":
            parts.append(part)
        elif keep_emoji and part == SELECTOR:
            before = decomposed[max(position - 2, 0) : position]
            is_toned = len(before) == 2 and "\U0001f3fb" <= before[1] <= "\U0001f3ff"
            base = before[0] if is_toned else before[-1:]
            is_key = base in [*"0123456789#*"] and decomposed[position + 1 : position + 2] == KEY_CAP
            if _is_picture(base) or base in ["‼", "⁉", "〰", "〽", "Ⓜ"] or is_key:
                parts.append(part)
    return "".join(parts)


def _isolate(chunk, split_punctuation, split_digits, keep_emoji, split_emoji):
    """Cuts text without spaces around each ideograph and, on request, each punctuation mark, number and emoji."""
    words, is_open, position = [], False, 0
    while position < len(chunk):
        end = position + 1
        end_of_emoji = _end_of_emoji(chunk, position) if split_emoji else position
        is_emoji = end_of_emoji > position
        is_number = not is_emoji and split_digits and unicodedata.category(chunk[position]) == "Nd"
        if is_number:
            end = _end_of_number(chunk, end, not split_punctuation)
        is_mark = split_punctuation and is_punctuation(chunk[position])
        is_alone = is_emoji or is_number or is_mark or _is_ideograph(chunk[position])
        end = max(end, end_of_emoji)
        while is_alone and keep_emoji and chunk[end : end + 1] in [SELECTOR, KEY_CAP]:
            end += 1
        if is_open and not is_alone:
            words[-1] += chunk[position:end]
        else:
            words.append(chunk[position:end])
        is_open, position = not is_alone, end
    return words


def _end_of_emoji(chunk, begin):
    """Returns where an emoji of any kind ends, `begin` if none begins there."""
    following = chunk[begin + 1 : begin + 3]
    if chunk[begin] in [*"0123456789#*"] and following.removeprefix(SELECTOR).startswith(KEY_CAP):
        return begin + 2 + following.startswith(SELECTOR)
    if all(_is_within(letter, [(0x1F1E6, 0x1F1FF)]) for letter in (chunk[begin], following[:1])):
        return begin + 2
    return max(_end_of_joined(chunk, begin), _end_of_picture(chunk, begin))


def _end_of_number(chunk, end, holds_separators):
    def is_digit(position):
        return position < len(chunk) and unicodedata.category(chunk[position]) == "Nd"

    while is_digit(end) or (holds_separators and chunk[end : end + 1] in [*".,:"] and is_digit(end + 1)):
        end += 1
    return end


def _is_picture(character):
    return character in [*_SINGLE_PICTURES] or _is_within(character, _PICTURES)


def _is_squeezed(character):
    return unicodedata.category(character)[0] in "PS" or _is_within(character, _HANGUL)


def _is_within(character, ranges):
    return character != "" and any(first <= ord(character) <= last for first, last in ranges)


@functools.cache
def _is_ideograph(character):
    return _is_within(character, IDEOGRAPHS)
