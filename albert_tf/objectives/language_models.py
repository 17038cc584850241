"""Language models: which tokens [MASK] stands for, or which token comes next."""

import math

import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.modeling.kernels import tied_cross_entropy
from albert_tf.objectives.losses import PretrainingLoss, find_language_ids
from albert_tf.objectives.objective import refuse_entities
from albert_tf.pretraining_data.masking import MaskingOptions, default_max_predictions, mask_batch
from albert_tf.pretraining_data.records import CHARACTERS_FEATURE


class MaskedLM(PretrainingLoss):
    """The cross-entropy of masked tokens, over the whole vocabulary.

    Args:
        masking: How to mask records that are not masked yet.
    """

    name = "masked_lm"
    fills_masks = True

    def __init__(self, config: AlbertConfig, masking: MaskingOptions, **others):
        super().__init__(config)
        self._masking = masking

    def prepare(self, features, seed):
        if "masked_lm_positions" in features:
            return {}
        if self._masking.tokens is None:
            raise InputError("the records are not masked, and it is not known how to mask them")
        masked = mask_batch(features, self._masking, seed)
        return {name: masked[name] for name in ("input_ids", *self._names)}

    def batch_spec(self, max_seq_length):
        predictions = self._masking.max_predictions_per_seq
        predictions = predictions or default_max_predictions(max_seq_length, self._masking.masked_lm_prob)
        dtypes = (tf.int32, tf.int32, tf.float32)
        return {name: tf.TensorSpec([None, predictions], dtype) for name, dtype in zip(self._names, dtypes)}

    def weight(self, batch):
        return tf.reduce_sum(batch["masked_lm_weights"])

    def compute(self, model, states, batch):
        weights, total = batch["masked_lm_weights"], self.weight(batch)
        if states.is_partial:
            masked = states.sequence_output[:, 1:]
        else:
            masked = tf.gather(states.sequence_output, batch["masked_lm_positions"], batch_dims=1)
        table = tf.convert_to_tensor(model.encoder.embeddings.word_embeddings)
        loss, right = model.masked_lm_head.cross_entropy(masked, table, batch["masked_lm_ids"], weights)
        return (loss, total), (right, total)

    def products(self, batch_spec):
        config, predictions = self.config, batch_spec["masked_lm_positions"].shape[1]
        transform = config.hidden_size if config.language_model_head == "dense" else 0
        return predictions * config.embedding_size * (transform + config.vocab_size)

    def uncounted_flops(self, batch_spec):
        rows = batch_spec["masked_lm_positions"].shape.num_elements()
        return tied_cross_entropy.uncounted_flops(rows, self.config.embedding_size, self.config.vocab_size)

    _names = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")


def original_ids(features: dict[str, tf.Tensor]) -> tf.Tensor:
    """Returns the ids of masked records before they were masked, int32 [B, S]."""
    chosen = tf.where(features["masked_lm_weights"] > 0)
    places = tf.stack([chosen[:, 0], tf.cast(tf.gather_nd(features["masked_lm_positions"], chosen), tf.int64)], axis=1)
    originals = tf.gather_nd(features["masked_lm_ids"], chosen)
    return tf.ensure_shape(
        tf.tensor_scatter_nd_update(features["input_ids"], places, originals), features["input_ids"].shape
    )


class TranslationLM(MaskedLM):
    """Masked tokens of a text and of its translation, off which they can be read (XLM; Conneau and Lample 2019, 3.3).

    As in XLM the positions of the second text begin at 0 again, and both are masked together, with one budget.
    Languages are told by language embeddings, or by segments without these.

    Raises:
        InputError: There are more languages than segments to tell them by.
    """

    def __init__(self, config, languages=None, **others):
        super().__init__(config, **others)
        languages = languages or ()
        if not config.num_languages and 1 < config.type_vocab_size < len(languages):
            raise InputError(
                f"segments can't tell {len(languages)} languages ({', '.join(languages)}) by type_vocab_size="
                f"{config.type_vocab_size}; set num_languages to {len(languages)} in `albert_config_file`"
            )

    def prepare(self, features, seed):
        return {**super().prepare(features, seed), "language_ids": find_language_ids(features)}

    def batch_spec(self, max_seq_length):
        return {**super().batch_spec(max_seq_length), "language_ids": tf.TensorSpec([None, max_seq_length], tf.int32)}

    def encoder_inputs(self, batch):
        positions = {"position_ids": restarted_positions(batch["segment_ids"]) + self.config.position_offset}
        return positions if self.config.num_languages else {**positions, "segment_ids": batch["language_ids"]}


