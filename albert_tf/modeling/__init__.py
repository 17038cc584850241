"""ALBERT as Keras layers and models; knows nothing of files or flags."""

import albert_tf.base.quiet_tensorflow  # noqa: F401  (first)
from albert_tf.modeling.conditional_answers import AlbertForConditionalQuestionAnswering
from albert_tf.modeling.encoder import AlbertEncoder
from albert_tf.modeling.models import (
    AlbertForMultipleChoice,
    AlbertForPreTraining,
    AlbertForQuestionAnswering,
    AlbertForSequenceClassification,
    AlbertForTokenClassification,
    AlbertForVectors,
)
from albert_tf.modeling.replaced_tokens import AlbertForReplacedTokens

__all__ = [
    "AlbertEncoder",
    "AlbertForConditionalQuestionAnswering",
    "AlbertForMultipleChoice",
    "AlbertForPreTraining",
    "AlbertForQuestionAnswering",
    "AlbertForReplacedTokens",
    "AlbertForSequenceClassification",
    "AlbertForTokenClassification",
    "AlbertForVectors",
]
