"""A linear model that answers questions by the words around them: what a fine-tuned model has to beat.

It looks at spans of a few words in the sentences that share most with the question, their ends with and without what
may be josa, and knows of each how much of the question stands around it, how it is written, and which word asks.
"""

import collections
import math
import re

import numpy as np

from albert_tf.finetuning import QuestionAnswering
from albert_tf.finetuning.linear_models import LinearModel
from albert_tf.finetuning.tasks.squad import Question

# Measured: 800 questions, 400,000 characters of text, and as many to answer take eight seconds of a core.
MOST_CHARACTERS = 400_000

_MOST_WORDS, _LONGEST_JOSA, _SENTENCES = 4, 3, 2
_WRONG_ANSWERS = 30  # of each question, to learn from
_REACHES = (2, 6)  # words on both sides
_ASKING = ("언제", "누구", "누가", "어디", "몇", "얼마", "무엇", "무슨", "어느", "어떤", "이름")
_SENTENCE_END = re.compile(r"(?<=[.?!])\s+|\n+")
_BORDERS = "\"'()[]{}<>,.?!:;‘’“”《》〈〉「」『』"


def linear_reader(task: QuestionAnswering) -> LinearModel:
    """Returns the model for a task whose questions all have answers."""

    def predict(train, dev):
        return [{"text": text} for text in answer(train, dev)]

    return LinearModel("a linear model of the words around an answer", predict, MOST_CHARACTERS)


def answer(train: list[Question], dev: list[Question]) -> list[str]:
    """Returns an answer to each question of `dev`, "" where its text has no words.

    Args:
        train: Questions with their answers.
        dev: Others.
    """
    from sklearn.feature_extraction import FeatureHasher
    from sklearn.linear_model import SGDClassifier

    rarity, random = _rarity([question.context for question in train]), np.random.default_rng(0)
    features, labels = [], []
    for question in train:
        right = {each.text for each in question.answers}
        spans = _spans(question, rarity)
        wrong = [each for text, each in spans if text not in right]
        chosen = random.choice(len(wrong), min(len(wrong), _WRONG_ANSWERS), replace=False)
        of_right = [each for text, each in spans if text in right]
        features += of_right + [wrong[number] for number in chosen]
        labels += [1] * len(of_right) + [0] * len(chosen)
    if len(set(labels)) < 2:
        return [""] * len(dev)
    hasher = FeatureHasher(2**18, input_type="string", alternate_sign=False)
    model = SGDClassifier("log_loss", alpha=1e-6, max_iter=5, tol=None, average=True, random_state=0)
    model.fit(hasher.transform(features), labels)
    found = []
    for question in dev:
        spans = _spans(question, rarity)
        scores = model.decision_function(hasher.transform([each for _, each in spans])) if spans else []
        found.append(spans[int(np.argmax(scores))][0] if spans else "")
    return found


def _pairs(text):
    return {text[begin : begin + 2] for begin in range(len(text) - 1)}


def _rarity(contexts):
    """Returns how rare a pair of characters is: the logarithm of how many texts there are for one that has it."""
    contexts = set(contexts)
    counts = collections.Counter(pair for context in contexts for pair in _pairs(context))
    return collections.defaultdict(
        lambda: math.log(1 + len(contexts)), {pair: math.log((1 + len(contexts)) / n) for pair, n in counts.items()}
    )


def _spans(question, rarity):
    """Returns what may be the answer, each with its features."""
    asked = _pairs(question.question)
    sentences = [sentence.split() for sentence in _SENTENCE_END.split(question.context)]
    shares = [[sum(rarity[pair] for pair in _pairs(word) & asked) for word in words] for words in sentences]
    best = sorted(range(len(sentences)), key=lambda number: -sum(shares[number]))[:_SENTENCES]
    asking = next((word for word in _ASKING if word in question.question), "")
    spans = []
    for rank, number in enumerate(best):
        words, sums = sentences[number], np.concatenate([[0.0], np.cumsum(shares[number])])
        for begin in range(len(words)):
            for end in range(begin + 1, min(begin + _MOST_WORDS, len(words)) + 1):
                around = [
                    sums[min(end + reach, len(words))] - sums[max(0, begin - reach)] - (sums[end] - sums[begin])
                    for reach in _REACHES
                ]
                common = [f"rank {rank}", f"words {asking} {end - begin}", f"own {_level(sums[end] - sums[begin])}"]
                common += [f"near {reach} {_level(value)}" for reach, value in zip(_REACHES, around)]
                spans += _with_ends(" ".join(words[begin:end]), common, asking)
    return spans


def _level(value):
    return int(math.log2(1 + value) * 2)


def _with_ends(text, common, asking):
    """Yields a span as it stands, and without what may be josa at its end."""
    bare = text.strip(_BORDERS)
    quoted = f"quoted {text[: len(text) - len(text.lstrip(_BORDERS))]}"
    for length in range(min(_LONGEST_JOSA, len(bare) - 1) + 1):
        found = bare[: len(bare) - length].rstrip(_BORDERS)
        if found and not found[-1].isspace():
            shape = re.sub(r"\d+", "0", re.sub(r"[가-힣]+", "가", re.sub(r"[A-Za-z]+", "a", found)))
            ends = [f"josa {bare[len(bare) - length :]}", f"{asking} end {found[-1]}", f"end {found[-2:]}"]
            yield found, [*common, quoted, *ends, f"{asking} shape {shape[:8]}", f"length {min(len(found), 20)}"]
