"""What a classifier has to beat: the majority class, and a linear model that knows no words, only characters."""

from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from albert_tf.finetuning.labelled_text import LabelledText


def linear_accuracy(train: list[LabelledText], dev: list[LabelledText]) -> float:
    """Trains logistic regression on tf-idf of 1 to 4 characters and returns its accuracy."""
    # With few texts nothing occurs twice that must not be forgotten.
    features = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(1, 4), min_df=2 if len(train) > 1000 else 1, sublinear_tf=True
    )
    return _accuracy(make_pipeline(features, LogisticRegression(C=4.0, max_iter=1000)), train, dev)


def majority_accuracy(train: list[LabelledText], dev: list[LabelledText]) -> float:
    """Returns the accuracy of always saying the most frequent label."""
    return _accuracy(DummyClassifier(strategy="most_frequent"), train, dev)


def _accuracy(model, train, dev):
    model.fit([example.text for example in train], [example.label for example in train])
    return model.score([example.text for example in dev], [example.label for example in dev])
