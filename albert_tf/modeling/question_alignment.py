"""Tells each token of a text its likeness in the question, before anything is encoded (docs/question_answering.md)."""

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.modeling.aligned_pairs import align_words, both_texts
from albert_tf.modeling.encoder import AlbertEncoder
from albert_tf.modeling.inputs import encoder_inputs, known_inputs
from albert_tf.modeling.layers import ConfiguredLayer, Linear


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
