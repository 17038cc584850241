"""Which of several answers fits a text: the one whose pieces are the most probable in a template."""

import collections
import collections.abc
import os
import typing

import numpy as np

from albert_tf.base.errors import InputError, describe, quote, shorten
from albert_tf.base.files import read_text
from albert_tf.reading.rows import RowFile
from albert_tf.reading.values import columns_of, is_missing, joined_text, known_label, one_value
from albert_tf.serving.scoring import WITHIN_WORD, Scorer, check_scorable, count_characters, cut_texts
from albert_tf.tokenization import Tokenizer
from albert_tf.tokenization.unknown_words import find_unknown_words
from albert_tf.tokenization.vocabulary import MASK, UNK

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
                    f"a template needs {place} once, but {quote(words)} has it {words.count(place)} times; correct it"
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
                f"this model reads from left to right, but {quote(self._words)} has {TEXT} behind; put it in front"
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
                f"{path}, line {number}: {quote(line)} is not a label with its answer, as positive: 재밌다"
            )
        if label in answers:
            raise InputError(f"{path}, line {number}: {shorten(label)} appears twice; remove one")
        answers[label] = answer
    return words, answers


PMI, SUM, PER_CHARACTER = COMPARISONS = ("pmi", "score", "per_character")
# What the label that a row brings is called beside the one that is chosen.
GIVEN_LABEL = "given_label"


def choose(
    scorer: Scorer, tokenizer: Tokenizer, texts: list[str], template: Template, compare: str, batch_size: int
) -> list[dict[str, typing.Any]]:
    """Returns the label of each text, and the scores of each answer."""
    labels = list(template.answers)
    # The first text is none: how probable each answer is without one.
    filled = [template.fill(text, label) for text in ["", *texts] for label in labels]
    pieces, num_characters = _cut_answers(tokenizer, filled)
    sums = np.reshape(scorer.sums(pieces, WITHIN_WORD, batch_size), [-1, len(labels)])
    per_character = sums / np.reshape(num_characters, sums.shape)
    found = []
    for values in zip(sums[1:], per_character[1:], sums[1:] - sums[0]):
        answers = {
            label: dict(zip((SUM, PER_CHARACTER, PMI), map(float, of_label)))
            for label, *of_label in zip(labels, *values)
        }
        found.append({"label": best_label(answers, compare), "answers": answers})
    return found


def best_label(answers: dict[str, dict[str, float]], compare: str) -> str:
    """Returns the label whose answer scores most, by one of `COMPARISONS`."""
    return max(answers, key=lambda label: answers[label][compare])


