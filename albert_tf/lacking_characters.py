"""The characters that make words unknown to a vocabulary, and the remedy; nothing here imports TensorFlow."""

import collections
import collections.abc
import unicodedata

# How many texts with such words are looked at, and how many characters are named.
MOST_LOOKED_AT = 1000
_MOST_NAMED = 5


def lacking_characters(
    words: collections.abc.Iterable[str],
    are_unknown: collections.abc.Callable[[list[str]], collections.abc.Iterable[bool]],
) -> list[str]:
    """Returns the characters of unknown words that a vocabulary lacks, the most frequent first."""
    counts = collections.Counter(character for word in words for character in word)
    characters = [character for character, _ in counts.most_common()]
    return [each for each, is_unknown in zip(characters, are_unknown(characters)) if is_unknown] if counts else []


def advice(characters: collections.abc.Sequence[str], may_add_spaces: bool = True) -> str:
    """Returns the end of a sentence about unknown words, which begins with a semicolon; "" without characters.

    Characters are given by frequency, the highest first. Spaces may not be added where answers are places in the texts.
    """
    if not characters:
        return ""
    named = characters[:_MOST_NAMED]
    more = " and others" if len(characters) > _MOST_NAMED else ""
    are_symbols = may_add_spaces and not any(map(str.isalnum, named))
    remedy = (
        "put a space on each side of such a character, and the rest of the word is read"
        if are_symbols
        else "such words are read with a vocabulary that holds these characters, as build_vocab.py makes one of your "
        "text"
    )
    return f"; it lacks {' '.join(map(_shown, named))}{more}: {remedy}"


def _shown(character):
    """Returns a character, or its code point if it can't be seen by itself."""
    is_seen = character.isprintable() and not unicodedata.category(character).startswith(("M", "Z"))
    return character if is_seen else f"U+{ord(character):04X}"