def restarted_positions(segment_ids: tf.Tensor) -> tf.Tensor:
    """Returns positions, int32 [B, S], which begin at 0 again where segment 1 begins; padding is of segment 0."""
    places = tf.range(segment_ids.shape[1])
    # Without a second text, or behind it, nothing is taken off.
    return places - segment_ids * tf.argmax(segment_ids, axis=1, output_type=tf.int32)[:, None]


class CausalLM(PretrainingLoss):
    """The cross-entropy of the next token, at every token but the last of a document.

    A document in an example is read as if it stood alone: it sees only itself, its positions count from the first, and
    all segments are 0. `bits_per_character` makes models of different vocabularies comparable.

    Raises:
        InputError: The model is not causal, or knows entities.
    """

    name = "causal_lm"
    reads_all_states = True
    predicts_next = True
    further_metrics = ("bits_per_character",)

    def __init__(self, config, **others):
        super().__init__(config)
        refuse_entities(config, "causal")
        if not config.is_causal:
            raise InputError(
                "causal_lm needs pieces that see only those before them; set is_causal to true in `albert_config_file`"
            )

    def prepare(self, features, seed):
        document_ids, position_ids = find_documents(features["segment_ids"], features["input_mask"])
        return {
            "document_ids": document_ids,
            "position_ids": position_ids + self.config.position_offset,
            CHARACTERS_FEATURE: tf.cast(features[CHARACTERS_FEATURE][:, 0], tf.float32),
        }

    def batch_spec(self, max_seq_length):
        return {
            "document_ids": tf.TensorSpec([None, max_seq_length], tf.int32),
            "position_ids": tf.TensorSpec([None, max_seq_length], tf.int32),
            CHARACTERS_FEATURE: tf.TensorSpec([None], tf.float32),
        }

    def encoder_inputs(self, batch):
        return {
            "input_mask": None,
            "segment_ids": None,
            "document_ids": batch["document_ids"],
            "position_ids": batch["position_ids"],
        }

    def weight(self, batch):
        return tf.reduce_sum(_targets(batch)[1])

    def compute(self, model, states, batch):
        labels, weights = _targets(batch)
        table = tf.convert_to_tensor(model.encoder.embeddings.word_embeddings)
        loss, right = model.masked_lm_head.cross_entropy(states.sequence_output, table, labels, weights)
        total = tf.reduce_sum(weights)
        bits = loss / math.log(2), tf.reduce_sum(batch[CHARACTERS_FEATURE])
        return (loss, total), (right, total), bits

    def products(self, batch_spec):
        config, max_seq_length = self.config, batch_spec["input_ids"].shape[1]
        transform = config.hidden_size if config.language_model_head == "dense" else 0
        return max_seq_length * config.embedding_size * (transform + config.vocab_size)

    def uncounted_flops(self, batch_spec):
        rows = batch_spec["input_ids"].shape.num_elements()
        return tied_cross_entropy.uncounted_flops(rows, self.config.embedding_size, self.config.vocab_size)


def find_documents(segment_ids: tf.Tensor, input_mask: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the number of each token's document, from 1, and its place there, from 0: int32 [B, S]; 0 of padding."""
    # Segments alternate from document to document.
    max_seq_length = segment_ids.shape[1]
    changes = tf.cast(tf.not_equal(segment_ids[:, 1:], segment_ids[:, :-1]), tf.int32)
    numbers = tf.pad(tf.cumsum(changes, axis=1), [[0, 0], [1, 0]])
    lengths = tf.math.bincount(numbers, minlength=max_seq_length, maxlength=max_seq_length, axis=-1)
    begins = tf.gather(tf.cumsum(lengths, axis=1, exclusive=True), numbers, batch_dims=1)
    is_piece = tf.equal(input_mask, 1)
    return tf.where(is_piece, numbers + 1, 0), tf.where(is_piece, tf.range(max_seq_length) - begins, 0)


def _targets(batch):
    """Returns the token after each, int32 [B, S], and float32 weights: 0 where it isn't one of the same document."""
    document_ids = batch["document_ids"]
    next_documents = tf.pad(document_ids[:, 1:], [[0, 0], [0, 1]])
    is_predicted = tf.equal(document_ids, next_documents) & (document_ids > 0)
    return tf.pad(batch["input_ids"][:, 1:], [[0, 0], [0, 1]]), tf.cast(is_predicted, tf.float32)
