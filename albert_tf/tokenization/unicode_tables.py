"""Properties of characters in Unicode, and characters of texts with the places that they come from."""

import collections.abc
import functools
import re
import sys
import typing
import unicodedata

import numpy as np
import tensorflow as tf

from albert_tf.tokenization.arrays import (
    Array,
    cast,
    concat,
    cumsum,
    expanded,
    gather,
    masked,
    segment_max,
    where,
)

# Planes in which no character has a case, a decomposition or a combining class.
_PLAIN = range(0x40000, 0xE0000)
_CODE_POINTS = [*range(_PLAIN.start), *range(_PLAIN.stop, 0xE1000)]
_HANGUL_SYLLABLES = range(0xAC00, 0xD7A4)

# Of arrays each character is looked up in Python's database; for graphs that becomes a table, small enough for one of
# their constants, when the first is made.


class KindOfCharacter:
    """A number for each character, as a function gives it; for graphs as ranges of characters with the same."""

    def __init__(self, kind_of: collections.abc.Callable[[str], int]):
        self._kind_of = kind_of

    @functools.cached_property
    def _ranges(self):
        begins, kinds = [], []
        for code_point in _CODE_POINTS:
            kind = self._kind_of(chr(code_point))
            if not kinds or kind != kinds[-1]:
                begins.append(code_point)
                kinds.append(kind)
        return np.array(begins, np.int32), np.array(kinds, np.int32)

    def __call__(self, characters: Array) -> Array:
        """Returns the numbers of int32 [M] characters, int32 [M]."""
        if not tf.is_tensor(characters):
            different, places = np.unique(characters, return_inverse=True)
            return np.array([self._kind_of(chr(code)) for code in different], np.int32)[places]
        begins, kinds = self._ranges
        return tf.gather(kinds, tf.searchsorted(begins, characters, side="right") - 1)


class Replacement:
    """The characters that a function puts in the place of each, maybe none."""

    def __init__(self, replace: collections.abc.Callable[[str], str]):
        self._replace = replace

    @functools.cached_property
    def _table(self):
        found = {
            code_point: self._replace(chr(code_point))
            for code_point in _CODE_POINTS
            if not 0xD800 <= code_point < 0xE000
        }
        changed = {code_point: text for code_point, text in found.items() if text != chr(code_point)}
        # One more, which no character is, so that there is always something to look up.
        keys = np.array([*changed, sys.maxunicode + 1], np.int32)
        splits = np.cumsum([0, *map(len, changed.values()), 1]).astype(np.int32)
        return keys, splits, np.array([*map(ord, "".join(changed.values())), 0], np.int32)

    def __call__(self, characters: Array) -> tuple[Array, Array]:
        """Returns the replacements of int32 [M] characters, and which of the M each comes from, int32 [K] both."""
        if not tf.is_tensor(characters):
            different, places = np.unique(characters, return_inverse=True)
            texts = np.array([self._replace(chr(code)) for code in different], object)[places].tolist()
            return codes_of("".join(texts)), expanded(np.array(list(map(len, texts)), np.int32))[1]
        keys, splits, replacements = self._table
        places = tf.searchsorted(keys, characters)
        is_changed = tf.equal(tf.gather(keys, places), characters)
        counts = tf.where(is_changed, tf.gather(np.diff(splits), places), 1)
        numbers, sources = expanded(counts)
        values = tf.minimum(tf.gather(splits[:-1], tf.gather(places, sources)) + numbers, len(replacements) - 1)
        replaced = tf.where(
            tf.gather(is_changed, sources), tf.gather(replacements, values), tf.gather(characters, sources)
        )
        return replaced, sources


