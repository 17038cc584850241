"""Linear models of character n-grams, from scikit-learn, which a fine-tuned model has to beat.

They know no words and no order beyond a few characters, and take seconds where fine-tuning takes minutes. scikit-learn
is imported only where one is trained.
"""

import collections.abc
import dataclasses
import typing

import numpy as np

# Measured: 20,000 reviews of NSMC, 700,000 characters, take five seconds of a core.
MOST_CHARACTERS = 800_000

_NGRAMS = (1, 4)
# Where texts are so many, what occurs in one alone is left out; of few texts nothing may be lost.
_MANY_TEXTS = 1000


@dataclasses.dataclass(frozen=True)
class LinearModel:
    """A linear model for a task."""

    name: str
    # Trained on the first examples, gives a prediction for each of the second, as far as the task's `score` reads it.
    predict: collections.abc.Callable[[list[typing.Any], list[typing.Any]], list[typing.Any]]
    most_characters: int = MOST_CHARACTERS  # To train on, so that it takes seconds.


def classify(train: list, dev: list) -> list[str]:
    """Returns the label of each text or pair of `dev` by logistic regression."""
    model, dev_features = _fitted(train, dev, [example.label for example in train])
    return model.predict(dev_features).tolist()


def classify_into_several(train: list, dev: list, flags: np.ndarray) -> np.ndarray:
    """Returns the probability of each label for each of `dev`, float64 [N, labels], by logistic regression of each."""
    # `flags` [N of train, labels] are 1 where a text has a label.
    model, dev_features = _fitted(train, dev, flags.astype(int))
    return model.predict_proba(dev_features)


def predict_numbers(train: list, dev: list) -> np.ndarray:
    """Returns a number for each text or pair of `dev` by ridge regression, float64 [N]."""
    from sklearn.linear_model import Ridge

    train_features, dev_features = _features(train, dev)
    return Ridge(alpha=3.0).fit(train_features, [float(example.label) for example in train]).predict(dev_features)


def _fitted(train, dev, labels):
    """Returns logistic regression, one a label, of the labels of `train`, and the features of `dev`."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    train_features, dev_features = _features(train, dev)
    # This solver is the fastest here, and always ends at the same weights.
    is_pair = train[0].text_pair is not None
    model = OneVsRestClassifier(LogisticRegression(C=4.0, solver="liblinear", tol=1e-3 if is_pair else 1e-2))
    return model.fit(train_features, labels), dev_features


def _features(train, dev):
    """Returns sparse features of both: tf-idf of character n-grams; of pairs what they share and what only one has."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    are_pairs = train[0].text_pair is not None
    rarest = 2 if len(train) > _MANY_TEXTS and not are_pairs else 1
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=_NGRAMS, min_df=rarest, sublinear_tf=True)
    if not are_pairs:
        features = vectorizer.fit_transform([example.text for example in train])
        return features, vectorizer.transform([example.text for example in dev])
    vectorizer.fit([text for example in train for text in (example.text, example.text_pair)])
    return _compare(vectorizer, train), _compare(vectorizer, dev)


def _compare(vectorizer, examples):
    """Returns for each n-gram whether both texts have it, and whether one alone; and the cosine of both texts."""
    import scipy.sparse

    texts = ([example.text for example in examples], [example.text_pair for example in examples])
    first, second = (vectorizer.transform(column) for column in texts)
    shared = first.multiply(second)
    return scipy.sparse.hstack([abs(first - second), shared, scipy.sparse.csr_matrix(shared.sum(axis=1))]).tocsr()
