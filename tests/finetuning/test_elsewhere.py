"""What keeps a model from other libraries is told before training, in the words that conversions refuse it with."""

import pytest
from tiny_config import tiny_config

from albert_tf.base.errors import InputError
from albert_tf.finetuning import Classification, Entities, MultiLabel, QuestionAnswering, Regression
from albert_tf.finetuning.datasets import DataFiles
from albert_tf.interchange.foreign_config import check_head
from albert_tf.interchange.portable_model import PortableModel

LABELS = ("나쁨", "좋음")
PAIRS = DataFiles(text_pair_column="other", metrics=("pearson",), is_regression=True)


@pytest.mark.parametrize(
    ("task", "told"),
    [
        (Classification(tiny_config(classifier_pooling="mean"), LABELS), "train with pooling=first"),
        (Regression(tiny_config(classifier_pooling="aligned"), PAIRS), "train with pooling=first"),
        (Entities(tiny_config(character_ngrams=True), ("LOC",)), "with run_ner.py --nocharacter_ngrams"),
        (QuestionAnswering(tiny_config(question_alignment="words")), "with run_squad.py --question_alignment=none"),
    ],
)
def test_what_will_be_refused_is_told_with_what_avoids_it(task, told):
    [sentence] = task.limits_elsewhere()
    assert sentence.startswith("transformers can't express ") and sentence.endswith(told)
    what = sentence.removeprefix("transformers can't express ").partition(";")[0]
    with pytest.raises(InputError) as error:
        check_head(PortableModel(task.config, {"head/dense/bias": None}, task=type(task)), "huggingface")
    assert what in str(error.value)


def test_what_answers_otherwise_there_is_told():
    config = tiny_config(classifier_pooling="first")
    [sentence] = MultiLabel(config, LABELS).limits_elsewhere()
    assert "no thresholds" in sentence
    [sentence] = Classification(config, LABELS, doc_stride=5).limits_elsewhere()
    assert "no windows (doc_stride=5)" in sentence


def test_models_that_can_be_converted_are_told_nothing():
    config = tiny_config(classifier_pooling="first")
    for task in (Classification(config, LABELS), Entities(config, ("LOC",)), QuestionAnswering(config)):
        assert task.limits_elsewhere() == []
