"""Which characters make words unknown to a vocabulary, and what to do about it; nothing here imports TensorFlow."""

import collections
import collections.abc

# How many texts with such words are looked at, and how many characters are named.
MOST_LOOKED_AT = 1000
_MOST_NAMED = 5


def lacking_characters(
    words: collections.abc.Iterable[str],
    are_unknown: collections.abc.Callable[[list[str]], collections.abc.Iterable[bool]],
) -> list[str]:
    """Returns the characters of words that a vocabulary lacks, the most frequent first.

    Args:
        words: Words that it can't spell.
        are_unknown: Given texts, returns which of them hold a word that it can't spell.
    """
    counts = collections.Counter(character for word in words for character in word)
    characters = [character for character, _ in counts.most_common()]
    return [each for each, is_unknown in zip(characters, are_unknown(characters)) if is_unknown] if counts else []


def advice(characters: collections.abc.Sequence[str]) -> str:
    """Returns the end of a sentence about unknown words, which begins with a semicolon; "" without characters."""
    if not characters:
        return ""
    more = " and others" if len(characters) > _MOST_NAMED else ""
    return (
        f"; it lacks {' '.join(characters[:_MOST_NAMED])}{more}: put a space on each side of such a character, and the "
        "rest of the word is read"
    )
