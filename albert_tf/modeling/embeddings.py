"""Embeddings of ids, in the (small) embedding size."""

import collections.abc

import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.modeling.initializers import sinusoidal_positions
from albert_tf.modeling.kernels.elementwise import dropout
from albert_tf.modeling.layers import ConfiguredLayer, LayerNorm


@tf.keras.utils.register_keras_serializable("albert_tf")
class AlbertEmbeddings(ConfiguredLayer):
    """Sum of word, segment and position embeddings (paper, section 3.1; original modeling.py).

    `num_languages` adds those of languages (XLM; Conneau and Lample 2019, section 3). The sum is normalised, except
    with `norm_position` "pre", where every block normalises its input.
    """

    def __init__(self, config: AlbertConfig, **kwargs):
        super().__init__(config, **kwargs)
        size, stddev = config.embedding_size, config.initializer_range
        self.word_embeddings = self.add_parameter("word_embeddings", [config.vocab_size, size], stddev)
        self.token_type_embeddings = None
        if config.type_vocab_size:
            shape = [config.type_vocab_size, size]
            self.token_type_embeddings = self.add_parameter("token_type_embeddings", shape, stddev)
        self.language_embeddings = None
        if config.num_languages:
            shape = [config.num_languages, size]
            self.language_embeddings = self.add_parameter("language_embeddings", shape, stddev)
        self.position_embeddings = None
        if config.position_biased_input:
            self.position_embeddings = self.add_parameter(
                "position_embeddings",
                [config.max_position_embeddings, size],
                sinusoidal_positions if config.position_initializer == "sinusoidal" else stddev,
            )
        self.layer_norm = None
        if config.norm_position == "post":
            self.layer_norm = LayerNorm(size, config.layer_norm_eps, dtype=kwargs.get("dtype"))

    def call(self, input_ids, segment_ids, position_ids=None, inputs_embeds=None, dropout_seed=None, language_ids=None):
        """Returns the embeddings after dropout, `compute_dtype` [B, S, E].

        Ids are int [B, S]; positions default to 0 to S - 1, or with `position_offset` to `positions_of_pieces`, and
        languages to 0. `inputs_embeds` [B, S, E] replace word embeddings, and the seed is int32 [2] or None.
        """
        embeddings = self.words(input_ids, inputs_embeds)
        if self.token_type_embeddings is not None:
            embeddings += self._segments(segment_ids)
        if self.language_embeddings is not None:
            embeddings += self._languages(language_ids)
        if self.position_embeddings is not None:
            embeddings += self._positions(input_ids, segment_ids, position_ids)
        if self.layer_norm is not None:
            embeddings = self.layer_norm(embeddings)
        return dropout(tf.cast(embeddings, self.compute_dtype), self._config.hidden_dropout_prob, dropout_seed)

    def _segments(self, segment_ids):
        """Returns the embeddings of segments, float32 [B, S, E], or [E] where all are the same."""
        table = tf.convert_to_tensor(self.token_type_embeddings)
        if self._config.type_vocab_size == 1:
            return table[0]
        return _rows_of_small_table(segment_ids, table)

    def _languages(self, language_ids):
        """Returns the embeddings of languages, float32 [B, S, E], or [E] of the first one."""
        table = tf.convert_to_tensor(self.language_embeddings)
        return table[0] if language_ids is None else _rows_of_small_table(language_ids, table)

    def _positions(self, input_ids, segment_ids, position_ids):
        """Returns the embeddings of positions, float32 [B, S, E], or [S, E] where they are the same in all texts."""
        table = tf.convert_to_tensor(self.position_embeddings)
        first = self._config.position_offset
        if position_ids is None and first and input_ids is not None:
            position_ids = positions_of_pieces(input_ids, first)
            if input_ids.shape[1] is None:  # a gather beyond the table is an error on CPUs alone
                tf.debugging.assert_less_equal(tf.shape(input_ids)[1], self._config.longest_sequence)
        if position_ids is None:
            return table[first : first + (segment_ids.shape[1] or tf.shape(segment_ids)[1])]
        return tf.gather(table, position_ids)

    def words(self, input_ids, inputs_embeds=None):
        if inputs_embeds is None:
            return tf.gather(tf.convert_to_tensor(self.word_embeddings), input_ids)
        return tf.cast(inputs_embeds, tf.float32)


