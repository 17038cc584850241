"""Raw strings to what a model reads, inside the graph of an exported model."""

import tensorflow as tf

from albert_tf.tokenization import Tokenizer
from albert_tf.tokenization.model_inputs import pack_segments
from albert_tf.tokenization.vocabulary import MASK


class TextInputs:
    """Encodes strings, padded to the longest of a batch and no further; too long ones are cut, of pairs the longer."""

    def __init__(self, tokenizer: Tokenizer, max_seq_length: int):
        self._tokenizer, self._max_seq_length = tokenizer, max_seq_length

    def encode(self, *texts: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the encoder's inputs, int32 [N, S] each, of texts or pairs of texts, string [N]."""
        return self.pack(*(self._tokenizer.encode_ids(text) for text in texts))

    def encode_masked(self, text: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.RaggedTensor]:
        """Encodes texts string [N] in which each "[MASK]" stands for an unknown token.

        Returns the encoder's inputs, int32 [N, S], and the positions of the masks that were not cut off, int32 [N,
        (masks)].
        """
        vocabulary = self._tokenizer.vocabulary
        vocabulary.require(MASK)
        parts = tf.strings.split(text, MASK)
        ids = parts.with_flat_values(self._tokenizer.encode_ids(parts.flat_values))
        # Every part but the first comes after a mask.
        masks = tf.fill([tf.size(parts.flat_values), 1], vocabulary.id_of(MASK))
        with_masks = tf.concat([tf.RaggedTensor.from_tensor(masks), ids.values], axis=1)
        batch = self.pack(ids.with_values(with_masks).merge_dims(1, 2)[:, 1:])
        is_mask = tf.equal(batch["input_ids"], vocabulary.id_of(MASK))
        positions = tf.tile(tf.range(tf.shape(is_mask)[1])[None], [tf.shape(is_mask)[0], 1])
        return batch, tf.ragged.boolean_mask(positions, is_mask)

    def pack(self, *segments: tf.RaggedTensor) -> dict[str, tf.Tensor]:
        """Returns the encoder's inputs, int32 [N, S] each, of the ids of one or two texts, int32 [N, (pieces)]."""
        return pack_segments(segments, self._tokenizer.vocabulary, self._max_seq_length, pads_to_longest=True)
