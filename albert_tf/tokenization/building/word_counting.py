"""Counting the words of a text of any size in bounded memory, to learn a vocabulary from."""

import collections
import collections.abc
import itertools

import numpy as np

from albert_tf.tokenization.building.morphemes import BORDER, MorphemeBorders
from albert_tf.tokenization.tokenizer import KoreanWordPieceTokenizer
from albert_tf.tokenization.vocabulary import UNK, Vocabulary

MAX_DIFFERENT_WORDS = 5_000_000

_LINES_PER_BATCH = 8192


def sample_numbers(
    lines: collections.abc.Iterable[str], max_lines: int, random_seed: int = 12345
) -> tuple[np.ndarray, int]:
    """Draws a uniform sample (reservoir sampling); returns its int64 line numbers, ascending, and the number of all."""
    random = np.random.default_rng(random_seed)
    reservoir = np.arange(max_lines)
    lines, total = iter(lines), 0
    while count := sum(1 for _ in itertools.islice(lines, _LINES_PER_BATCH)):
        numbers = np.arange(max(total, max_lines), total + count)
        # Line n stays with probability max_lines / (n + 1), in the place of any that was there.
        places = random.integers(0, numbers + 1)
        stays = places < max_lines
        reservoir[places[stays]] = numbers[stays]
        total += count
    return np.sort(reservoir[:total]), total


def take_numbers(lines: collections.abc.Iterable[str], numbers: np.ndarray) -> collections.abc.Iterator[str]:
    """Yields the lines that `sample_numbers` drew."""
    lines, position = iter(lines), 0
    for number in numbers:
        yield from itertools.islice(lines, int(number) - position, int(number) - position + 1)
        position = int(number) + 1


def count_words(
    lines: collections.abc.Iterable[str],
    morphemes: str = "none",
    max_different_words: int = MAX_DIFFERENT_WORDS,
    report=lambda line: None,
    **tokenizer_settings,
) -> collections.Counter:
    """Counts the words of a text, normalised and split as a tokenizer of the settings will do it.

    Unless `morphemes` is "none", words hold `BORDER` where merges must not cross. With more than `max_different_words`,
    the rarest so far are forgotten until half as many are left, and `report` is called with a line of text.
    """
    splitter = KoreanWordPieceTokenizer(Vocabulary([UNK]), **tokenizer_settings)
    borders = None if morphemes == "none" else MorphemeBorders(morphemes)
    counts = collections.Counter()
    lines = iter(lines)
    while batch := list(itertools.islice(lines, _LINES_PER_BATCH)):
        if borders:
            batch = borders.mark(batch)
        counts.update(splitter.split_words(batch).flat_values.numpy().tolist())
        if len(counts) > max_different_words:
            counts = _forget_rarest(counts, max_different_words // 2, report)
    words = collections.Counter()
    while counts:
        word, count = counts.popitem()
        # Splitting at punctuation may leave a border at an end of a word, where it says nothing.
        word = BORDER.join(part for part in word.decode().split(BORDER) if part)
        if word:
            words[word] += count
    return words


def join_counts(counts: list[collections.Counter], shares: list[float]) -> collections.Counter:
    """Returns the words of several texts together, as if each were its share of all; the shares add up to 1."""
    factors = [share / text.total() for text, share in zip(counts, shares)]
    joined = collections.Counter()
    for text, factor in zip(counts, factors):
        joined.update({word: round(count * factor / min(factors)) for word, count in text.items()})
    return joined


def _forget_rarest(counts, size, report):
    least = 1
    before = len(counts)
    while len(counts) > size:
        least += 1
        counts = collections.Counter({word: count for word, count in counts.items() if count >= least})
    report(f"forgot {before - len(counts):,} of {before:,} different words, those seen less than {least} times so far")
    return counts
