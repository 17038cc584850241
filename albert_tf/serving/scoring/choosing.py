"""Which of several answers fits a text: the one whose pieces are the most probable in a template."""

import collections
import collections.abc
import typing

import numpy as np

from albert_tf.errors import InputError, quote
from albert_tf.rows.values import is_missing, known_label, one_value
from albert_tf.serving.scoring.queries import WITHIN_WORD, cut_texts
from albert_tf.serving.scoring.scorer import Scorer, check_scorable, count_characters
from albert_tf.serving.scoring.template import Template
from albert_tf.tokenization import Tokenizer
from albert_tf.tokenization.unknown_words import find_unknown_words
from albert_tf.tokenization.vocabulary import UNK

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


def check_comparison(compare: str) -> None:
    """Raises InputError if answers can't be compared so."""
    if compare not in COMPARISONS:
        raise InputError(f"`compare` must be one of {', '.join(COMPARISONS)}. Received: {compare!r}")


def check_fits(tokenizer: Tokenizer, texts: list[str], template: Template, max_seq_length: int) -> None:
    """Raises InputError unless answers can be told apart and each text fits, whichever the answer is.

    Each text must have something to score, and no mask, and not be too long for the model with template and examples.
    The vocabulary must spell each answer, in one word with the text too, and no two answers may be the same tokens.
    """
    check_scorable(tokenizer, texts)
    room = max_seq_length - tokenizer.vocabulary.num_special(1)
    filled = [[template.fill(text, label) for label in template.answers] for text in ["", *texts]]
    ids = tokenizer.encode_ids([each.text for row in filled for each in row])
    _check_differ(ids[: len(template.answers)].to_list(), list(template.answers.values()))
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


def _check_differ(ids, answers):
    """Raises InputError if two answers are the same pieces, of which neither would ever be more probable."""
    for number, (of_one, answer) in enumerate(zip(ids, answers)):
        if of_one in ids[:number]:
            raise InputError(
                f"the tokenizer reads the answers {quote(answers[ids.index(of_one)])} and {quote(answer)} as the same "
                "pieces; write another one"
            )


def _check_is_spelt(tokenizer, filled, number):
    """Raises InputError if a piece of an answer is the unknown one, which says nothing; the number is of the input."""
    pieces, _ = _cut_answers(tokenizer, filled)
    unknown = tokenizer.vocabulary.id_of(UNK)
    for each, cut in zip(filled, pieces):
        if unknown in cut.ids[cut.is_scored]:
            answer = each.text[each.begin : each.end]
            if number < 0:
                raise InputError(
                    f"the answer {quote(answer)} has a word that the vocabulary can't spell, so the model can't tell "
                    "how probable it is; write another one"
                )
            raise InputError(
                f"input {number} and the answer {quote(answer)} are one word in the template, which the vocabulary "
                "can't spell; put a space between their places, or leave it out"
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
