"""A segment, and half of the time what follows it, else one from elsewhere (BERT; Devlin et al. 2019, section 3.1)."""

import bisect
import itertools

from albert_tf.pretraining_data.packing.packing import Segments
from albert_tf.pretraining_data.packing.pairs import Pairs, draw_lengths


class Next(Pairs):
    """Pairs of segments; label 1 means that the second is from another document, or elsewhere if there is no other."""

    name = "next"
    summary = "following or random segment (BERT)"
    label_meanings = ("B follows A in the text", "B comes from another document")
    share_of_label = ("share_random_next", "with a random second segment")

    def pair_maker(self, documents, draw_target, generator):
        elsewhere = _Elsewhere(documents, generator)

        def make_pair(document, begin):
            offset, ends, edges = document.offset, document.ends, document.edges
            for first_length, second_length in draw_lengths(document, begin, draw_target(), generator):
                first = offset + begin, offset + begin + first_length
                next_begin = ends[begin + first_length]
                next_end = next_begin + second_length
                other, other_begin = elsewhere.find(document, begin, ends[next_end], second_length)
                if other is None:
                    continue
                other_end = other_begin + second_length
                # Only where either could be taken is one of them chosen.
                if (next_begin in edges, next_end in edges) == (other_begin in other.edges, other_end in other.edges):
                    if generator.random() < 0.5:
                        return Segments(*first, other.offset + other_begin, other.offset + other_end, 1), next_begin
                    segments = Segments(*first, offset + next_begin, offset + next_end, 0)
                    return segments, document.begin_after(next_end)
            return None

        return make_pair


class _Elsewhere:
    """Segments from other documents, at any of their sentences but the first of each, all equally probable."""

    def __init__(self, documents, generator):
        self._documents, self._generator = documents, generator
        self._numbers = {id(document): number for number, document in enumerate(documents)}
        self._ends = list(itertools.accumulate(len(document.borders) - 2 for document in documents))

    def find(self, own, begin, end, length):
        """Returns a document other than `own`, and where a segment of it begins; twice None if it is too short.

        If there is no other, a segment of the same document that lies outside `begin` up to `end`.
        """
        number = self._numbers[id(own)]
        own_begin, own_end = self._ends[number - 1] if number else 0, self._ends[number]
        num_others = self._ends[-1] - (own_end - own_begin)
        place = int(self._generator.random() * (num_others or own_end))
        if num_others and place >= own_begin:
            place += own_end - own_begin
        other = bisect.bisect_right(self._ends, place)
        document = self._documents[other]
        other_begin = document.borders[place - (self._ends[other - 1] if other else 0) + 1]
        other_end = other_begin + length
        if other_end >= document.size:
            return None, None
        overlaps = other == number and other_begin < end and begin < document.ends[other_end]
        return (None, None) if overlaps else (document, other_begin)
