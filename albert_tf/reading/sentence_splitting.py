"""Splitting running text into sentences, by a regular expression or by kiwipiepy's morphological analysis."""

import collections.abc
import functools
import importlib.util
import itertools
import re

from albert_tf.base.errors import InputError, with_extra

SENTENCE_SPLITTERS = ("none", "rule", "kiwi")


def make_sentence_splitter(name: str) -> collections.abc.Callable[[list[str]], list[str]]:
    """Returns a function from lines to sentences; no sentence spans two lines.

    "none" takes lines for sentences. "rule" splits where a space follows a full stop or the like, or an ending with
    ㅋㅋ. "kiwi" also splits where no mark tells, hundreds of times slower, by a model that the first call loads; raises
    InputError if kiwipiepy is missing.
    """
    if name == "kiwi" and importlib.util.find_spec("kiwipiepy") is None:
        raise InputError(
            f"`sentence_splitter=kiwi` needs kiwipiepy, which is not installed; pip install {with_extra('vocab')}, or "
            "pass `sentence_splitter=rule`"
        )
    if name == "none":
        return list
    split = {"rule": _split_by_rule, "kiwi": _split_by_kiwi}[name]
    return lambda lines: [sentence for line in lines for sentence in split(line)]


_MARK = ".!?…。！？"
# Two of these end a sentence if they follow a syllable in which verb endings end.
_LAUGHTER = "ㅋㅎㅠㅜ^"
_ENDING = "가걸군까나냐네니다데라래아야어요음임자죠지함됨"

_END_OF_SENTENCE = re.compile(
    rf"""
    # The first of a run of marks; a search for one class of characters is the fastest.
    [{_MARK}{_LAUGHTER}](?<![{_MARK}{_LAUGHTER}][{_MARK}{_LAUGHTER}])
    (?:
        (?<=[!?…。！？])
      | (?<=\.)
        (?<!\d\.)  # 1. and 2024. 3. 1.
        (?<!\b[A-Za-z]\.)  # J. and U.S. and e.g.
        (?<!\b(?:Mr|Ms|Dr|St|Jr|Sr|vs|No|no|Co|cf|al|pp)\.)
        (?<!\b(?:Mrs|etc|Inc|Ltd|Vol|vol|Fig|fig|Ver|ver)\.)
        (?<!\b(?:Prof|Corp)\.)
      | (?<=[{_ENDING}][{_LAUGHTER}])[{_LAUGHTER}]
      | (?<=[{_ENDING}][ ][{_LAUGHTER}])[{_LAUGHTER}]
      | (?<=[{_LAUGHTER}])(?=[{_LAUGHTER}]*[{_MARK}])
    )
    [{_MARK}{_LAUGHTER}]*["'”’»)\]}}〉》」』】*]*(?:\[\d+\])*
    # A quotation continues with a particle or with 하다, even after a space.
    (?!\s+이?라(?:고|는|며|면서|던|든|니|서)\b)
    (?!(?<=["”'’»」』])\s+(?:하(?:고|는|며|던|면|면서|자|길|기|였\w*)|했\w*|이?란|[과와은는을를로고며의])\b)
    (?P<space>\s+)
    """,
    re.VERBOSE,
)


def _split_by_rule(line):
    line = line.strip()
    sentences, begin = [], 0
    for match in _END_OF_SENTENCE.finditer(line):
        sentences.append(line[begin : match.start("space")])
        begin = match.end()
    return [*sentences, line[begin:]] if line else []


def _split_by_kiwi(line):
    sentences = _load_kiwi().split_into_sents(line, return_sub_sents=False)
    # Only the borders are taken from kiwi; the characters between its sentences are kept.
    borders = [0, *(sentence.start for sentence in sentences[1:]), len(line)]
    texts = (line[begin:end].strip() for begin, end in itertools.pairwise(borders))
    return [text for text in texts if text]


@functools.cache
def _load_kiwi():
    from kiwipiepy import Kiwi

    return Kiwi(num_workers=1)
