"""Sentences cut in two, one after the other, so that a model can learn which halves belong together.

The text of a chunk becomes: first half, [SEP], second half, [SEP], first half of the next sentence, and so on. Segments
alternate: 0 for every first half, 1 for every second one, each with the [SEP] that ends it.
"""

import random

import numpy as np

from albert_tf.pretraining_data.build.examples import ranges
from albert_tf.pretraining_data.records import SHORTEST_CUT_SENTENCE

# Fewer pieces say too little to tell what they belong to.
_SHORTEST_HALF = 3

NUM_SEPARATORS = 2  # of a sentence


def cut_into_halves(
    documents: list[np.ndarray],
    ids: np.ndarray,
    word_starts: np.ndarray,
    sep_id: int,
    max_num_pieces: int,
    generator: random.Random,
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Cuts every sentence of at least `SHORTEST_CUT_SENTENCE` pieces where a word begins, at a random one.

    A shorter sentence stays in front of the next one of its document that is long enough, and goes into its first half;
    it is left out where there is none, or no room.

    Args:
        documents: int64 [sentences + 1] each, the borders of a document's sentences; none is longer than fits.
        ids: int32, the ids of the whole text.
        word_starts: bool, where its words start.
        sep_id: Id of [SEP].
        max_num_pieces: Most pieces of a sentence with its two [SEP].
        generator: Source of every draw.

    Returns:
        All documents as one: the borders of its sentences, int64 [sentences + 1] in a list; its ids, a [SEP] after each
        half; and where its words start.
    """
    begins, last_begins, ends = _join_short_sentences(documents, max_num_pieces - NUM_SEPARATORS)
    cuts = _draw_cuts(last_begins, ends, word_starts, generator)
    lengths = ends - begins
    places = ranges(begins, lengths)
    sentence_ends = np.cumsum(lengths)
    separators = np.stack([sentence_ends - (ends - cuts), sentence_ends], axis=1).ravel()
    starts = word_starts[places]
    starts[separators[0::2]] = True  # where no word begins, what is left of one counts as a word
    return (
        [np.append(0, sentence_ends + NUM_SEPARATORS * np.arange(1, 1 + len(begins)))],
        np.insert(ids[places], separators, sep_id),
        np.insert(starts, separators, True),
    )


def _join_short_sentences(documents, max_num_pieces):
    """Returns for each sentence to cut: where it begins with the short ones before it, where without, and its end."""
    begins, last_begins, ends = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for borders in documents:
        is_long = np.diff(borders) >= SHORTEST_CUT_SENTENCE
        own_begins, own_ends = borders[:-1][is_long], borders[1:][is_long]
        previous_ends = np.append(borders[:1], own_ends)[:-1]
        earliest = borders[np.searchsorted(borders, own_ends - max_num_pieces)]
        begins.append(np.maximum(previous_ends, earliest))
        last_begins.append(own_begins)
        ends.append(own_ends)
    return np.concatenate(begins), np.concatenate(last_begins), np.concatenate(ends)


def _draw_cuts(begins, ends, word_starts, generator):
    """Draws where the second halves begin: with a word, or inside one where none begins far enough from both ends."""
    draws = np.array([generator.random() for _ in range(len(begins))])
    words = np.flatnonzero(word_starts)
    earliest, latest = begins + _SHORTEST_HALF, ends - _SHORTEST_HALF
    first = np.searchsorted(words, earliest)
    num_words = np.searchsorted(words, latest, "right") - first
    inside = earliest + (draws * (latest - earliest + 1)).astype(np.int64)
    if not len(words):
        return inside
    chosen = np.minimum(first + (draws * num_words).astype(np.int64), len(words) - 1)
    return np.where(num_words > 0, words[chosen], inside)