class StarterPairs:
    """The characters that two starters, such as a leading and a vowel jamo, are composed to."""

    @functools.cached_property
    def _table(self):
        pairs = {}
        for code_point in _CODE_POINTS:
            parts = (
                unicodedata.normalize("NFD", chr(code_point)) if code_point in _HANGUL_SYLLABLES else _pair(code_point)
            )
            if len(parts) == 3:  # a syllable of three letters is made of one of two and the last
                parts = (unicodedata.normalize("NFC", parts[:2]), parts[2])
            if len(parts) == 2 and not unicodedata.combining(parts[1]):
                pairs[(ord(parts[0]) << 21) + ord(parts[1])] = code_point
        keys = np.array([*sorted(pairs), np.iinfo(np.int64).max])
        return keys, np.array([*(pairs[key] for key in sorted(pairs)), -1], np.int32)

    def __call__(self, first: Array, second: Array) -> Array:
        """Returns the characters that each two of int32 [M] are composed to, -1 if to nothing: int32 [M]."""
        if not tf.is_tensor(second):
            return np.array([_composed(*map(chr, pair)) for pair in zip(first, second)], np.int32)
        keys, composed = self._table
        pairs = tf.bitwise.left_shift(tf.cast(first, tf.int64), 21) + tf.cast(second, tf.int64)
        places = tf.searchsorted(keys, pairs)
        return tf.where(tf.equal(tf.gather(keys, places), pairs), tf.gather(composed, places), -1)


def _pair(code_point):
    """Returns the two characters that are composed to this one, nothing if there are no such."""
    character = chr(code_point)
    parts = [part for part in unicodedata.decomposition(character).split() if not part.startswith("<")]
    if len(parts) != 2 or unicodedata.normalize("NFC", character) != character:
        return ""
    return "".join(chr(int(part, 16)) for part in parts)


def _composed(first, second):
    joined = unicodedata.normalize("NFC", first + second)
    return ord(joined) if len(joined) == 1 and not unicodedata.combining(second) else -1


# Characters of texts and where they come from, for the steps of normalisation.

CAPITAL_SIGMA, _FINAL_SIGMA = "Σς"
_NEITHER, _CASED, _CASE_IGNORABLE = range(3)


class Characters(typing.NamedTuple):
    """Characters of several texts, one text after the other, and where they come from, int32 [M] each."""

    codes: Array  # their code points
    begins: Array  # where what they stand for begins in its text
    ends: Array  # where it ends
    rows: Array  # their text, ascending


def codes_of(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.int32)


def characters_of(texts: list[str] | tf.Tensor) -> Characters:
    """Returns the characters of texts, strings or string [N]; bytes that are no UTF-8 become U+FFFD.

    Lone surrogates of strings, of which tensors hold none, are left out.
    """
    if tf.is_tensor(texts):
        decoded = tf.strings.unicode_decode(texts, "UTF-8")
        codes, rows = decoded.values, tf.cast(decoded.value_rowids(), tf.int32)
        begins = tf.range(tf.size(codes)) - tf.gather(tf.cast(decoded.row_starts(), tf.int32), rows)
        return Characters(codes, begins, begins + 1, rows)
    codes = codes_of("".join(texts))
    begins, rows = expanded(np.array(list(map(len, texts)), np.int32))
    is_character = (codes < 0xD800) | (codes >= 0xE000)
    characters = Characters(codes, begins, begins + 1, rows)
    return characters if is_character.all() else kept(characters, is_character)


def texts_of(characters: Characters, num_texts: tf.Tensor) -> tf.Tensor:
    """Returns the characters, of tensors, as so many strings, string [N]."""
    rows = tf.cast(characters.rows, tf.int64)
    ragged = tf.RaggedTensor.from_value_rowids(characters.codes, rows, tf.cast(num_texts, tf.int64))
    return tf.strings.unicode_encode(ragged, "UTF-8")


def kept(characters: Characters, is_kept: Array) -> Characters:
    return Characters(*(masked(values, is_kept) for values in characters))


def replaced(characters: Characters, replacement: Replacement) -> Characters:
    """Replaces characters; several that take the place of one all have its span."""
    codes, sources = replacement(characters.codes)
    return Characters(codes, *(gather(values, sources) for values in characters[1:]))


