"""Sentences cut in two, one after the other, so that a model can learn which halves belong together.

The text of a chunk becomes: first half, [SEP], second half, [SEP], first half of the next sentence, and so on. Segments
alternate: 0 for every first half, 1 for every second one, each with the [SEP] that ends it.
"""

import numpy as np

from albert_tf.pretraining_data.packing import Packing, Text, ranges

# Fewer pieces say too little to tell what they belong to.
_SHORTEST_HALF = 3
SHORTEST_CUT_SENTENCE = 8  # pieces of a sentence that is cut in two
_NUM_SEPARATORS = 2  # of a sentence


def max_cut_sentences(max_seq_length: int) -> int:
    """Returns how many sentences fit an example: each has two [SEP], and [CLS] comes first."""
    return max(1, (max_seq_length - 1) // (SHORTEST_CUT_SENTENCE + _NUM_SEPARATORS))


class Halves(Packing):
    """Examples of several sentences, each cut in two."""

    name = "halves"
    summary = "sentences cut in two, to be matched again"
    separators_of_sentence = _NUM_SEPARATORS
    may_end_with_separator = True
    segments_alternate = True
    what_it_needs = (
        f"no sentence can be cut in two, which needs {SHORTEST_CUT_SENTENCE} pieces and at least `max_seq_length=12`; "
        "write one sentence a line, or pass `objective=roberta`"
    )

    def arrange(self, text, cls_id, sep_id, max_num_pieces, generator):
        """Cuts sentences in two at a random beginning of a word, and joins all documents, with a [SEP] after each half.

        A word inside of a mention is taken only where no other begins far enough from both ends of the sentence. A
        sentence of fewer than `SHORTEST_CUT_SENTENCE` pieces goes into the first half of the next long one of its
        document, if it fits.
        """
        begins, last_begins, ends = _join_short_sentences(text.documents, max_num_pieces - _NUM_SEPARATORS)
        cuts = _draw_cuts(last_begins, ends, text.places_to_cut(), generator)
        lengths = ends - begins
        places = ranges(begins, lengths)
        sentence_ends = np.cumsum(lengths)
        separators = np.stack([sentence_ends - (ends - cuts), sentence_ends], axis=1).ravel()
        starts = text.word_starts[places]
        starts[separators[0::2]] = True  # where no word begins, what is left of one counts as a word
        return Text(
            [np.append(0, sentence_ends + _NUM_SEPARATORS * np.arange(1, 1 + len(begins)))],
            np.insert(text.ids[places], separators, sep_id),
            np.insert(starts, separators, True),
            mentions=np.insert(text.mentions_at(places), separators, 0),
        )

    def count(self, features):
        segment_ids = features["segment_ids"]
        return {"cut_sentences": int((np.diff(segment_ids, axis=1) == 1).sum())}

    def describe(self, counts):
        return {"mean_sentences_per_example": round(counts["cut_sentences"] / counts["examples"], 2)}

    def blind_accuracy(self, split, batch_size):
        sentences = split.get("mean_sentences_per_example")
        return sentences and 1 / (sentences * batch_size)


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


def _draw_cuts(begins, ends, places_to_cut, generator):
    """Draws where second halves begin: at one of the best places that are far enough from both ends, or anywhere."""
    draws = np.array([generator.random() for _ in range(len(begins))])
    earliest, latest = begins + _SHORTEST_HALF, ends - _SHORTEST_HALF
    cuts = earliest + (draws * (latest - earliest + 1)).astype(np.int64)
    for places in map(np.flatnonzero, reversed(places_to_cut)):
        first = np.searchsorted(places, earliest)
        num_places = np.searchsorted(places, latest, "right") - first
        is_any = num_places > 0
        cuts[is_any] = places[(first + (draws * num_places).astype(np.int64))[is_any]]
    return cuts
