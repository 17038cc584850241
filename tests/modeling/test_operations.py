"""How many operations training takes: against the products of the model, counted one by one by hand.

Whether XLA counts as many is tested where the step is compiled, in tests/training/test_tpu_compile.py.
"""

import pytest

from albert_tf.config import AlbertConfig
from albert_tf.modeling.operations import classification_operations, pretraining_operations

BASE = AlbertConfig(
    vocab_size=30000,
    embedding_size=128,
    hidden_size=768,
    num_hidden_layers=12,
    num_attention_heads=12,
    intermediate_size=3072,
)
S, P, FORWARD_AND_BACKWARD = 512, 20, 3


def product(rows, inner, columns):
    """Returns the operations of a matrix product: a multiplication and an addition for each pair of numbers."""
    return 2 * rows * inner * columns


def base_block(length, read):
    """Returns the operations of a block of which so many positions are read."""
    attention = [
        *[product(length, 768, 768)] * 2,  # key and value, of every position
        *[product(read, 768, 768)] * 2,  # query, and what mixes the heads
        *[product(read, 64, length)] * 12,  # of each head, what it looks at
        *[product(read, length, 64)] * 12,  # and what it takes from there
    ]
    return sum(attention) + product(read, 768, 3072) + product(read, 3072, 768)


def base_encoder(length, read):
    return product(length, 128, 768) + 11 * base_block(length, length) + base_block(length, read)


POOLER = product(1, 768, 768)


def test_pretraining_takes_the_products_of_encoder_and_both_heads():
    masked_lm = product(P, 768, 128) + product(P, 128, 30000)
    forward = base_encoder(S, P + 1) + masked_lm + POOLER + product(1, 768, 2)
    assert pretraining_operations(BASE, S, P) == FORWARD_AND_BACKWARD * forward
    assert pretraining_operations(BASE, S, P) == pytest.approx(0.271e12, rel=0.01)


@pytest.mark.parametrize("num_labels", [2, 5])
@pytest.mark.parametrize("length", [64, 128])
def test_classification_takes_those_of_encoder_and_one_head(length, num_labels):
    forward = base_encoder(length, 1) + POOLER + product(1, 768, num_labels)
    assert classification_operations(BASE, length, num_labels) == FORWARD_AND_BACKWARD * forward


def test_encoder_as_wide_as_its_embeddings_has_no_mapping():
    config = BASE.replace(embedding_size=768)
    difference = product(S, 128, 768) + product(P, 768, 128) + product(P, 128, 30000)
    difference -= product(P, 768, 768) + product(P, 768, 30000)
    expected = pretraining_operations(BASE, S, P) - FORWARD_AND_BACKWARD * difference
    assert pretraining_operations(config, S, P) == expected


def test_every_layer_of_a_group_is_counted():
    two = BASE.replace(inner_group_num=2, num_hidden_layers=6)
    assert pretraining_operations(two, S, P) == pretraining_operations(BASE, S, P)


def test_groups_that_share_less_take_no_more():
    assert pretraining_operations(BASE.replace(num_hidden_groups=4), S, P) == pretraining_operations(BASE, S, P)