def dropped(characters: Characters, is_kept: Array) -> Characters:
    """Drops characters; their spans go to the last character before them that is kept, if there is one."""
    groups = cumsum(cast(is_kept))
    left = kept(characters, is_kept)
    is_of_text = gather(concat([[-1], left.rows]), groups) == characters.rows
    return left._replace(ends=segment_max(where(is_of_text, characters.ends, 0), groups)[1:])


def before(values: Array, first: int) -> Array:
    """Returns what stands before each of values [M], `first` before the first."""
    return concat([[first], values])[:-1]


def differs(values: Array) -> Array:
    """Returns where a value of [M] differs from the one before it, bool [M]; True for the first."""
    return concat([values[:1] == values[:1], values[1:] != values[:-1]])


LOWER_CASE = Replacement(str.lower)


def end_words_in_sigma(characters: Characters) -> Characters:
    """Gives a capital sigma at the end of a word the lower case that it has there.

    That is, by the rule of Unicode, after a cased letter and before none, other marks passed over.
    """
    is_sigma = characters.codes == ord(CAPITAL_SIGMA)
    if not tf.is_tensor(is_sigma):
        return _with_final_sigmas(characters, is_sigma)
    return tf.cond(tf.reduce_any(is_sigma), lambda: _with_final_sigmas(characters, is_sigma), lambda: characters)


def _with_final_sigmas(characters, is_sigma):
    kinds = _KIND_OF_CASE(characters.codes)
    is_letter = kinds != _CASE_IGNORABLE
    cased_rows = where(masked(kinds, is_letter) == _CASED, masked(characters.rows, is_letter), -1)
    # Of the letters around a sigma, which is one itself; one more, so that there is something to look up.
    number = cumsum(cast(is_letter))
    cased_rows = concat([[-1], cased_rows, [-1]])
    follows_cased = gather(cased_rows, where(is_sigma, number - 1, 0)) == characters.rows
    precedes_cased = gather(cased_rows, where(is_sigma, number + 1, 0)) == characters.rows
    is_final = is_sigma & follows_cased & ~precedes_cased
    return characters._replace(codes=where(is_final, ord(_FINAL_SIGMA), characters.codes))


def _kind_of_case(character):
    if f"AΣ{character}".lower()[1] == "σ":
        return _CASED
    return _CASE_IGNORABLE if f"AΣ{character}a".lower()[1] == "σ" else _NEITHER


_KIND_OF_CASE = KindOfCharacter(_kind_of_case)


# The characters as BERT's tokenizers, that of the library `tokenizers` and Google's, see them.
#
# The library knows Unicode as of several years: categories of version 8, decompositions of version 9, lower case of
# version 17. So that ids are the same whatever the version of Python, what its own database may say otherwise is
# written down here: begins and ends of ranges, hexadecimal, found by giving the library (0.23) every character
# there is.
#
# The tables serve for Google's tokenizer, too: it asks the Python that runs it, which was 3.5 or 3.6 (Unicode 8 or 9)
# when its models were trained.


def _characters(ranges: str) -> str:
    """Returns the inside of a regular expression's brackets, in the syntax of Python's `re`."""
    return "".join("-".join(f"\\U{int(border, 16):08x}" for border in borders.split("-")) for borders in ranges.split())


def _for_tensorflow(ranges: str) -> str:
    """Returns the same in the syntax of TensorFlow's RE2."""
    return "".join("-".join(f"\\x{{{border}}}" for border in borders.split("-")) for borders in ranges.split())


