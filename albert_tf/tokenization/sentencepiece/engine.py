"""A SentencePiece model in memory, and the ops of tensorflow_text that encode with it.

`tensorflow_text.SentencepieceTokenizer` is not used itself, because its model is gone as soon as TensorFlow forgets its
kernels, which `tf.random.set_seed` and Keras's `clear_session` make it do. A model with a name of its own stays.
"""

import hashlib

import tensorflow as tf
from tensorflow_text.python.ops import sentencepiece_tokenizer

from albert_tf.errors import InputError, first_line

_OPS = sentencepiece_tokenizer.gen_sentencepiece_tokenizer


class _SharedModel(tf.saved_model.experimental.TrackableResource):
    """A model that stays in memory; tokenizers of the same model share it."""

    def __init__(self, content):
        super().__init__()
        self._content, self._name = content, hashlib.sha256(content).hexdigest()

    def _create_resource(self):
        return _OPS.sentencepiece_op(model=self._content, shared_name=self._name)

    def _initialize(self):
        """Leaves nothing to be done."""

    def _destroy_resource(self):
        """Leaves the model where it is, because others may use it."""


class Engine(tf.Module):
    """Encodes texts; whoever saves a graph that uses it must keep it as an attribute. InputError for a bad model."""

    def __init__(self, content: bytes, source: str):
        super().__init__()
        self._model = _SharedModel(content)
        try:
            self.tokenize(tf.constant(["a"]))
        except tf.errors.OpError as error:
            raise InputError(f"{source}: SentencePiece can't use this model: {first_line(error)}") from error

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Returns ids of texts string [N], int32 [N, (pieces)]."""
        values, splits = self._run(_OPS.sentencepiece_tokenize_op, texts)
        return tf.RaggedTensor.from_row_splits(values, splits, validate=False)

    def tokenize_with_offsets(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Returns ids of texts string [N], and where their pieces begin and end in bytes, int [N, (pieces)] each."""
        values, splits, *offsets = self._run(_OPS.sentencepiece_tokenize_with_offsets_op, texts)
        return tuple(tf.RaggedTensor.from_row_splits(column, splits, validate=False) for column in (values, *offsets))

    def _run(self, op, texts):
        best_way = {"nbest_size": 0, "alpha": 1.0}
        plain = {"add_bos": False, "add_eos": False, "reverse": False}
        return op(self._model.resource_handle, texts, **best_way, **plain, out_type=tf.int32)
