"""ALBERT as Keras layers and models; knows nothing of files or flags."""

from albert_tf.modeling.conditional_answers import AlbertForConditionalQuestionAnswering
from albert_tf.modeling.encoder import AlbertEncoder
from albert_tf.modeling.models import (
    AlbertForMultipleChoice,
    AlbertForPreTraining,
    AlbertForQuestionAnswering,
    AlbertForSequenceClassification,
    AlbertForTokenClassification,
)

__all__ = [
    "AlbertEncoder",
    "AlbertForConditionalQuestionAnswering",
    "AlbertForMultipleChoice",
    "AlbertForPreTraining",
    "AlbertForQuestionAnswering",
    "AlbertForSequenceClassification",
    "AlbertForTokenClassification",
]
