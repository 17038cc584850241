"""Running functions of TensorFlow ops on strings of Python, or as part of a graph."""

import collections.abc
import re
import typing

import tensorflow as tf

# Lone surrogates have no UTF-8 form and stand for no character.
LONE_SURROGATES = re.compile("[\ud800-\udfff]")

_TEXTS_FOR_A_GRAPH = 256


class OpRunner:
    """Runs functions of ops on texts; many run as a graph, which takes a while to build and then saves time."""

    def __init__(self):
        self._graphs = {}

    def __call__(self, function: collections.abc.Callable[[tf.Tensor], typing.Any], texts: list[str] | tf.Tensor):
        if not tf.is_tensor(texts):
            texts = to_tensor(texts)
        if not tf.executing_eagerly() or len(texts) < _TEXTS_FOR_A_GRAPH:
            return function(texts)
        if function not in self._graphs:
            signature = [tf.TensorSpec([None], tf.string)]
            self._graphs[function] = tf.function(function, input_signature=signature, autograph=False)
        return self._graphs[function](texts)


def to_tensor(texts: list[str]) -> tf.Tensor:
    """Returns strings as a tensor [N], without lone surrogates."""
    try:
        return tf.constant(texts, tf.string, shape=[len(texts)])
    except ValueError:  # rare; searching every text for surrogates would take as long as everything else
        return tf.constant([LONE_SURROGATES.sub("", text) for text in texts], tf.string, shape=[len(texts)])
