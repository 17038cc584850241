"""Floating-point operations of a training step, from the sizes of model and batch alone.

Only matrix products count, as usual in the literature. A product of an [m, k] and a [k, n] matrix takes 2 m k n
operations, and a training step takes each product once forward and twice backward.
"""

from albert_tf.config import AlbertConfig
from albert_tf.modeling.kernels.relative_scores import num_distances

TRAINING_FLOPS_PER_PRODUCT = 3 * 2


def encoder_products(config: AlbertConfig, max_seq_length: int, positions_read: int) -> int:
    """Returns the multiplications of the encoder for one example.

    With hidden size H, embedding size E, intermediate size I and L blocks, an example of S tokens of which the heads
    read R takes

        S (E H + (L - 1) (4 H^2 + 2 H I + 2 S H) + 2 H^2) + R (2 H^2 + 2 H I + 2 S H)

    because the last block computes only keys and values for all positions, and the rest for those that are read; it is
    not applied where there are none. Entity vectors of F numbers add S (2 H + F) H. With `relative_attention` the last
    block attends from all positions, and each position is multiplied once or twice with M distances, M H; putting
    scores in their place, and projecting distances once a batch, is not counted.
    """
    hidden, blocks = config.hidden_size, config.num_hidden_layers * config.inner_group_num
    keys_and_values = 2 * hidden**2
    rest_of_a_position = 2 * hidden**2 + 2 * hidden * config.intermediate_size + 2 * max_seq_length * hidden
    if config.relative_attention != "none":
        attending = hidden**2 + 2 * max_seq_length * hidden
        rest_of_a_position -= attending
        num_terms = len(config.relative_attention.split("|"))
        keys_and_values += attending + num_terms * min(num_distances(config), 2 * max_seq_length) * hidden
    mapping = 0 if config.embedding_size == hidden else config.embedding_size * hidden
    fusion = hidden * (2 * hidden + config.entity_size) if config.num_entities else 0
    every_position = mapping + fusion + (blocks - 1) * rest_of_a_position
    every_position += (blocks if positions_read else blocks - 1) * keys_and_values
    return max_seq_length * every_position + positions_read * rest_of_a_position


def classifier_products(config: AlbertConfig, max_seq_length: int, num_outputs: int) -> int:
    """Returns the multiplications of a classifier, encoder and head, for one example."""
    # The head's are a pooler's H^2 and H for each output if it reads the first state; H each for the average or the
    # last; and for aligned pairs S^2 (2 E + H) + S H (4 H + 2 E + 3) and 2 H for each output.
    hidden, length = config.hidden_size, max_seq_length
    if config.classifier_pooling == "first":
        return encoder_products(config, length, 1) + hidden**2 + num_outputs * hidden
    head = num_outputs * hidden
    if config.classifier_pooling == "last":
        return encoder_products(config, length, 2) + head
    if config.classifier_pooling == "aligned":
        embedding = config.embedding_size
        aligning, comparing = length**2 * (2 * embedding + hidden), length * hidden * (4 * hidden + 2 * embedding + 3)
        head = aligning + comparing + 2 * num_outputs * hidden
    return encoder_products(config, length, length) + head
