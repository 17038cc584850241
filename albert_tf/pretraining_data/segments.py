"""Documents to segments: which pieces make up an example.

A document is the list of its sentences' borders, counted in pieces: sentence i is border i up to border i + 1.

The original gives a chunk that can't be split a random document as its second segment and label 1, so that on short
documents most of the labels teach topic, not order (google-research/albert#234). Here a chunk takes in sentences until
it can be split, a lone last sentence is paired with the one before it, and a document of one sentence gives no pair.
"""

import bisect
import collections.abc
import random
import typing

SENTENCE_PAIR_CHOICES = ("order", "next", "none", "full_sentences")


class Segments(typing.NamedTuple):
    """One example: pieces first_begin up to first_end, then second_begin up to second_end, in the order of the model.

    The second segment may be empty. `label` is 1 if the second segment is not what follows the first.
    """

    first_begin: int
    first_end: int
    second_begin: int
    second_end: int
    label: int


def has_pairs(sentence_pair: str) -> bool:
    """Whether examples have two segments, whose label is to be predicted."""
    return sentence_pair in ("order", "next")


def max_num_pieces(sentence_pair: str, max_seq_length: int) -> int:
    """Returns the room for pieces in an example: what [CLS] and [SEP] leave."""
    return max_seq_length - (3 if has_pairs(sentence_pair) else 2)


def make_segments(
    sentence_pair: str,
    documents: list[list[int]],
    max_num_tokens: int,
    short_seq_prob: float,
    generator: random.Random,
) -> collections.abc.Iterator[Segments]:
    """Cuts documents into examples of at most `max_num_tokens` pieces.

    Each example draws its own target length: `max_num_tokens`, or with `short_seq_prob` a uniform one from 2 up, so
    that the model also sees short input (original create_pretraining_data.py, which draws once a document).

    Args:
        sentence_pair: "order": two consecutive segments, swapped half of the time (ALBERT). "next": half of the time
            the second segment comes from another of the documents (BERT). "none" and "full_sentences": one segment of
            whole sentences (RoBERTa); for the latter the caller joins documents into one.
        documents: The borders of each document's sentences; no sentence is empty or longer than `max_num_tokens`.
        max_num_tokens: Room for both segments together.
        short_seq_prob: Share of examples with a random shorter target.
        generator: Source of every draw.
    """

    def draw_target():
        if generator.random() < short_seq_prob:
            return 2 + int(generator.random() * (max_num_tokens - 1))
        return max_num_tokens

    if sentence_pair == "order":
        for borders in documents:
            yield from _order_pairs(borders, draw_target, generator)
    elif sentence_pair == "next":
        for number in range(len(documents)):
            yield from _next_pairs(documents, number, draw_target, generator)
    else:
        for borders in documents:
            yield from _single_segments(borders, draw_target)


def _order_pairs(borders, draw_target, generator):
    for first, split, end, target in _pairs(borders, draw_target, generator, lambda split, end: end):
        pair = _truncate(borders[first], borders[split], borders[split], borders[end], target, generator)
        if generator.random() < 0.5:
            yield Segments(*pair[2:], *pair[:2], 1)
        else:
            yield Segments(*pair, 0)


def _next_pairs(documents, number, draw_target, generator):
    borders = documents[number]
    is_random = False

    def next_begin(split, end):
        # What a random second segment pushed out comes again.
        return split if is_random else end

    for first, split, end, target in _pairs(borders, draw_target, generator, next_begin):
        is_random = len(documents) > 1 and generator.random() < 0.5
        second = borders[split], borders[end]
        if is_random:
            other = int(generator.random() * (len(documents) - 1))
            other = documents[other + (other >= number)]
            begin = int(generator.random() * (len(other) - 1))
            wanted = max(1, target - (borders[split] - borders[first]))
            second = other[begin], other[_end_of(other, begin, wanted, 1)]
        pair = _truncate(borders[first], borders[split], *second, target, generator)
        yield Segments(*pair, int(is_random))


def _pairs(borders, draw_target, generator, next_begin):
    """Yields (first, split, end, target): sentences first up to split, then split up to end, make a pair."""
    begin, last = 0, len(borders) - 1
    while begin < last and last > 1:
        target = draw_target()
        end = _end_of(borders, begin, target, 2)
        is_lone = end - begin == 1
        first = begin - is_lone
        split = first + 1 + int(generator.random() * (end - first - 1))
        yield first, split, end, target
        begin = end if is_lone else next_begin(split, end)


def _end_of(borders, begin, num_tokens, num_sentences):
    """Returns the sentence before which there are as many pieces and sentences since `begin`, if there are so many."""
    end = bisect.bisect_left(borders, borders[begin] + num_tokens, begin + 1)
    return min(max(end, begin + num_sentences), len(borders) - 1)


def _single_segments(borders, draw_target):
    begin, last = 0, len(borders) - 1
    while begin < last:
        end = max(bisect.bisect_right(borders, borders[begin] + draw_target(), begin + 1) - 1, begin + 1)
        yield Segments(borders[begin], borders[end], borders[end], borders[end], 0)
        begin = end


def _truncate(first_begin, first_end, second_begin, second_end, max_num_tokens, generator):
    """Drops pieces off the longer segment, each from its front or back at random, until both fit."""
    first, second = first_end - first_begin, second_end - second_begin
    if first + second <= max_num_tokens:
        return first_begin, first_end, second_begin, second_end
    kept_second = min(second, max(max_num_tokens - first, max_num_tokens // 2))
    first_excess, second_excess = first - (max_num_tokens - kept_second), second - kept_second
    # As many coins as there are pieces to drop say how many of them are dropped from the front.
    first_front = generator.getrandbits(first_excess).bit_count()
    second_front = generator.getrandbits(second_excess).bit_count()
    return (
        first_begin + first_front,
        first_end - (first_excess - first_front),
        second_begin + second_front,
        second_end - (second_excess - second_front),
    )