_REMOVED = (
    "0-8 b-c e-1f 7f-9f ad 600-605 61c 6dd 70f 180e 200b-200f 202a-202e 2060-2064 2066-206f feff fff9-fffb fffd 110bd "
    "1bca0-1bca3 1d173-1d17a e0001 e0020-e007f"
)
_PRIVATE_USE = "e000-f8ff f0000-ffffd 100000-10fffd"
_SPACES = "9-a d 20 a0 1680 2000-200a 2028-2029 202f 205f 3000"
_IDEOGRAPHS = "3400-4dbf 4e00-9fff f900-faff 20000-2a6df 2a700-2b81f 2b920-2ceaf 2f800-2fa1f"
_IDEOGRAPHS_OF_GOOGLE_ALONE = "2b820-2b91f"
_REMOVED_BY_GOOGLE_ALONE = "8e2"  # since Unicode 9
_MARKS = (
    "300-33f 342 345-36f 483-487 591-5bd 5bf 5c1-5c2 5c4-5c5 5c7 610-61a 64b-65f 670 6d6-6dc 6df-6e4 6e7-6e8 "
    "6ea-6ed 711 730-74a 7a6-7b0 7eb-7f3 816-819 81b-823 825-827 829-82d 859-85b 8e3-902 93a 93c 941-948 94d "
    "951-957 962-963 981 9bc 9c1-9c4 9cd 9e2-9e3 a01-a02 a3c a41-a42 a47-a48 a4b-a4d a51 a70-a71 a75 a81-a82 abc "
    "ac1-ac5 ac7-ac8 acd ae2-ae3 b01 b3c b3f b41-b44 b4d b56 b62-b63 b82 bc0 bcd c00 c3e-c40 c46-c47 c4a-c4d "
    "c55-c56 c62-c63 c81 cbc cbf cc6 ccc-ccd ce2-ce3 d01 d41-d44 d4d d62-d63 dca dd2-dd4 dd6 e31 e34-e3a e47-e4e "
    "eb1 eb4-eb9 ebb-ebc ec8-ecd f18-f19 f35 f37 f39 f71-f72 f74 f77 f79-f7e f80 f82-f84 f86-f87 f8d-f92 f94-f97 "
    "f99-f9c f9e-fa1 fa3-fa6 fa8-fab fad-fb8 fba-fbc fc6 102d-1030 1032-1037 1039-103a 103d-103e 1058-1059 "
    "105e-1060 1071-1074 1082 1085-1086 108d 109d 135d-135f 1712-1714 1732-1734 1752-1753 1772-1773 17b4-17b5 "
    "17b7-17bd 17c6 17c9-17d3 17dd 180b-180d 18a9 1920-1922 1927-1928 1932 1939-193b 1a17-1a18 1a1b 1a56 1a58-1a5e "
    "1a60 1a62 1a65-1a6c 1a73-1a7c 1a7f 1ab0-1abd 1b00-1b03 1b34 1b36-1b3a 1b3c 1b42 1b6b-1b73 1b80-1b81 1ba2-1ba5 "
    "1ba8-1ba9 1bab-1bad 1be6 1be8-1be9 1bed 1bef-1bf1 1c2c-1c33 1c36-1c37 1cd0-1cd2 1cd4-1ce0 1ce2-1ce8 1ced 1cf4 "
    "1cf8-1cf9 1dc0-1df5 1dfc-1dff 20d0-20dc 20e1 20e5-20f0 2cef-2cf1 2d7f 2de0-2dff 302a-302d 3099-309a a66f "
    "a674-a67d a69e-a69f a6f0-a6f1 a802 a806 a80b a825-a826 a8c4 a8e0-a8f1 a926-a92d a947-a951 a980-a982 a9b3 "
    "a9b6-a9b9 a9bc a9e5 aa29-aa2e aa31-aa32 aa35-aa36 aa43 aa4c aa7c aab0 aab2-aab4 aab7-aab8 aabe-aabf aac1 "
    "aaec-aaed aaf6 abe5 abe8 abed fb1e fe00-fe0f fe20-fe2f 101fd 102e0 10376-1037a 10a01-10a03 10a05-10a06 "
    "10a0c-10a0f 10a38-10a3a 10a3f 10ae5-10ae6 11001 11038-11046 1107f-11081 110b3-110b6 110b9-110ba 11100-11102 "
    "11127-1112b 1112d 11130-11134 11173 11180-11181 111b6-111be 111ca-111cc 1122f-11231 11234 11236-11237 112df "
    "112e3-112ea 11300-11301 1133c 11340 11366-1136c 11370-11374 114b3-114b8 114ba 114bf-114c0 114c2-114c3 115b2-115b5 "
    "115bc-115bd 115bf-115c0 115dc-115dd 11633-1163a 1163d 1163f-11640 116ab 116ad 116b0-116b5 116b7 1171d-1171f "
    "11722-11725 11727-1172b 16af0-16af4 16b30-16b36 16f8f-16f92 1bc9d-1bc9e 1d167-1d169 1d17b-1d182 1d185-1d18b "
    "1d1aa-1d1ad 1d242-1d244 1da00-1da36 1da3b-1da6c 1da75 1da84 1da9b-1da9f 1daa1-1daaf 1e8d0-1e8d6 e0100-e01ef"
)
_PUNCTUATION = (
    "21-2f 3a-40 5b-60 7b-7e a1 a7 ab b6-b7 bb bf 37e 387 55a-55f 589-58a 5be 5c0 5c3 5c6 5f3-5f4 609-60a 60c-60d "
    "61b 61e-61f 66a-66d 6d4 700-70d 7f7-7f9 830-83e 85e 964-965 970 af0 df4 e4f e5a-e5b f04-f12 f14 f3a-f3d f85 "
    "fd0-fd4 fd9-fda 104a-104f 10fb 1360-1368 1400 166d-166e 169b-169c 16eb-16ed 1735-1736 17d4-17d6 17d8-17da "
    "1800-180a 1944-1945 1a1e-1a1f 1aa0-1aa6 1aa8-1aad 1b5a-1b60 1bfc-1bff 1c3b-1c3f 1c7e-1c7f 1cc0-1cc7 1cd3 "
    "2010-2027 2030-2043 2045-2051 2053-205e 207d-207e 208d-208e 2308-230b 2329-232a 2768-2775 27c5-27c6 27e6-27ef "
    "2983-2998 29d8-29db 29fc-29fd 2cf9-2cfc 2cfe-2cff 2d70 2e00-2e2e 2e30-2e42 3001-3003 3008-3011 3014-301f 3030 "
    "303d 30a0 30fb a4fe-a4ff a60d-a60f a673 a67e a6f2-a6f7 a874-a877 a8ce-a8cf a8f8-a8fa a8fc a92e-a92f a95f "
    "a9c1-a9cd a9de-a9df aa5c-aa5f aade-aadf aaf0-aaf1 abeb fd3e-fd3f fe10-fe19 fe30-fe52 fe54-fe61 fe63 fe68 "
    "fe6a-fe6b ff01-ff03 ff05-ff0a ff0c-ff0f ff1a-ff1b ff1f-ff20 ff3b-ff3d ff3f ff5b ff5d ff5f-ff65 10100-10102 "
    "1039f 103d0 1056f 10857 1091f 1093f 10a50-10a58 10a7f 10af0-10af6 10b39-10b3f 10b99-10b9c 11047-1104d "
    "110bb-110bc 110be-110c1 11140-11143 11174-11175 111c5-111c9 111cd 111db 111dd-111df 11238-1123d 112a9 114c6 "
    "115c1-115d7 11641-11643 1173c-1173e 12470-12474 16a6e-16a6f 16af5 16b37-16b3b 16b44 1bc9f 1da87-1da8b"
)
# What the splitting of tensorflow_text takes for punctuation or an ideograph and BERT's does not, or the reverse.
_SPLIT_DIFFERENTLY = (
    "61d 9fd a76 c77 c84 166d 1b4e-1b4f 1b7d-1b7f 2e43-2e4f 2e52-2e5d 10d6e 10ead 10f55-10f59 10f86-10f89 111c9 "
    "113d4-113d5 113d7-113d8 1144b-1144f 1145a-1145b 1145d 11660-1166c 116b9 1183b 11944-11946 119e2 11a3f-11a46 "
    "11a9a-11a9c 11a9e-11aa2 11b00-11b09 11be1 11c41-11c45 11c70-11c71 11ef7-11ef8 11f43-11f4f 11fff 12ff1-12ff2 "
    "16d6d-16d6f 16e97-16e9a 16fe2 1e5ff 1e95e-1e95f 2b820-2b91f"
)
# Characters of a combining class that are no marks: the only ones whose order matters once marks are dropped.
_COMBINING = (
    "8d4-8e1 1b44 1baa 1bf2-1bf3 1dfb 302e-302f a953 a9c0 111c0 11235 1134d 11442 11446 116b6 11c3f 1d165-1d166 "
    "1d16d-1d172 1e000-1e006 1e008-1e018 1e01b-1e021 1e023-1e024 1e026-1e02a 1e944-1e94a"
)
# Characters that Python may take apart and the library doesn't, for they are newer than its table.
_NOT_DECOMPOSED = "105c9 105e4 11383 11385 1138e 11391 113c5 113c7-113c8 11938 16121-16128 16d68-16d6a"
# Begin, end and the distance to the lower case of letters that a version of Python may not know yet.
_NEW_CAPITALS = (
    (0x1C89, 0x1C89, 1),
    (0x2C2F, 0x2C2F, 48),
    (0xA7C0, 0xA7C0, 1),
    (0xA7CB, 0xA7CB, 0x264 - 0xA7CB),
    (0xA7CC, 0xA7CC, 1),
    (0xA7CE, 0xA7CE, 1),
    (0xA7D0, 0xA7D0, 1),
    (0xA7D2, 0xA7D2, 1),
    (0xA7D4, 0xA7D4, 1),
    (0xA7D6, 0xA7D6, 1),
    (0xA7D8, 0xA7D8, 1),
    (0xA7DA, 0xA7DA, 1),
    (0xA7DC, 0xA7DC, 0x19B - 0xA7DC),
    (0x10570, 0x1057A, 39),
    (0x1057C, 0x1058A, 39),
    (0x1058C, 0x10592, 39),
    (0x10594, 0x10595, 39),
    (0x10D50, 0x10D65, 32),
    (0x16EA0, 0x16EB8, 27),
)
_LOWER_OF_NEW = {
    chr(code): chr(code + distance) for begin, end, distance in _NEW_CAPITALS for code in range(begin, end + 1)
}

