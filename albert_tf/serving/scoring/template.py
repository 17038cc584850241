"""Words around a text and what is said of it, and files of them."""

import collections.abc
import os
import typing

from albert_tf.errors import InputError, describe, quote, shorten
from albert_tf.files import read_text
from albert_tf.tokenization.vocabulary import MASK

TEXT, ANSWER = PLACES = ("{text}", "{answer}")


class Filled(typing.NamedTuple):
    """A template with both its places filled."""

    text: str
    begin: int  # where the answer begins in the text
    end: int  # where it ends


class Template:
    """Words around a text and its answer, as "{text} 한마디로 {answer}".

    Args:
        words: With "{text}" and "{answer}" once each.
        answers: For each label.
        examples: Texts with their labels, which stand in front, filled in likewise.

    Raises:
        InputError: A place is missing or there twice, there are fewer than two labels, two have one answer, an
            example has another label, something holds a "[MASK]" or is no string.
    """

    def __init__(
        self,
        words: str,
        answers: collections.abc.Mapping[str, str],
        examples: collections.abc.Sequence[tuple[str, str]] = (),
    ):
        _check_types(words, answers, examples)
        for place in PLACES:
            if words.count(place) != 1:
                raise InputError(
                    f"a template must contain {place} once, but {quote(words)} has it {words.count(place)} times; "
                    "correct it"
                )
        if len(answers) < 2:
            raise InputError(f"there is nothing to choose from with {len(answers)} answers; give two or more")
        if "" in map(str.strip, answers.values()) or len(set(answers.values())) < len(answers):
            raise InputError("each label needs a different answer; one is empty, or two are the same")
        unknown = [label for _, label in examples if label not in answers]
        if unknown:
            raise InputError(f"an example has the label {shorten(unknown[0])}, for which there is no answer; add it")
        for text in (words, *answers.values(), *(text for text, _ in examples)):
            if MASK in text:
                raise InputError(f"{quote(text)} contains {MASK}, but {ANSWER} is what is looked for; take it out")
        self.answers, self.num_examples, self._words = dict(answers), len(examples), words
        filled = [self._fill(text, answers[label]).text for text, label in examples]
        self._before = "".join(f"{text}\n" for text in filled)

    def check_causal(self) -> None:
        """Raises InputError if a model that reads from left to right would answer before it has seen the text."""
        if self._words.index(ANSWER) < self._words.index(TEXT):
            raise InputError(
                f"this model reads from left to right, but {quote(self._words)} has {TEXT} after {ANSWER}; put it in "
                "front"
            )

    def fill(self, text: str, label: str) -> Filled:
        """Returns the examples, and then a text with the answer that stands for a label."""
        found = self._fill(text, self.answers[label])
        length = len(self._before)
        return Filled(self._before + found.text, length + found.begin, length + found.end)

    def _fill(self, text, answer):
        # In one go, for a text may hold the name of a place.
        first, second = sorted(PLACES, key=self._words.index)
        before, rest = self._words.split(first)
        between, behind = rest.split(second)
        values = {TEXT: text, ANSWER: answer}
        filled = f"{before}{values[first]}{between}{values[second]}{behind}"
        begin = len(before) if first == ANSWER else len(before) + len(values[first]) + len(between)
        return Filled(filled, begin, begin + len(answer))


def _check_types(words, answers, examples):
    if not isinstance(words, str):
        raise InputError(f"a template must be a string with {TEXT} and {ANSWER}. Received: {describe(words)}")
    if not isinstance(answers, collections.abc.Mapping) or not all(isinstance(each, str) for each in answers.values()):
        raise InputError(f"answers must be a dictionary of a string for each label. Received: {describe(answers)}")
    for each in examples:
        if not isinstance(each, tuple | list) or len(each) != 2 or not isinstance(each[0], str):
            raise InputError(f"an example must be a tuple of a text and its label. Received: {describe(each)}")


def read_template(path: str | os.PathLike) -> tuple[str, dict[str, str]]:
    """Returns the words of a template and the answer for each label.

    The first line is the template; each of the others is a label, a colon and its answer, as "positive: 재밌다". Empty
    lines don't count.

    Raises:
        InputError: The file can't be read, a line is no label with its answer, or a label is there twice.
    """
    lines = [(number, line.strip()) for number, line in enumerate(read_text(path, "the template").splitlines(), 1)]
    lines = [(number, line) for number, line in lines if line]
    if not lines:
        raise InputError(f"{path} is empty; write a template, and a line for each label")
    (_, words), *rest = lines
    answers = {}
    for number, line in rest:
        label, colon, answer = (part.strip() for part in line.partition(":"))
        if not (label and colon and answer):
            raise InputError(
                f"{path}, line {number}: {quote(line)} is not a label with its answer; write it as positive: 재밌다"
            )
        if label in answers:
            raise InputError(f"{path}, line {number}: {shorten(label)} appears twice; remove one")
        answers[label] = answer
    return words, answers
