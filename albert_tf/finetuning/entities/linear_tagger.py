"""A linear model that tags words or characters by the characters around them: what a fine-tuned model has to beat."""

import re

import numpy as np

from albert_tf.finetuning.entities.tagged_text import TaggedText
from albert_tf.finetuning.entities.tags import OUTSIDE, may_follow

# Measured: 6,500 sentences of Naver's data set, 330,000 characters, take eight seconds of a core.
MOST_CHARACTERS = 400_000

# More of them, and n-grams further away, gain a point and take twice the time.
_EPOCHS, _REACH, _LONGEST = 5, 2, 3
# Of so many units, what is true of one alone is left out; of few nothing may be lost.
_MANY_UNITS = 1000


def tag(train: list[TaggedText], dev: list[TaggedText]) -> list[list[str]]:
    """Returns the tags of each text of `dev`, one a unit: the best sequence where every I- goes on with its entity."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import SGDClassifier

    train_units = [each for text in train for each in _features(text)]
    vectorizer = CountVectorizer(analyzer=list, min_df=2 if len(train_units) > _MANY_UNITS else 1, dtype=np.float32)
    # A support vector machine, whose weights are averaged over the steps as a perceptron's.
    model = SGDClassifier(alpha=1e-6, max_iter=_EPOCHS, tol=None, average=True, random_state=0)
    model.fit(vectorizer.fit_transform(train_units), [each for text in train for each in text.tags])
    dev_units = [each for text in dev for each in _features(text)]
    scores = model.decision_function(vectorizer.transform(dev_units)) if dev_units else np.zeros([0, 2])
    if scores.ndim == 1:  # of two tags
        scores = np.stack([-scores, scores], axis=1)
    is_allowed = _allowed_successions(model.classes_)
    ends = np.cumsum([len(text.units) for text in dev])
    found = [_best_sequence(each, is_allowed) for each in np.split(scores, ends[:-1])]
    return [model.classes_[sequence].tolist() if sequence else [] for sequence in found]


def _features(text):
    """Returns the features of each unit: n-grams around its first and its last character, and three words."""
    padded = " " * (_REACH + 1) + text.text + " " * (_REACH + 1)
    words = [match.span() for match in re.finditer(r"\S+", text.text)]
    word, units = 0, []
    for begin, end in text.units:
        while words[word][1] <= begin:
            word += 1
        found = [f"{n}{place}{gram}" for n, place, gram in _grams(padded, begin + _REACH + 1, "b")]
        if end - begin > 1:
            found += [f"{n}{place}{gram}" for n, place, gram in _grams(padded, end + _REACH, "e")]
        for shift in (-1, 0, 1):
            if 0 <= word + shift < len(words):
                first, last = words[word + shift]
                found.append(f"w{shift}{text.text[first:last]}")
        found.append(f"p{begin - words[word][0]}")
        units.append(found)
    return units


def _grams(text, place, anchor):
    for n in range(1, _LONGEST + 1):
        for shift in range(-_REACH, _REACH - n + 2):
            yield n, f"{anchor}{shift}", text[place + shift : place + shift + n]


def _allowed_successions(tags):
    """Returns whether a tag (column) may follow another (row), bool [tags + 1, tags]; the last row is the beginning."""
    return np.array([[may_follow(before, each) for each in tags] for before in (*tags, OUTSIDE)])


def _best_sequence(scores, is_allowed):
    """Returns the allowed sequence with the highest sum of scores [units, tags] (Viterbi 1967)."""
    if not len(scores):
        return []
    costs = np.where(is_allowed, 0.0, -np.inf)
    best, origins = scores[0] + costs[-1], []
    for row in scores[1:]:
        sums = best[:, None] + costs[:-1]
        origins.append(sums.argmax(axis=0))
        best = sums.max(axis=0) + row
    path = [int(best.argmax())]
    for origin in reversed(origins):
        path.append(int(origin[path[-1]]))
    return path[::-1]