_is_removed = re.compile(f"[{_characters(_REMOVED)}]").match
_is_private_use = re.compile(f"[{_characters(_PRIVATE_USE)}]").match
_is_space = re.compile(f"[{_characters(_SPACES)}]").match
_is_ideograph = re.compile(f"[{_characters(_IDEOGRAPHS)}]").match
_is_ideograph_to_google = re.compile(f"[{_characters(_IDEOGRAPHS_OF_GOOGLE_ALONE)}]").match
_is_removed_by_google = re.compile(f"[{_characters(_REMOVED_BY_GOOGLE_ALONE)}]").match
_is_mark = re.compile(f"[{_characters(_MARKS)}]").match
_is_combining = re.compile(f"[{_characters(_COMBINING)}]").match
_is_not_decomposed = re.compile(f"[{_characters(_NOT_DECOMPOSED)}]").match

# Stand for special tokens in texts that may spell them; normalised texts hold no other control characters.
SPECIAL_CHARACTERS = "\x10\x11\x12\x13\x14"

# For TensorFlow's regular expressions.
PUNCTUATION = f"[{SPECIAL_CHARACTERS}{_for_tensorflow(_PUNCTUATION)}]"
SPLIT_DIFFERENTLY = f"[{SPECIAL_CHARACTERS}{_for_tensorflow(_SPLIT_DIFFERENTLY)}]"


