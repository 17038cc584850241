"""A head for tagging words that reads their characters beside what the layers make of the pieces.

A name that is not in the training file falls apart into pieces, of which a few thousand sentences teach a small model
too little. What the first and the last characters of a word are, and what stands next to them, a linear model learns
from the same sentences, and does better (docs/entities.md).
"""

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.modeling.heads import OutputHead

# So many characters are read before and after the first character of a word, and before and after its last one.
REACH = 2
# The shape of what is read of a word.
CHARACTERS_SHAPE = (2, 2 * REACH + 1)
NUM_BUCKETS = 2**17
_LONGEST = 3
# Its logits are multiplied with it, which stands for a higher learning rate: of most n-grams there are few examples.
_SCALE = 5.0
_PRIME, _FACTOR = 2**31 - 1, 1_000_003


@tf.keras.utils.register_keras_serializable("albert_tf")
class CharacterTagHead(OutputHead):
    """Adds to the logits of the states what each n-gram of a word's characters says of each label, by its place.

    That is a "wide and deep" model (Cheng et al. 2016): its wide part is linear, with one to three characters for
    features, hashed into a table (Weinberger et al. 2009) that begins with zeros.
    """

    def __init__(self, config: AlbertConfig, output_size: int, dropout_prob: float, **kwargs):
        super().__init__(config, output_size, dropout_prob, **kwargs)
        self.table = self.add_parameter("table", [NUM_BUCKETS, output_size], "zeros")

    def call(self, inputs, characters, dropout_seed=None):
        """Maps states [..., H] to float32 [..., output_size], with int32 characters [..., 2, 2 REACH + 1].

        Characters are the code points around the first and the last one of a word.
        """
        of_ngrams = tf.gather(tf.convert_to_tensor(self.table), ngram_buckets(characters))
        return super().call(inputs, dropout_seed=dropout_seed) + _SCALE * tf.reduce_sum(of_ngrams, axis=-2)


def ngram_buckets(characters: tf.Tensor) -> tf.Tensor:
    """Returns where in the table each n-gram has its row, int32 [..., 24]; argument as for `CharacterTagHead`."""
    characters = tf.cast(characters, tf.int64)  # products must not overflow
    places, width = CHARACTERS_SHAPE
    hashes, found = 1 + tf.reshape(tf.range(places * width, dtype=tf.int64), CHARACTERS_SHAPE), []
    for length in range(_LONGEST):
        hashes = (hashes[..., : width - length] * _FACTOR + characters[..., length:]) % _PRIME
        found.append(hashes % NUM_BUCKETS)
    buckets = tf.cast(tf.concat(found, axis=-1), tf.int32)
    return tf.reshape(buckets, [*(size or tf.shape(buckets)[axis] for axis, size in enumerate(buckets.shape[:-2])), -1])
