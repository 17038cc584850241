"""A head for pairs of texts that compares each token with its likeness in the other text.

Small models don't learn this by themselves from a few thousand pairs (docs/classification.md).
"""

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.modeling.embeddings import encoder_inputs, known_inputs
from albert_tf.modeling.encoder import AlbertEncoder
from albert_tf.modeling.kernels.elementwise import dropout, split_dropout_seed
from albert_tf.modeling.layers import ConfiguredLayer, Linear

# Cosines are multiplied with it before the softmax: what is the same word outweighs what is merely alike.
SHARPNESS = 20.0
# Added to where nothing may be aligned; the softmax makes it 0.
_NOWHERE = -1e9


@tf.keras.utils.register_keras_serializable("albert_tf")
class AlignedPairHead(ConfiguredLayer):
    """Aligns, compares and adds up, as Parikh et al. (2016, "A decomposable attention model") do, over ALBERT's states.

    Each token has a state h and a word embedding w, scaled to length sqrt(E); h' and w' are the averages of the other
    text's, weighted by the likeness of the words. A layer compares [h, h', |h - h'|, h * h', |w - w'|, w * w'] (the
    first four: Chen et al. 2017, "Enhanced LSTM for natural language inference", formulas 14 and 15). The logits are
    computed from the weighted averages of these comparisons over either text; the weights are learnt.
    """

    def __init__(self, config: AlbertConfig, output_size: int, dropout_prob: float, **kwargs):
        super().__init__(config, **kwargs)
        self._output_size = output_size
        self.dropout_prob = dropout_prob
        size, deviation, policy = config.hidden_size, config.initializer_range, kwargs.get("dtype")
        self.compare = Linear(4 * size + 2 * config.embedding_size, size, deviation, dtype=policy)
        self.weigh = Linear(size, 1, deviation, dtype=policy)
        self.dense = Linear(2 * size, output_size, deviation, dtype=policy)

    def call(self, states, word_embeddings, input_mask, segment_ids, dropout_seed=None):
        """Scores pairs, float32 [B, output_size]; for a single text the average over the second is 0.

        Takes states [B, S, H], word embeddings [B, S, E] without positions, the mask int [B, S] or [B, S, S] (whose
        diagonal counts), segments int [B, S] (0 for the first text, 1 for the second) and a seed int32 [2].
        """
        compare_seed, dense_seed = split_dropout_seed(dropout_seed, 2)
        texts = both_texts(input_mask, segment_ids)
        words, weights = align_words(word_embeddings, *texts)
        aligned, aligned_words = (_averages(weights, values, self.compute_dtype) for values in (states, words))
        words = tf.cast(words, self.compute_dtype)
        parts = [
            states,
            aligned,
            tf.abs(states - aligned),
            states * aligned,
            tf.abs(words - aligned_words),
            words * aligned_words,
        ]
        compared = self.compare(dropout(tf.concat(parts, axis=-1), self.dropout_prob, compare_seed))
        compared = tf.nn.gelu(compared, approximate=True)
        logits, compared = (tf.cast(values, tf.float32) for values in (self.weigh(compared)[..., 0], compared))
        both = tf.concat([_average(compared, logits, text) for text in texts], axis=-1)
        return tf.cast(self.dense(dropout(both, self.dropout_prob, dense_seed)), tf.float32)

    def get_config(self):
        arguments = {"output_size": self._output_size, "dropout_prob": self.dropout_prob}
        return {**super().get_config(), **arguments}


