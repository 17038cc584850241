"""Documents to pairs of segments for sentence order prediction.

The original gives a chunk that can't be split a random document as its second segment and label 1, so that on short
documents most of the labels teach topic, not order (google-research/albert#234). Here both segments are always
neighbours: a chunk takes in sentences until it can be split, a lone last sentence is paired with the one before it, and
a document of one sentence gives no pair.
"""

import collections.abc
import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Sentence:
    """An encoded sentence.

    Attributes:
        ids: int32 [pieces].
        word_starts: bool [pieces], True at the first piece of each word.
    """

    ids: np.ndarray
    word_starts: np.ndarray


@dataclasses.dataclass(frozen=True)
class SegmentPair:
    """Two neighbouring segments, in the order the model will see them.

    Attributes:
        first: What follows [CLS].
        second: What follows the first [SEP].
        is_swapped: Whether `second` comes before `first` in the document.
    """

    first: Sentence
    second: Sentence
    is_swapped: bool


def make_segment_pairs(
    document: list[Sentence], max_num_tokens: int, short_seq_prob: float, random: np.random.Generator
) -> collections.abc.Iterator[SegmentPair]:
    """Cuts a document into pairs of at most `max_num_tokens` pieces.

    Each chunk draws its own target length: `max_num_tokens`, or with `short_seq_prob` a uniform one from 2 up, so that
    the model also sees short input (original create_pretraining_data.py, which draws once a document).

    Args:
        document: Its sentences in order, none empty.
        max_num_tokens: Room for both segments together.
        short_seq_prob: Share of chunks with a random shorter target.
        random: Source of every draw.

    Yields:
        Pairs, half of them swapped.
    """
    begin = 0
    while begin < len(document) and len(document) > 1:
        target = max_num_tokens
        if random.random() < short_seq_prob:
            target = int(random.integers(2, max_num_tokens + 1))
        end, num_tokens = begin, 0
        while end < len(document) and (num_tokens < target or end - begin < 2):
            num_tokens += len(document[end].ids)
            end += 1
        chunk = document[begin:end] if end - begin > 1 else document[begin - 1 : end]
        begin = end
        split = int(random.integers(1, len(chunk)))
        first, second = _concatenate(chunk[:split]), _concatenate(chunk[split:])
        first, second = _truncate_pair(first, second, target, random)
        is_swapped = bool(random.random() < 0.5)
        yield SegmentPair(second, first, True) if is_swapped else SegmentPair(first, second, False)


def _concatenate(sentences):
    return Sentence(
        np.concatenate([sentence.ids for sentence in sentences]),
        np.concatenate([sentence.word_starts for sentence in sentences]),
    )


def _truncate_pair(first, second, max_num_tokens, random):
    """Drops pieces off the longer segment, from its front or back at random, until both fit."""
    bounds = [[0, len(first.ids)], [0, len(second.ids)]]
    lengths = [len(first.ids), len(second.ids)]
    excess = max(0, sum(lengths) - max_num_tokens)
    for from_front in random.random(excess) < 0.5:
        longer = 0 if lengths[0] > lengths[1] else 1
        lengths[longer] -= 1
        if from_front:
            bounds[longer][0] += 1
        else:
            bounds[longer][1] -= 1
    return [_cut(segment, *bound) for segment, bound in zip((first, second), bounds)]


def _cut(segment, begin, end):
    word_starts = segment.word_starts[begin:end].copy()
    # What is left of a word that lost its front counts as a word, and never joins what precedes the segment.
    word_starts[:1] = True
    return Sentence(segment.ids[begin:end], word_starts)
