"""Heads that turn the encoder's output into logits, which are float32 whatever the encoder computes in."""

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.modeling.kernels.elementwise import dropout, split_dropout_seed
from albert_tf.modeling.kernels.tied_cross_entropy import tied_cross_entropy
from albert_tf.modeling.layers import ACTIVATIONS, ConfiguredLayer, LayerNorm, Linear

_DENSE_ACTIVATIONS = {
    "dense_tanh": ACTIVATIONS["tanh"],
    "dense_gelu": ACTIVATIONS["gelu_erf"],
    "dense_relu": ACTIVATIONS["relu"],
}


@tf.keras.utils.register_keras_serializable("albert_tf")
class MaskedLMHead(ConfiguredLayer):
    """Predicts tokens with the embedding table itself (original run_pretraining.py).

    `language_model_head` "tied" leaves nothing but the table (GPT), and "tied_bias" the table and a bias (XLM).
    """

    def __init__(self, config: AlbertConfig, **kwargs):
        super().__init__(config, **kwargs)
        self.transform = self.layer_norm = self.output_bias = None
        if config.language_model_head == "dense":
            policy = kwargs.get("dtype")
            self.activation = ACTIVATIONS[config.hidden_act]
            self.transform = Linear(config.hidden_size, config.embedding_size, config.initializer_range, dtype=policy)
            self.layer_norm = LayerNorm(config.embedding_size, config.layer_norm_eps, dtype=policy)
        if config.language_model_head != "tied":
            self.output_bias = self.add_parameter("output_bias", [config.vocab_size], "zeros")

    def call(self, sequence_output, word_embeddings, masked_lm_positions=None):
        """Scores all V tokens at positions [B, P], float32 [B, P, V], or at all of [B, S, H]; the table is [V, E]."""
        if masked_lm_positions is not None:
            sequence_output = tf.gather(sequence_output, masked_lm_positions, batch_dims=1)
        table = tf.cast(word_embeddings, self.compute_dtype)
        logits = tf.tensordot(self.states(sequence_output), table, [[-1], [1]])
        return tf.cast(logits, tf.float32) + self.bias()

    def states(self, sequence_output):
        """Maps [..., H] to [..., E], to be multiplied with the table."""
        if self.transform is None:
            return sequence_output
        return self.layer_norm(self.activation(self.transform(sequence_output)))

    def cross_entropy(self, sequence_output, word_embeddings, labels, weights):
        """Returns the weighted sums of losses and of correct predictions, float32 scalars, without holding all logits.

        Takes states [B, P, H] at masked positions, the table float32 [V, E], labels int32 and weights float32 [B, P].
        """
        states = self.states(sequence_output)
        return tied_cross_entropy(
            tf.reshape(states, [-1, states.shape[-1]]),
            word_embeddings,
            self.bias(),
            tf.reshape(labels, [-1]),
            tf.reshape(weights, [-1]),
        )

    def bias(self):
        """Returns the bias of each token, float32 [V]; zeros where there is none."""
        if self.output_bias is None:
            return tf.zeros([self._config.vocab_size])
        return tf.convert_to_tensor(self.output_bias)


@tf.keras.utils.register_keras_serializable("albert_tf")
class OutputHead(ConfiguredLayer):
    """Dropout and a linear layer, the head of most fine-tuning tasks and of sentence order prediction."""

    def __init__(self, config: AlbertConfig, output_size: int, dropout_prob: float, **kwargs):
        super().__init__(config, **kwargs)
        self._output_size = output_size
        self.dropout_prob = dropout_prob
        self.dense = Linear(config.hidden_size, output_size, config.initializer_range, dtype=kwargs.get("dtype"))

    def call(self, inputs, dropout_seed=None):
        """Maps [..., H] to float32 [..., output_size]."""
        return tf.cast(self.dense(dropout(inputs, self.dropout_prob, dropout_seed)), tf.float32)

    def get_config(self):
        arguments = {"output_size": self._output_size, "dropout_prob": self.dropout_prob}
        return {**super().get_config(), **arguments}


@tf.keras.utils.register_keras_serializable("albert_tf")
class DenseOutputHead(OutputHead):
    """A dense layer before the linear one, on the state of [CLS]: for families without a pooler.

    `classification_head` names its activation. RoBERTa's and ELECTRA's have dropout before and after that layer,
    DistilBERT's only after (`*ClassificationHead` of transformers).
    """

    def __init__(self, config: AlbertConfig, output_size: int, dropout_prob: float, **kwargs):
        super().__init__(config, output_size, dropout_prob, **kwargs)
        size = config.hidden_size
        self.transform = Linear(size, size, config.initializer_range, dtype=kwargs.get("dtype"))
        self.activation = _DENSE_ACTIVATIONS[config.classification_head]

    def call(self, inputs, dropout_seed=None):
        first_seed, second_seed = split_dropout_seed(dropout_seed, 2)
        if self._config.classification_head != "dense_relu":
            inputs = dropout(inputs, self.dropout_prob, first_seed)
        return super().call(self.activation(self.transform(inputs)), second_seed)


def mean_state(sequence_output: tf.Tensor, input_mask: tf.Tensor | None) -> tf.Tensor:
    """Returns the average over the tokens of a text, [B, H] in the dtype of `sequence_output`, computed in float32.

    The mask is 1 for tokens and 0 for padding, [B, S], or [B, S, S], whose diagonal counts; None for all 1.
    """
    states = tf.cast(sequence_output, tf.float32)
    if input_mask is None:
        return tf.cast(tf.reduce_mean(states, axis=1), sequence_output.dtype)
    mask = tf.linalg.diag_part(input_mask) if input_mask.shape.rank == 3 else input_mask
    weights = tf.expand_dims(tf.cast(mask, tf.float32), -1)  # LiteRT can't do [..., None]
    mean = tf.math.divide_no_nan(tf.reduce_sum(states * weights, axis=1), tf.reduce_sum(weights, axis=1))
    return tf.cast(mean, sequence_output.dtype)


# A head for tagging words that also reads their characters.
#
# A name that is not in the training file falls apart into tokens, about which a few thousand sentences teach a small
# model too little. A linear model of the characters at a word's ends learns more from them (docs/entities.md).

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