def both_texts(input_mask: tf.Tensor, segment_ids: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns which tokens belong to the first text and which to the second, bool [B, S] each."""
    mask = tf.linalg.diag_part(input_mask) if input_mask.shape.rank == 3 else input_mask
    return (mask > 0) & (segment_ids < 1), (mask > 0) & (segment_ids > 0)


def align_words(word_embeddings: tf.Tensor, is_first: tf.Tensor, is_second: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns word embeddings scaled to length sqrt(E), float32 [B, S, E], and their `alignment`."""
    words = tf.math.l2_normalize(tf.cast(word_embeddings, tf.float32), axis=-1) * word_embeddings.shape[-1] ** 0.5
    return words, alignment(words, is_first, is_second)


def alignment(words: tf.Tensor, is_first: tf.Tensor, is_second: tf.Tensor) -> tf.Tensor:
    """Returns how much each token looks at each of the other text, float32 [B, S, S]; 0 where there is none."""
    cosines = tf.matmul(words, words, transpose_b=True) / words.shape[-1]
    # LiteRT can't do [:, :, None].
    first_rows, second_rows = tf.expand_dims(is_first, 2), tf.expand_dims(is_second, 2)
    first_columns, second_columns = tf.expand_dims(is_first, 1), tf.expand_dims(is_second, 1)
    is_other = (first_rows & second_columns) | (second_rows & first_columns)
    weights = tf.nn.softmax(tf.where(is_other, SHARPNESS * cosines, _NOWHERE))
    return tf.where(is_other, weights, 0.0)  # without a second text all would be alike, and stand for nothing


def _averages(weights, values, dtype):
    return tf.matmul(tf.cast(weights, dtype), tf.cast(values, dtype))


def _average(values, logits, is_counted):
    """Averages [B, S, H] to [B, H], weighted by the softmax of [B, S] over what is counted; 0 if nothing is."""
    weights = tf.where(is_counted, tf.nn.softmax(tf.where(is_counted, logits, _NOWHERE)), 0.0)
    return tf.squeeze(tf.matmul(tf.expand_dims(weights, 1), values), axis=1)


# Tells each token of a text its likeness in the question, before anything is encoded (docs/question_answering.md).


@tf.keras.utils.register_keras_serializable("albert_tf")
class QuestionAlignment(ConfiguredLayer):
    """Adds to a token's word embedding w a linear function of it and of the other text's similar words.

    These words, averaged by likeness, are w' (the "aligned question embedding" of Chen et al. 2017, "Reading Wikipedia
    to answer open-domain questions", section 3.2, with cosines for its learnt projection). The layer's input is [w', |w
    - w'|, w * w'], all of length sqrt(E). Its kernel begins with zeros, so that a pre-trained encoder first sees the
    embeddings that it knows; its output is in units of the root mean square of w.
    """

    def __init__(self, config: AlbertConfig, **kwargs):
        super().__init__(config, **kwargs)
        size = config.embedding_size
        kernel = tf.zeros([3 * size, size]).numpy()
        self.mix = Linear(3 * size, size, config.initializer_range, kernel, dtype=kwargs.get("dtype"))

    def call(self, word_embeddings, input_mask, segment_ids):
        """Returns the embeddings to encode, float32 [B, S, E]; segment 0 is the question, 1 the text."""
        words, weights = align_words(word_embeddings, *both_texts(input_mask, segment_ids))
        aligned = tf.matmul(weights, words)
        mixed = self.mix(tf.concat([aligned, tf.abs(words - aligned), words * aligned], axis=-1))
        scale = tf.sqrt(tf.reduce_mean(tf.square(word_embeddings), axis=-1, keepdims=True))
        return word_embeddings + scale * tf.cast(mixed, tf.float32)


def make_question_alignment(config: AlbertConfig, **kwargs) -> QuestionAlignment | None:
    """Returns the layer if the config asks for it; keyword arguments are a layer's."""
    return QuestionAlignment(config, **kwargs) if config.question_alignment == "words" else None


def align_question(inputs: dict, encoder: AlbertEncoder, alignment: QuestionAlignment | None) -> dict:
    """Returns a model's inputs, with aligned embeddings in place of ids if there is a layer for it."""
    inputs = known_inputs(inputs)
    if alignment is None:
        return inputs
    found = encoder_inputs(inputs)
    if encoder.entity_fusion is not None and "input_ids" in found:
        found.setdefault("entity_ids", encoder.entity_fusion.find(found["input_ids"]))  # no longer to be found then
    words = encoder.embeddings.words(found.pop("input_ids", None), found.get("inputs_embeds"))
    return {**found, "inputs_embeds": alignment(words, found["input_mask"], found["segment_ids"])}


def alignment_with_inputs(alignment: QuestionAlignment | None, symbol) -> list[tuple]:
    """Returns the layer, if any, with symbolic inputs, for a summary."""
    if alignment is None:
        return []
    ids = symbol(None, dtype="int32")
    return [(alignment, symbol(None, alignment.mix.kernel.shape[1], dtype="float32"), ids, ids)]
