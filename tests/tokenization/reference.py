"""What the tokenizer promises, in plain Python, one character at a time: the engine is judged by it."""

import functools
import re
import unicodedata

UNKNOWN = "[UNK]"
MAX_BYTES_PER_WORD = 600

_RESERVED = re.compile(r"\[(PAD|UNK|CLS|SEP|MASK|unused\d+)\]")
# The blocks that the original's tokenization.py calls Chinese characters.
_IDEOGRAPHS = [
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0x2F800, 0x2FA1F),
]


def normalize(text: str, lower_case: bool = True, strip_accents: bool = False) -> str:
    """Removes control characters, then lowers, strips accents, composes and squeezes spaces."""
    text = "".join(map(_clean, text))
    if lower_case:
        text = text.lower()
    if strip_accents:
        text = "".join(part for part in unicodedata.normalize("NFD", text) if unicodedata.category(part) != "Mn")
    return " ".join(part for part in unicodedata.normalize("NFC", text).split(" ") if part)


def split_words(text: str, wordpiece_scheme: str = "continuation", split_punctuation: bool = True) -> list[str]:
    """Splits normalised text; in the end-of-word scheme a word before a space ends in `_`."""
    if wordpiece_scheme == "continuation":
        return [word for chunk in text.split() for word in _isolate(chunk, split_punctuation)]
    chunks = [_isolate(chunk, split_punctuation) for chunk in text.split()]
    words = [[word.replace("_", "\ufffd") for word in chunk] for chunk in chunks]
    for chunk in words[:-1]:
        chunk[-1] += "_"
    return [word for chunk in words for word in chunk]


class ReferenceTokenizer:
    """The same constructor settings as `KoreanWordPieceTokenizer`, over a list of pieces."""

    def __init__(
        self, pieces, wordpiece_scheme="continuation", lower_case=True, strip_accents=False, split_punctuation=True
    ):
        self.pieces = {piece for piece in pieces if not _RESERVED.fullmatch(piece)}
        self.wordpiece_scheme = wordpiece_scheme
        self.normalize = functools.partial(normalize, lower_case=lower_case, strip_accents=strip_accents)
        self.split_punctuation = split_punctuation
        self.cut = functools.cache(self._cut)

    def words(self, text: str) -> list[str]:
        """Returns the words of any text."""
        return split_words(self.normalize(text), self.wordpiece_scheme, self.split_punctuation)

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


def _isolate(chunk, split_punctuation):
    """Cuts text without spaces around each ideograph and, on request, each punctuation mark."""
    words, is_open = [], False
    for character in chunk:
        is_alone = _is_ideograph(character) or (split_punctuation and _is_punctuation(character))
        if is_open and not is_alone:
            words[-1] += character
        else:
            words.append(character)
        is_open = not is_alone
    return words


@functools.cache
def _is_ideograph(character):
    return any(first <= ord(character) <= last for first, last in _IDEOGRAPHS)


@functools.cache
def _is_punctuation(character):
    is_symbol = character.isascii() and character.isprintable() and not character.isalnum() and character != " "
    return is_symbol or unicodedata.category(character).startswith("P")