def check_fits(tokenizer: Tokenizer, texts: list[str], template: Template, max_seq_length: int) -> None:
    """Raises InputError unless answers can be told apart and each text fits, whichever the answer is.

    Each text must have something to score, and no mask, and not be too long for the model with template and examples.
    The vocabulary must spell each answer, in one word with the text too, and no two answers may be the same tokens.
    """
    check_scorable(tokenizer, texts)
    room = max_seq_length - tokenizer.vocabulary.num_special(1)
    filled = [[template.fill(text, label) for label in template.answers] for text in ["", *texts]]
    ids = tokenizer.encode_ids([each.text for row in filled for each in row])
    answers, alone = list(template.answers.values()), ids[: len(template.answers)].to_list()
    for number, of_one in enumerate(alone):
        if of_one in alone[:number]:  # of which neither would ever be more probable
            raise InputError(
                f"the tokenizer reads the answers {quote(answers[alone.index(of_one)])} and {quote(answers[number])} "
                "as the same pieces; write another one"
            )
    lengths = np.reshape(ids.row_lengths().numpy(), [1 + len(texts), -1]).max(axis=1)
    examples = " and the examples" if template.num_examples else ""
    if lengths[0] > room:
        raise InputError(
            f"the template{examples} {'have' if examples else 'has'} {lengths[0]} pieces without a text, and the model "
            f"reads {room}; {'use fewer examples' if examples else 'shorten it'}"
        )
    for number in np.flatnonzero(lengths[1:] > room)[:1]:
        fewer = "use fewer examples, or " if examples else ""
        raise InputError(
            f"input {number} has {lengths[1 + number]} pieces with the template{examples}, and the model reads {room}; "
            f"{fewer}leave it out"
        )
    is_unknown = ids.flat_values.numpy() == tokenizer.vocabulary.id_of(UNK)
    for row in np.unique(ids.value_rowids().numpy()[is_unknown] // len(template.answers)):
        _check_is_spelt(tokenizer, filled[row], row - 1)


def describe_unknown(tokenizer: Tokenizer, template: Template) -> str | None:
    """Returns which words of the template and the examples the vocabulary can't spell; None if there are none."""
    _, words, _ = find_unknown_words(tokenizer, [(template.fill("", next(iter(template.answers))).text,)])
    if not words:
        return None
    where = "the template or an example holds" if template.num_examples else "the template holds"
    named = ", ".join(words)
    return f"{where} words that the vocabulary can't spell, such as {named}; the model reads {UNK} in place of each"


def _check_is_spelt(tokenizer, filled, number):
    """Raises InputError if a piece of an answer is the unknown one, which says nothing; the number is of the input."""
    pieces, _ = _cut_answers(tokenizer, filled)
    unknown = tokenizer.vocabulary.id_of(UNK)
    for each, cut in zip(filled, pieces):
        if unknown in cut.ids[cut.is_scored]:
            answer = each.text[each.begin : each.end]
            if number < 0:
                raise InputError(
                    f"the answer {quote(answer)} has a word that the vocabulary can't spell; write another one"
                )
            raise InputError(
                f"input {number} and the answer {quote(answer)} are one word that the vocabulary can't spell; part them"
            )


def _cut_answers(tokenizer, filled):
    """Returns the tokens of filled templates, of which those of the answers count, and how many characters these are.

    The whole is cut at once, for a word may go on behind the answer or begin before it. A token counts if it holds a
    character of the answer, or stands behind it in the same word, as a josa does.
    """
    texts = [each.text for each in filled]
    found, num_characters = [], []
    for each, pieces, encoding in zip(filled, cut_texts(tokenizer, texts), tokenizer.encode_batch(texts)):
        answer = each.text[each.begin : each.end]
        span = encoding.pieces_of_span(each.begin, each.end)
        if span is None:
            raise InputError(f"the tokenizer removes all of the answer {quote(answer)}; write another one")
        first, last = (position - 1 for position in span)  # [CLS] stands in front
        end = int(pieces.word_ends[last])
        is_scored = np.zeros(len(pieces.ids), bool)
        is_scored[first:end] = pieces.is_scored[first:end]
        found.append(pieces._replace(is_scored=is_scored))
        num_characters.append(count_characters(each.text[each.begin : max(each.end, encoding.offsets[end][1])]))
    return found, num_characters


def describe_accuracy(found: collections.abc.Iterable[dict[str, typing.Any]]) -> str | None:
    """Returns how often `choose` found a row's own label, beside the most frequent one; None without labels."""
    counts, right, not_there = collections.Counter(), collections.Counter(), 0
    for each in found:
        if "answers" not in each or is_missing(each.get(GIVEN_LABEL)) or each[GIVEN_LABEL] == "":
            continue
        label = known_label(one_value(each, GIVEN_LABEL), each["answers"])
        counts[label] += 1
        not_there += label not in each["answers"]
        right.update(compare for compare in COMPARISONS if best_label(each["answers"], compare) == label)
    if not counts:
        return None
    total = counts.total()
    label, count = counts.most_common(1)[0]
    shares = ", ".join(f"{right[compare] / total:.1%} by {compare}" for compare in COMPARISONS)
    lacking = f"; {not_there:,} have a label that the template lacks" if not_there else ""
    return f"of {total:,} labels right: {shares}; always {label}: {count / total:.1%}{lacking}"


_NAME_COLUMNS = "name your columns with `input_fields` and `label_field`"


def draw_examples(
    path: str, text_field: str, label_field: str, labels: collections.abc.Collection[str], count: int, seed: int
) -> list[tuple[str, str]]:
    """Returns `count` texts of a training file with their labels, of each label about as many, in random order.

    Args:
        path: A file with columns.
        text_field: The column of the text, or several with commas between them.
        label_field: The column of the label.
        labels: Those that may be drawn.
        seed: Decides, with the file, what is drawn.

    Raises:
        InputError: The file can't be read, or has not so many.
    """
    by_label = {label: [] for label in labels}
    for text, label in _read(path, text_field, label_field):
        label = known_label(label, by_label)
        if text.strip() and label in by_label:
            by_label[label].append(text)
    generator = np.random.default_rng(seed)
    drawn = []
    for number, (label, texts) in enumerate(by_label.items()):
        wanted = count // len(by_label) + (number < count % len(by_label))
        if len(texts) < wanted:
            use = "use fewer" if texts else f"compare the labels of the template with the column {label_field}"
            raise InputError(
                f"{path} has {len(texts)} texts of the label {shorten(label)}, and `num_examples={count}` needs "
                f"{wanted}; {use}"
            )
        drawn += [(texts[row], label) for row in generator.permutation(len(texts))[:wanted]]
    return [drawn[row] for row in generator.permutation(len(drawn))]


def _read(path, text_field, label_field):
    file = RowFile(path)
    for place, values in file.records():
        columns = columns_of(text_field, values)
        file.check_columns([*columns, label_field], tuple(values), _NAME_COLUMNS)
        try:
            yield joined_text(values, columns), one_value(values, label_field)
        except InputError as error:
            raise InputError(f"{place}: {error}") from error