def clean(character: str, as_google: bool) -> str:
    """Returns "" for a removed character, " " for a space, an ideograph between spaces, others as they are.

    To Google private use stays, and there is no gap among ideographs.
    """
    if _is_removed(character) or (_is_removed_by_google if as_google else _is_private_use)(character):
        return ""
    if _is_space(character):
        return " "
    is_ideograph = _is_ideograph(character) or (as_google and _is_ideograph_to_google(character))
    return f" {character} " if is_ideograph else character


def decompose(character: str) -> str:
    return character if _is_not_decomposed(character) else unicodedata.normalize("NFD", character)


def combining_class(character: str) -> int:
    """Returns the number by which decomposed characters side by side are ordered, 0 where they are not."""
    return unicodedata.combining(character) if _is_mark(character) or _is_combining(character) else 0


def is_mark(character: str) -> bool:
    return _is_mark(character) is not None


def lower(character: str) -> str:
    """Returns the lower case of a character by itself: one of a sigma, whether or not it ends a word."""
    return _LOWER_OF_NEW.get(character) or character.lower()


# Patterns of emoji sequences, in syntax that RE2 and Python's `re` share.
#
# 👩‍🚀 is 👩, a zero-width joiner and 🚀; 👍🏽 is 👍 and a skin tone; ❤️ is ❤ and a variation selector; 1️⃣ is 1, a
# selector and a key cap; the flag of Scotland is 🏴 and invisible tag characters. Cutting such a sequence shows
# another picture.

