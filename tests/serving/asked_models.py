"""Models with random weights, asked in both ways: through the graph of their export, and as their task predicts."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.asking.answers import DEFAULT, rows_of
from albert_tf.finetuning import runner
from albert_tf.modeling.layers import named_variables
from albert_tf.serving.loading import TrainedModel
from albert_tf.serving.signatures import make_signatures
from albert_tf.training.devices import strategy_of
from albert_tf.training.evaluation import make_output_function

MAX_SEQ_LENGTH = 24


def trained(task, tokenizer, seed=1, max_seq_length=MAX_SEQ_LENGTH):
    tf.keras.utils.set_random_seed(seed)
    return TrainedModel(task.make_model(), tokenizer, max_seq_length, task, "model.ckpt-1", {})


def predictions_of(asked, inputs, batch_size=4):
    task = asked.task
    examples = task.examples_of(inputs)
    features = task.encode(examples, asked.tokenizer, asked.max_seq_length)
    encoded = runner.EncodedFile("", examples, features, asked.max_seq_length)
    compute = _output_function(task, asked.model)
    return runner.compute_predictions(task, encoded, batch_size, lambda _, dataset: compute(dataset))


@functools.lru_cache(maxsize=1)
def _output_function(task, model):
    return make_output_function(strategy_of(named_variables(model)), lambda batch: task.outputs(batch, model))


def traced(asked, name=DEFAULT):
    """Returns the graph of one signature; tracing all of them takes seconds."""
    return make_signatures(asked).trace_one(name)


def answers_of(asked, name=DEFAULT):
    """Returns the traced function of a signature, from lists of texts to arrays."""
    signature = traced(asked, name)
    return lambda *texts: {name: value.numpy() for name, value in signature(*map(as_strings, texts)).items()}


def as_strings(texts):
    """Returns texts, or bytes that are none, as a tensor."""
    texts = [text.encode() if isinstance(text, str) else text for text in texts]
    return tf.constant(texts, tf.string, shape=[len(texts)])


def cut(values, max_seq_length=MAX_SEQ_LENGTH):
    """Returns what is left of a text's ids, pieces or offsets, of which the last one is that of [SEP]."""
    return [*values[:-1][: max_seq_length - 1], values[-1]]


def features_of(texts, tokenizer):
    """Returns what the model reads, encoded by Python."""
    rows = [cut(encoding.ids) for encoding in tokenizer.encode_batch(texts)]
    length = max(map(len, rows))
    ids = np.array([row + [0] * (length - len(row)) for row in rows], np.int32)
    mask = np.array([[1] * len(row) + [0] * (length - len(row)) for row in rows], np.int32)
    return {"input_ids": ids, "input_mask": mask, "segment_ids": np.zeros_like(ids)}


def graph_predictions_of(asked):
    """Returns what makes predictions of lists of texts by the graph of an export, in Python's form."""
    task = asked.task
    kind = task.kind.answer
    answer, ask = kind(task.labels, task.thresholds), answers_of(asked, kind.signature)
    return lambda *texts: list(map(answer.prediction, rows_of(ask(*texts))))


def assert_same(found, expected, source):
    """Checks that predictions are equal, numbers nearly; a folder's own say more than those of an export."""
    if isinstance(found, float) and expected is not None:
        assert found == pytest.approx(expected, rel=1e-4, abs=2e-5), source
    elif isinstance(found, dict):
        for name, value in found.items():
            assert_same(value, expected[name], (name, source))
    elif isinstance(found, list):
        assert len(found) == len(expected), source
        for number, (value, other) in enumerate(zip(found, expected)):
            assert_same(value, other, (number, source))
    else:
        assert found == expected, source
