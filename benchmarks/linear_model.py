"""What a classifier has to beat: the majority class, and a linear model that knows no words, only characters."""

import scipy.sparse
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline

from albert_tf.finetuning.labelled_text import LabelledText


def linear_accuracy(train: list[LabelledText], dev: list[LabelledText]) -> float:
    """Trains logistic regression on tf-idf of 1 to 4 characters and returns its accuracy."""
    # With few texts nothing occurs twice that must not be forgotten.
    features = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(1, 4), min_df=2 if len(train) > 1000 else 1, sublinear_tf=True
    )
    return _accuracy(make_pipeline(features, LogisticRegression(C=4.0, max_iter=1000)), train, dev)


def linear_pairs(train: list[LabelledText], dev: list[LabelledText], is_regression: bool) -> list:
    """Returns what a linear model says of pairs: a label, or a number, for each of `dev`.

    It reads which character n-grams the two texts share, which only one has, and the cosine of both.
    """
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 4), sublinear_tf=True)
    vectorizer.fit([text for example in train for text in (example.text, example.text_pair)])
    rows = [_compare(vectorizer, examples) for examples in (train, dev)]
    if is_regression:
        return Ridge(alpha=3.0).fit(rows[0], [float(example.label) for example in train]).predict(rows[1])
    model = LogisticRegression(C=4.0, max_iter=2000)
    return model.fit(rows[0], [example.label for example in train]).predict(rows[1])


def _compare(vectorizer, examples):
    texts = ([example.text for example in examples], [example.text_pair for example in examples])
    first, second = (vectorizer.transform(column) for column in texts)
    shared = first.multiply(second)
    return scipy.sparse.hstack([abs(first - second), shared, scipy.sparse.csr_matrix(shared.sum(axis=1))]).tocsr()


def majority_accuracy(train: list[LabelledText], dev: list[LabelledText]) -> float:
    """Returns the accuracy of always saying the most frequent label."""
    return _accuracy(DummyClassifier(strategy="most_frequent"), train, dev)


def _accuracy(model, train, dev):
    model.fit([example.text for example in train], [example.label for example in train])
    return model.score([example.text for example in dev], [example.label for example in dev])