JOINER = "\u200d"
SELECTOR = "\ufe0f"
KEY_CAP = "\u20e3"
_SKIN_TONES = "\U0001f3fb-\U0001f3ff"

# Unicode's Extended_Pictographic in whole ranges, without the characters that are punctuation or have a lower case.
_PICTURES = (
    "\xa9\xae\u2122\u2139\u2194-\u2199\u21a9\u21aa\u231a\u231b\u2328\u2388\u23cf\u23e9-\u23fa\u25aa\u25ab\u25b6\u25c0"
    "\u25fb-\u25fe\u2600-\u2767\u2795-\u2797\u27a1\u27b0\u27bf\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55"
    "\u3297\u3299\U0001f000-\U0001f12f\U0001f16c-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff"
)
# ‼ ⁉ 〰 〽 Ⓜ: shown as emoji before a selector, but never joined to others.
_SHOWN_AS_EMOJI = "\u203c\u2049\u3030\u303d\u24c2"

_PICTURE = f"[{_PICTURES}][{_SKIN_TONES}]?{SELECTOR}?"

# What is one picture: a flag of two letters, or a picture as it is changed and tied to others.
_FLAG_LETTERS = "\U0001f1e6-\U0001f1ff"
# Characters that begin one.
PICTURES = _PICTURES + _FLAG_LETTERS

# Sequences with format characters: pictures tied together by joiners, and flags spelled in tags.
JOINED_PICTURES = f"{_PICTURE}(?:{JOINER}{_PICTURE})+|\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f"
# Any of them, the longest first.
WHOLE_PICTURE = f"{JOINED_PICTURES}|{_PICTURE}|[{_FLAG_LETTERS}]{{2}}|[0-9#*]{SELECTOR}?{KEY_CAP}"
# Sequences with a variation selector, which is also a combining mark.
SELECTED_PICTURE = f"[{_PICTURES}{_SHOWN_AS_EMOJI}][{_SKIN_TONES}]?{SELECTOR}|[0-9#*]{SELECTOR}{KEY_CAP}"


def may_join(character: str) -> bool:
    """Whether a format character belongs to an emoji sequence in the right place."""
    return character == JOINER or "\U000e0020" <= character <= "\U000e007f"
