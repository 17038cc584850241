"""Texts of several languages: their names, their numbers, and how often each is drawn."""

import collections.abc

import numpy as np

from albert_tf.base.errors import InputError

# In a record: the numbers of the languages of the segments 0 and 1.
LANGUAGES_FEATURE = "languages"
# Between the two languages of a table of pairs.
JOIN = "+"


def languages_of(source: str) -> tuple[str, ...]:
    """Returns the languages of one source of text: `korean` has one, `korean+english`, a table of pairs, two."""
    return tuple(source.split(JOIN))


def all_languages(sources: collections.abc.Iterable[str]) -> tuple[str, ...]:
    """Returns the languages of all sources, each once, in the order in which they are numbered."""
    return tuple(dict.fromkeys(name for source in sources for name in languages_of(source)))


def numbers_of_languages(sources: collections.abc.Sequence[str]) -> np.ndarray:
    """Returns the numbers of the languages of segments 0 and 1, int32 [sources, 2, 2]: by source, and by label.

    Label 1 of a pair means that the second language comes first; elsewhere all is in one language.
    """
    numbers = {name: number for number, name in enumerate(all_languages(sources))}
    pairs = [[numbers[name] for name in (languages_of(source) * 2)[:2]] for source in sources]
    return np.array([[pair, pair[::-1]] for pair in pairs], np.int32)


def check_sources(sources: list[str]) -> None:
    """Raises InputError if `languages` doesn't name languages, or pairs of two of them."""
    for source in sources:
        names = languages_of(source)
        if len(names) > 2 or len(set(names)) < len(names) or not all(name.strip() == name != "" for name in names):
            raise InputError(
                f"`languages={','.join(sources)}`: {source!r} is neither a language nor two of them, as in "
                f"korean{JOIN}english; name one for each path of `input_file`"
            )


def sampling_shares(sizes: list[int], exponent: float) -> list[float]:
    """Returns how often each language is drawn: its share of the text to the power of an exponent, made to add up to 1.

    Conneau and Lample (2019), section 3.1. Sizes are in pieces. Raises InputError if the exponent is not from 0 to 1.
    """
    if not 0 <= exponent <= 1:  # nor NaN
        raise InputError(
            f"`language_exponent={exponent:g}` must be from 0 (all languages alike) to 1 (by their amount of text)"
        )
    powers = [(size / sum(sizes)) ** exponent for size in sizes]
    return [power / sum(powers) for power in powers]
