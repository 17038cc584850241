"""How many floating-point operations training takes, from the model's sizes alone."""

from albert_tf.config import AlbertConfig


def pretraining_operations(config: AlbertConfig, max_seq_length: int, max_predictions_per_seq: int) -> int:
    """Returns the operations of one example in a pre-training step, forward and backward.

    Of the matrix products alone, as is usual: with hidden size H, embedding size E, intermediate size I, L layers and
    vocabulary V, an example of S pieces of which P are predicted takes

        S (E H + L (4 H^2 + 2 H I + 2 S H)) + P (H E + E V) + H^2 + 2 H

    multiplications and additions, two operations each, once forward and twice backward.
    """
    heads = max_predictions_per_seq * config.embedding_size * (config.hidden_size + config.vocab_size)
    pooler = config.hidden_size**2 + 2 * config.hidden_size
    return 3 * 2 * (_encoder_products(config, max_seq_length) + heads + pooler)


def classification_operations(config: AlbertConfig, max_seq_length: int, num_labels: int) -> int:
    """Returns the operations of one example in a step that trains a classifier; counted as above."""
    head = config.hidden_size**2 + num_labels * config.hidden_size
    return 3 * 2 * (_encoder_products(config, max_seq_length) + head)


def _encoder_products(config, max_seq_length):
    hidden, blocks = config.hidden_size, config.num_hidden_layers * config.inner_group_num
    block = 4 * hidden**2 + 2 * hidden * config.intermediate_size + 2 * max_seq_length * hidden
    mapping = 0 if config.embedding_size == hidden else config.embedding_size * hidden
    return max_seq_length * (mapping + blocks * block)
