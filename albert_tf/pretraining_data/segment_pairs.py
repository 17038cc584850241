"""Sentence order and next sentence: pairs of segments whose label is told by the words and by nothing else.

Text is not the same in both directions: a title is shorter than what follows it, a question than its answer, and the
last sentences of a document are a remainder. So a pair must not show how long sentences happened to be:

- A segment begins with a sentence and ends inside one: it is what is left of some whole sentences when pieces are
  dropped at their end. So neither segment can be known as the first or the last by where it begins or ends.
- The lengths of the two segments are drawn, and a fair coin says which length comes first. Another one, the label,
  swaps the segments (`Order.pair_maker`).
- A pair is made only where the text also has the pair with the lengths exchanged, and all four segments begin and end
  alike (a cut may fall between two sentences, and a long sentence may have been split).

Then, wherever a pair begins, lengths and borders are exactly as probable for the pair in order as for the swapped one.
The original's labels can be told without reading: by topic, because a chunk that can't be split gets a random second
segment (google-research/albert#234), and by lengths, because the sentence that exceeds the target is always the last.
"""

import abc
import bisect
import collections.abc
import itertools
import types

from albert_tf.pretraining_data.packing import Packing, Segments, target_lengths
from albert_tf.pretraining_data.records import LABEL_FEATURE

# A segment of a pair has at least an eighth of its pieces.
_SMALLEST_PART = 8
# This many pairs are drawn, and the one that loses least text is taken; if none can be made, shorter ones are drawn.
_DRAWS = 4
_SHRINKAGE = 0.9

# Makes a pair from a document's piece on: the segments and where to continue, or None.
MakePair = collections.abc.Callable[["Document", int], tuple[Segments, int] | None]


class Pairs(Packing, abc.ABC):
    """Examples of two segments with a label."""

    num_special_tokens = 3
    features = types.MappingProxyType({LABEL_FEATURE: 1})
    share_of_label: tuple[str, str]  # what the manifest calls the share of label 1, and how people are told of it
    what_it_needs = (
        "no document has two sentences of some length; write one sentence a line and a blank line between documents, "
        "split running text with `sentence_splitter=rule`, or pass `objective=roberta` and "
        "`sentence_pair=document_sentences`"
    )

    def part_of_long_sentence(self, longest):
        return -(-longest // 2), "left"

    def make_segments(self, text, max_num_pieces, short_seq_prob, generator, inside_sentences=frozenset()):
        documents = [Document(borders, inside_sentences) for borders in text.documents if len(borders) > 2]
        draw_target = target_lengths(max_num_pieces, short_seq_prob, generator)
        make_pair = self.pair_maker(documents, draw_target, generator)
        for document in documents:
            yield from _along(document, make_pair)

    @abc.abstractmethod
    def pair_maker(self, documents, draw_target, generator) -> MakePair:
        """Returns the function that makes a pair of these documents' segments."""

    def count(self, features):
        return {"labels": int(features[LABEL_FEATURE].sum())}

    def describe(self, counts):
        return {self.share_of_label[0]: round(counts["labels"] / counts["examples"], 4)}

    def tell(self, split):
        name, words = self.share_of_label
        return f"{split[name]:.1%} {words}" if name in split else ""

    def blind_accuracy(self, split, batch_size):
        share = split.get(self.share_of_label[0])
        return None if share is None else max(share, 1 - share)


class Document:
    def __init__(self, borders, inside_sentences):
        self.offset = int(borders[0])
        borders = borders - self.offset
        self.borders = borders.tolist()  # as `Text` has them, but counted from the begin of the document, its offset
        self.size = self.borders[-1]
        # Those borders that don't stand inside a sentence.
        self.edges = {border for border in self.borders if border + self.offset not in inside_sentences}
        # Where the sentence of each piece ends. A memoryview gives numbers almost as fast as a list, which would take
        # longer to make than it saves.
        self.ends = memoryview(borders[1:].repeat(borders[1:] - borders[:-1]))

    def begin_of(self, piece):
        """Returns where the sentence of a piece begins."""
        return self.borders[bisect.bisect_right(self.borders, piece) - 1]

    def begin_after(self, end):
        """Returns where to continue after a segment: at the sentence that it ends in, unless it is the last."""
        return self.begin_of(end) if self.ends[end] < self.size else self.size


def draw_lengths(document, begin, target, generator):
    """Yields lengths of two segments to try, of `target` pieces together, then of fewer.

    The document holds segments of these lengths and of the lengths exchanged. Of several draws those come first for
    which fewest pieces are dropped, with either length in front.
    """
    ends, size, draw = document.ends, document.size, generator.random
    num_pieces = min(target, size - begin - 2)
    while num_pieces >= 2:
        least = -(-num_pieces // _SMALLEST_PART)
        choices, end = num_pieces - 2 * least + 1, begin + num_pieces
        fitting = []
        for _ in range(_DRAWS):
            first = least + int(draw() * choices)
            split, exchanged_split = ends[begin + first], ends[end - first]
            second_end, exchanged_second_end = split + num_pieces - first, exchanged_split + first
            if second_end < size and exchanged_second_end < size:
                fitting.append((ends[second_end] + ends[exchanged_second_end], first, num_pieces - first))
        for _, first, second in sorted(fitting):
            yield (first, second) if draw() < 0.5 else (second, first)
        num_pieces = int(num_pieces * _SHRINKAGE)


def _along(document, make_pair):
    begin = rest = 0
    while begin < document.size:
        made = make_pair(document, begin)
        if made:
            segments, begin = made
            yield segments
            rest = begin
        else:
            begin = document.ends[begin]
    if 0 < rest < document.size:  # the rest makes no pair by itself, so the sentence before it is added
        made = make_pair(document, document.begin_of(rest - 1))
        if made:
            yield made[0]


class Order(Pairs):
    """Pairs of consecutive segments of a document; label 1 means swapped (ALBERT; Lan et al. 2020, section 3.1)."""

    name = "order"
    summary = "consecutive segments, swapped or not (ALBERT)"
    label_meanings = ("in the order of the text", "swapped: B comes before A in the text")
    share_of_label = ("share_swapped", "swapped")

    def pair_maker(self, documents, draw_target, generator):

        def make_pair(document, begin):
            offset, ends, edges = document.offset, document.ends, document.edges
            for first, second in draw_lengths(document, begin, draw_target(), generator):
                # The pair, and the one with the lengths exchanged.
                end, other_end = begin + first, begin + second
                next_begin, other_next_begin = ends[end], ends[other_end]
                next_end, other_next_end = next_begin + second, other_next_begin + first
                if (begin in edges) == (next_begin in edges) == (other_next_begin in edges) and (
                    (end in edges) == (next_end in edges) == (other_end in edges) == (other_next_end in edges)
                ):
                    label = int(generator.random() < 0.5)
                    pair = (offset + begin, offset + end), (offset + next_begin, offset + next_end)
                    return Segments(*pair[label], *pair[1 - label], label), document.begin_after(next_end)
            return None

        return make_pair


class Next(Pairs):
    """Pairs of segments; label 1 means a second one from another document (BERT; Devlin et al. 2019, section 3.1)."""

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

        If there is no other, the segment is of the same document, outside `begin` up to `end`.
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