def _rows_of_small_table(ids, table):
    # A product with one-hot rows: on a TPU the gradient of a gather from such a small table is slow.
    return tf.tensordot(tf.one_hot(ids, table.shape[0]), table, 1)


def positions_of_pieces(input_ids: tf.Tensor, position_offset: int) -> tf.Tensor:
    """Returns RoBERTa's positions, int32 [B, S] (`create_position_ids_from_input_ids` of fairseq and transformers).

    The id and the position of [PAD] are both `position_offset` - 1; the first token has position `position_offset`.
    """
    pad_id = position_offset - 1
    is_piece = tf.cast(tf.not_equal(input_ids, pad_id), tf.int32)
    return tf.cumsum(is_piece, axis=1) * is_piece + pad_id


# The dictionary of inputs of every model.

ENCODER_INPUTS = (
    "input_ids",
    "inputs_embeds",
    "input_mask",
    "document_ids",
    "segment_ids",
    "position_ids",
    "language_ids",
    "entity_ids",
)

# Hugging Face's names of the same.
_ALIASES = {"attention_mask": "input_mask", "token_type_ids": "segment_ids", "langs": "language_ids"}

# Other features of training batches. The encoder ignores them, so that a step can pass on a batch as it is.
_OTHER_NAMES = (
    "masked_lm_positions",
    "masked_lm_ids",
    "masked_lm_weights",
    "sentence_order_labels",
    "label_ids",
    "characters",
    "label_values",
    "start_positions",
    "end_positions",
    "example_weights",
    "window_weights",
    "num_characters",
    "teacher_logits",
    "teacher_start_logits",
    "teacher_end_logits",
    "has_label",
)


def encoder_inputs(inputs: collections.abc.Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Returns the encoder's inputs under the names in `ENCODER_INPUTS`, with defaults for mask (1) and segments (0).

    `inputs` may hold transformers' names, labels and weights of training batches, and None for what is not given.

    Raises:
        InputError: A name is unknown, both names of one input are given, neither or both of `input_ids` and
            `inputs_embeds` are, or `input_mask` or `document_ids` has a wrong shape.
    """
    found = known_inputs(inputs)
    mask = found.get("input_mask")
    if mask is not None and mask.shape.rank not in (2, 3):
        raise InputError(
            f"input_mask must be [B, S], or [B, S, S] with a row for each query; its shape is {tuple(mask.shape)}"
        )
    documents = found.get("document_ids")
    if documents is not None and documents.shape.rank != 2:
        raise InputError(f"document_ids must be [B, S], one for each piece; their shape is {tuple(documents.shape)}")
    ids = found["input_ids"] if "input_ids" in found else found["inputs_embeds"][..., 0]
    if mask is None:
        found["input_mask"] = tf.ones_like(ids, tf.int32)
    if "segment_ids" not in found:
        found["segment_ids"] = tf.zeros_like(ids, tf.int32)
    return found


def known_inputs(inputs: collections.abc.Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Returns the given inputs under the names in `ENCODER_INPUTS`, without adding anything to a graph."""
    unknown = [name for name in inputs if name not in (*ENCODER_INPUTS, *_ALIASES, *_OTHER_NAMES)]
    if unknown:
        raise InputError(
            f"a model has no input {', '.join(map(str, unknown))}; the dictionary of inputs may hold "
            "input_ids or "
            "inputs_embeds, input_mask (or attention_mask), document_ids, segment_ids (or token_type_ids), "
            f"position_ids, language_ids (or langs), entity_ids, and of a training batch {', '.join(_OTHER_NAMES)}"
        )
    found = {}
    for name, value in inputs.items():
        ours = _ALIASES.get(name, name)
        if ours not in ENCODER_INPUTS or value is None:
            continue
        if ours in found:
            other = next(alias for alias in _ALIASES if _ALIASES[alias] == ours)
            raise InputError(f"{ours} and {other} are two names of one input; give a model one of them")
        found[ours] = value
    if "input_ids" not in found and "inputs_embeds" not in found:
        raise InputError("a model needs input_ids, or inputs_embeds, in its dictionary of inputs")
    if "input_ids" in found and "inputs_embeds" in found:
        raise InputError("input_ids and inputs_embeds exclude each other; give the model one of them")
    return found
