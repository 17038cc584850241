"""Word order: tokens that were shuffled are put back (KoreALBERT; Lee et al. 2021, arXiv 2101.11363).

As many tokens as are masked change places within their example. At each of their places the model tells which of them
belongs there: the masked language model's head maps the state of the place, and is multiplied with the embeddings of
the shuffled tokens, so that the loss adds no variable to the model. Equal tokens are one answer.
"""

import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.objectives.losses import PretrainingLoss
from albert_tf.objectives.objective import refuse_entities
from albert_tf.pretraining_data.masking import MaskingOptions, default_max_predictions

_NOT_SHUFFLED = -10000.0


class WordOrder(PretrainingLoss):
    """Which of the shuffled tokens belongs to each of their places; comes after the masked language model.

    Args:
        masking: Its share of an example's tokens is shuffled, besides those that are masked.

    Raises:
        InputError: The model knows entities, whose names are not found in shuffled text.
    """

    name = "word_order"
    reads_all_states = True

    def __init__(self, config: AlbertConfig, masking: MaskingOptions, **others):
        super().__init__(config)
        refuse_entities(config, "korealbert")
        self._masking = masking

    def prepare(self, features, seed):
        if self._masking.tokens is None:
            raise InputError(
                "`objective=korealbert`: there is no tokenizer.json beside the shards to tell which tokens are "
                "special; put theirs there"
            )
        ids, is_free = features["input_ids"], tf.equal(features["input_mask"], 1) & ~_masked_places(features)
        for token_id in self._masking.tokens.unmaskable_ids:
            is_free &= tf.not_equal(ids, token_id)
        places, is_used = self._draw(features["input_mask"], is_free, seed)
        belonging = tf.gather(ids, places, batch_dims=1)
        order = _shuffled(is_used, tf.random.fold_in(seed, 2))
        changes = tf.where(is_used, tf.gather(belonging, order, batch_dims=1) - belonging, 0)
        one_hot = tf.one_hot(places, ids.shape[1], dtype=tf.int32)
        return {
            "input_ids": ids + tf.reduce_sum(one_hot * changes[:, :, None], axis=1),
            "word_order_positions": places,
            "word_order_ids": belonging,
            "word_order_weights": tf.cast(is_used, tf.float32),
        }

    def batch_spec(self, max_seq_length):
        shape = [None, self._most_shuffled(max_seq_length)]
        return {
            "word_order_positions": tf.TensorSpec(shape, tf.int32),
            "word_order_ids": tf.TensorSpec(shape, tf.int32),
            "word_order_weights": tf.TensorSpec(shape, tf.float32),
        }

    def weight(self, batch):
        return tf.reduce_sum(batch["word_order_weights"])

    def compute(self, model, states, batch):
        weights, belonging = batch["word_order_weights"], batch["word_order_ids"]
        at_places = tf.gather(states.sequence_output, batch["word_order_positions"], batch_dims=1)
        table = tf.convert_to_tensor(model.encoder.embeddings.word_embeddings)
        queries = model.masked_lm_head.states(at_places)
        keys = tf.cast(tf.gather(table, belonging), queries.dtype)
        scores = tf.cast(tf.matmul(queries, keys, transpose_b=True), tf.float32)
        scores += tf.gather(model.masked_lm_head.bias(), belonging)[:, None]
        return _choose_among(scores, belonging, weights)

    def products(self, batch_spec):
        config, shuffled = self.config, batch_spec["word_order_positions"].shape[1]
        transform = config.hidden_size if config.language_model_head == "dense" else 0
        return shuffled * config.embedding_size * (transform + shuffled)

    def _most_shuffled(self, max_seq_length):
        return default_max_predictions(max_seq_length, self._masking.masked_lm_prob)

    def _draw(self, input_mask, is_free, seed):
        """Returns ascending places to shuffle, int32 [B, P], and which of them are used, bool [B, P]."""
        length = is_free.shape[1]
        priorities = tf.where(is_free, tf.random.stateless_uniform(tf.shape(is_free), tf.random.fold_in(seed, 1)), -1)
        priorities, places = tf.math.top_k(priorities, self._most_shuffled(length))
        lengths = tf.cast(tf.reduce_sum(input_mask, axis=1, keepdims=True), tf.float32)
        wanted = tf.cast(tf.round(lengths * self._masking.masked_lm_prob), tf.int32)
        is_used = (priorities >= 0) & (tf.range(places.shape[1]) < wanted)
        # A token alone has no order.
        is_used &= tf.reduce_sum(tf.cast(is_used, tf.int32), axis=1, keepdims=True) > 1
        places = tf.sort(tf.where(is_used, places, length), axis=1)
        is_used = places < length
        return tf.where(is_used, places, 0), is_used


def _masked_places(features):
    """Returns where [B, S] tokens are predicted already, bool."""
    one_hot = tf.one_hot(features["masked_lm_positions"], features["input_ids"].shape[1])
    return tf.reduce_sum(one_hot * features["masked_lm_weights"][:, :, None], axis=1) > 0


def _shuffled(is_used, seed):
    """Returns the numbers of the used columns in random order, int32 [B, P]; the others stay where they are."""
    draws = tf.random.stateless_uniform(tf.shape(is_used), seed)
    columns = tf.cast(tf.range(is_used.shape[1]), tf.float32)
    return tf.argsort(tf.where(is_used, draws, 1.0 + columns), axis=1)


def _choose_among(scores, belonging, weights):
    """Returns loss and accuracy, each as (sum, weight), of scores [B, P, P] of the tokens at each place."""
    scores = tf.where(weights[:, None] > 0, scores, _NOT_SHUFFLED)
    is_answer = tf.equal(belonging[:, :, None], belonging[:, None]) & (weights[:, None] > 0)
    right_scores = tf.where(is_answer, scores, _NOT_SHUFFLED)
    losses = tf.reduce_logsumexp(scores, axis=-1) - tf.reduce_logsumexp(right_scores, axis=-1)
    is_right = tf.gather(is_answer, tf.argmax(scores, axis=-1), axis=2, batch_dims=2)
    total = tf.reduce_sum(weights)
    return (tf.reduce_sum(losses * weights), total), (tf.reduce_sum(tf.cast(is_right, tf.float32) * weights), total)
