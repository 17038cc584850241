"""A head for tagging words that also reads their characters.

A name that is not in the training file falls apart into tokens, about which a few thousand sentences teach a small
model too little. A linear model of the characters at a word's ends learns more from them (docs/entities.md).
"""

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.modeling.heads import OutputHead

# So many characters are read before and after the first character of a word, and before and after its last one.
REACH = 2
# The shape of the characters that are read of a word.
CHARACTERS_SHAPE = (2, 2 * REACH + 1)
NUM_BUCKETS = 2**17
_LONGEST = 3
# Its logits are multiplied with it, which stands for a higher learning rate: of most n-grams there are few examples.
_SCALE = 5.0
_PRIME, _FACTOR = 2**31 - 1, 1_000_003


@tf.keras.utils.register_keras_serializable("albert_tf")
class CharacterTagHead(OutputHead):
    """Adds to the logits of the states a learnt score of each character n-gram, by its place, for each label.

    A "wide and deep" model (Cheng et al. 2016): its wide part is linear over n-grams of one to three characters, hashed
    into a table (Weinberger et al. 2009) that begins with zeros.
    """

    def __init__(self, config: AlbertConfig, output_size: int, dropout_prob: float, **kwargs):
        super().__init__(config, output_size, dropout_prob, **kwargs)
        self.table = self.add_parameter("table", [NUM_BUCKETS, output_size], "zeros")

    def call(self, inputs, characters, dropout_seed=None):
        """Maps states [..., H] and code points at a word's ends, int32 [..., 2, 5], to float32 [..., output_size]."""
        of_ngrams = tf.gather(tf.convert_to_tensor(self.table), ngram_buckets(characters))
        return super().call(inputs, dropout_seed=dropout_seed) + _SCALE * tf.reduce_sum(of_ngrams, axis=-2)


def ngram_buckets(characters: tf.Tensor) -> tf.Tensor:
    """Returns each n-gram's row in the table, int32 [..., 24]; characters as for `CharacterTagHead`."""
    characters = tf.cast(characters, tf.int64)  # products must not overflow
    places, width = CHARACTERS_SHAPE
    hashes, found = 1 + tf.reshape(tf.range(places * width, dtype=tf.int64), CHARACTERS_SHAPE), []
    for length in range(_LONGEST):
        hashes = (hashes[..., : width - length] * _FACTOR + characters[..., length:]) % _PRIME
        found.append(hashes % NUM_BUCKETS)
    buckets = tf.cast(tf.concat(found, axis=-1), tf.int32)
    return tf.reshape(buckets, [*(size or tf.shape(buckets)[axis] for axis, size in enumerate(buckets.shape[:-2])), -1])
