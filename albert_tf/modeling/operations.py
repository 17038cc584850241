"""How many floating-point operations training takes, from the model's sizes alone."""

from albert_tf.config import AlbertConfig


def pretraining_operations(config: AlbertConfig, max_seq_length: int, max_predictions_per_seq: int) -> int:
    """Returns the operations of one example in a pre-training step, forward and backward.

    Of the matrix products alone, as is usual: with hidden size H, embedding size E, intermediate size I, L blocks and
    vocabulary V, an example of S pieces of which P are predicted takes

        S (E H + (L - 1) (4 H^2 + 2 H I + 2 S H) + 2 H^2) + (P + 1) (2 H^2 + 2 H I + 2 S H) + P (H E + E V) + H^2 + 2 H

    multiplications and additions, two operations each, once forward and twice backward. The last block computes only
    the P + 1 positions that the heads read, but for keys and values.
    """
    heads = max_predictions_per_seq * config.embedding_size * (config.hidden_size + config.vocab_size)
    pooler = config.hidden_size**2 + 2 * config.hidden_size
    return 3 * 2 * (_encoder_products(config, max_seq_length, max_predictions_per_seq + 1) + heads + pooler)


def classification_operations(config: AlbertConfig, max_seq_length: int, num_labels: int) -> int:
    """Returns the operations of one example in a step that trains a classifier; counted as above, with one position."""
    head = config.hidden_size**2 + num_labels * config.hidden_size
    return 3 * 2 * (_encoder_products(config, max_seq_length, 1) + head)


def _encoder_products(config, max_seq_length, positions_read):
    hidden, blocks = config.hidden_size, config.num_hidden_layers * config.inner_group_num
    keys_and_values = 2 * hidden**2
    rest_of_a_position = 2 * hidden**2 + 2 * hidden * config.intermediate_size + 2 * max_seq_length * hidden
    mapping = 0 if config.embedding_size == hidden else config.embedding_size * hidden
    every_position = mapping + (blocks - 1) * rest_of_a_position + blocks * keys_and_values
    return max_seq_length * every_position + positions_read * rest_of_a_position
