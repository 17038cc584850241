"""Scores of answers by the rules of SQuAD, KorQuAD and KLUE-MRC, in percent as their official scripts say it.

Each compares normalised texts exactly and by what they have in common; of several true answers the one counts that
fits best.

SQuAD 1.1 and 2.0 (Rajpurkar et al., 2016 and 2018): case, ASCII punctuation and the articles a, an and the don't count;
F1 is that of words.
KorQuAD 1.0 (Lim et al., 2019): quotation marks and brackets separate words, case and ASCII punctuation don't count; F1
is that of characters without spaces, so that a particle too many costs little.
KLUE-MRC (Park et al., 2021): case and ASCII punctuation don't count; ROUGE-W is made of the longest run of characters
that both have in common.
"""

import collections
import collections.abc
import dataclasses
import difflib
import re
import string
import typing

import numpy as np

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_KORQUAD_SEPARATORS = str.maketrans(dict.fromkeys("'\"《》<>〈〉()‘’", " "))


def normalize_squad(text: str) -> str:
    """Returns a text as SQuAD compares it: in lower case, without punctuation and articles, with single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split())


def normalize_korquad(text: str) -> str:
    """Returns a text as KorQuAD compares it: quotation marks and brackets as spaces, else as `normalize_klue`."""
    return normalize_klue(text.translate(_KORQUAD_SEPARATORS))


def normalize_klue(text: str) -> str:
    """Returns a text as KLUE-MRC compares it: in lower case, without ASCII punctuation, with single spaces."""
    # KLUE's own script means to take quotation marks and brackets such as 《》 out too, but its pattern finds only five
    # marks in a row that no text has. Scores are to be comparable, so they stay here as well.
    return " ".join(text.lower().translate(_WITHOUT_PUNCTUATION).split())


def word_f1(prediction: str, answer: str) -> float:
    """Returns the F1 of the words of two normalised texts, from 0 to 1."""
    return _f1(prediction.split(), answer.split())


def character_f1(prediction: str, answer: str) -> float:
    """Returns the F1 of the characters of two normalised texts, spaces left out, from 0 to 1."""
    return _f1("".join(prediction.split()), "".join(answer.split()))


def rouge_w(prediction: str, answer: str) -> float:
    """Returns KLUE's ROUGE-W of two normalised texts, from 0 to 1: the F1 of their longest common run of characters."""
    if not answer or not prediction:
        return float(prediction == answer)
    # The class that KLUE uses: in answers of 200 characters and more it passes over characters that are frequent.
    matcher = difflib.SequenceMatcher(None, prediction, answer)
    common = matcher.find_longest_match(0, len(prediction), 0, len(answer)).size
    return 2 * common / (len(prediction) + len(answer))


def _f1(prediction, answer):
    common = (collections.Counter(prediction) & collections.Counter(answer)).total()
    return 2 * common / (len(prediction) + len(answer)) if common else 0.0


@dataclasses.dataclass(frozen=True)
class Metrics:
    """The rules of one data set: how texts are compared, and what the second measure is."""

    normalize: collections.abc.Callable[[str], str]
    overlap_name: str
    overlap: collections.abc.Callable[[str, str], float]  # Of two normalised texts, from 0 to 1.
    # Whether an answer of which nothing is left once normalised counts, where there may be none.
    counts_empty_answers: bool = False

    def compare(self, prediction: str, answers: list[str], may_be_unanswerable: bool) -> tuple[float, float]:
        """Returns exact match and overlap of a prediction, each from 0 to 1, each the best over the answers."""
        # An empty prediction is no answer. Where questions may have none, as in SQuAD 2.0, it is right if no answer
        # counts.
        prediction, answers = self.normalize(prediction), [self.normalize(answer) for answer in answers]
        if may_be_unanswerable:
            answers = [answer for answer in answers if answer or self.counts_empty_answers]
            if not answers:
                return float(not prediction), float(not prediction)
        exact = max(float(prediction == answer) for answer in answers)
        return exact, max(self.overlap(prediction, answer) for answer in answers)


METRICS = {
    "squad": Metrics(normalize_squad, "f1", word_f1),
    "korquad": Metrics(normalize_korquad, "f1", character_f1),
    "klue": Metrics(normalize_klue, "rouge_w", rouge_w, counts_empty_answers=True),
}


# Whose rules hold where nothing says so.
DEFAULT_METRICS = "korquad"

# How published files are called, and call themselves. Where SQuAD is in the middle of a name, it is the form alone.
_NAMES = {"klue": "klue", "korquad": "korquad|squad_kor", "squad": r"^squad|^(train|dev)-v(1\.1|2\.0)\b"}
_VERSIONS_OF_SQUAD = ("1.1", "v2.0")


def rules_named_by(version: typing.Any, file_name: str) -> tuple[str, str] | None:
    """Returns the rules that a file names by its "version", else its name, and what says so; None if nothing does."""
    # What the questions say doesn't count, so that a part of a file goes by the rules of the whole.
    version = str(version)
    for said in (version, file_name):
        for rules, pattern in _NAMES.items():
            if re.search(pattern, said, re.IGNORECASE):
                return rules, said
    return ("squad", version) if version in _VERSIONS_OF_SQUAD else None


def best_threshold(scores: np.ndarray, has_answer: np.ndarray, null_odds: np.ndarray) -> tuple[float, float]:
    """Returns the best mean score that a threshold of no answer can give, in percent, and the threshold."""
    # Of Q questions: what each scores if it is answered, from 0 to 1, whether it can be, and its odds of no answer; it
    # is answered where these are not above the threshold, which is 0 where it is best to answer nothing, as in SQuAD's
    # script.
    order = np.argsort(null_odds, kind="stable")
    unanswered = np.count_nonzero(~has_answer)
    # To answer one question more gains its score, and loses what no answer scores.
    totals = unanswered + np.cumsum((scores - ~has_answer)[order])
    best = int(totals.argmax())
    if totals[best] <= unanswered:
        return 100.0 * unanswered / len(scores), 0.0
    return 100.0 * float(totals[best]) / len(scores), float(null_odds[order[best]])
