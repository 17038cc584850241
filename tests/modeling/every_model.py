"""Every model, what it takes, and the weights of one in another."""

import tensorflow as tf

from albert_tf.modeling import (
    AlbertEncoder,
    AlbertForConditionalQuestionAnswering,
    AlbertForMultipleChoice,
    AlbertForPreTraining,
    AlbertForQuestionAnswering,
    AlbertForSequenceClassification,
    AlbertForTokenClassification,
)
from albert_tf.modeling.layers import named_variables

WITH_HEADS = {
    "pre-training": AlbertForPreTraining,
    "sequence classification": lambda config, **options: AlbertForSequenceClassification(config, 3, **options),
    "token classification": lambda config, **options: AlbertForTokenClassification(config, 3, **options),
    "question answering": AlbertForQuestionAnswering,
    "conditional question answering": AlbertForConditionalQuestionAnswering,
    "multiple choice": AlbertForMultipleChoice,
}
MODELS = {"encoder": AlbertEncoder, **WITH_HEADS}


def choices(batch):
    """Returns inputs [3, 2, S]: each example and its neighbour."""
    return {name: tf.stack([values, tf.roll(values, 1, 0)], axis=1) for name, values in batch.items()}


def inputs_of(use, batch):
    """Returns the batch as a model of this use takes it."""
    return choices(batch) if use == "multiple choice" else batch


def copied(model, source):
    """Gives a model the weights of another one where it has the same, and returns it."""
    values = named_variables(source)
    for name, variable in named_variables(model).items():
        if name in values:
            variable.assign(values[name])
    return model
