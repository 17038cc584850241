"""How many operations a training step takes: against the products of the model, counted one by one by hand.

Whether XLA counts as many is tested where steps are compiled, in tests/tpu and tests/training/test_tpu_compile.py.
"""

import pytest

from albert_tf.config import AlbertConfig
from albert_tf.finetuning import Classification, ConditionalQuestionAnswering, QuestionAnswering
from albert_tf.objectives import make_objective
from albert_tf.objectives.objective import with_batch_size
from albert_tf.pretraining_data.masking import MaskingOptions

BASE = AlbertConfig(
    vocab_size=30000,
    embedding_size=128,
    hidden_size=768,
    num_hidden_layers=12,
    num_attention_heads=12,
    intermediate_size=3072,
)
B, S, P, FORWARD_AND_BACKWARD = 4, 512, 20, 3


def flops_of_an_example(objective, length=S):
    return objective.flops(with_batch_size(objective.batch_spec(length), B)) / B


def learning(name, config):
    return make_objective(name, config, masking=MaskingOptions(P))


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


def language_model(positions):
    return product(positions, 768, 128) + product(positions, 128, 30000)


POOLER = product(1, 768, 768)
CAUSAL, TIED = BASE.replace(is_causal=True), {"embedding_size": 768, "language_model_head": "tied"}
DISENTANGLED = BASE.replace(relative_attention="p2c|c2p", position_buckets=128, pooler=False)
# All positions are multiplied with distances, also in the last block.
BLOCK_WITH_DISTANCES = base_block(S, S) + 2 * 12 * product(S, 64, 256)
LAST_WITH_DISTANCES = BLOCK_WITH_DISTANCES - product(S - P - 1, 768, 768) - 2 * product(S - P - 1, 768, 3072)
ROOM = 51  # sentences of 8 pieces with two [SEP], after [CLS]
# Of each position and of the first one; and of whether there is an answer.
CONDITIONAL_END = product(S, 768, 768) + product(1, 768, 768) + product(S, 768, 1)
NO_ANSWER = product(1, S, 768) + product(1, 2 * 768, 768) + product(1, 768, 1)

# Objectives, and the operations of one example forward.
CASES = {
    "pre-training: encoder and both heads": (
        learning("albert", BASE),
        base_encoder(S, P + 1) + language_model(P) + POOLER + product(1, 768, 2),
    ),
    "halves: every position is read, and all sentences are compared": (
        learning("halves", BASE),
        base_encoder(S, S) + language_model(P) + product(2 * ROOM, S, 768) + product(ROOM, 768, B * ROOM),
    ),
    "causal: a prediction at every position": (learning("causal", CAUSAL), base_encoder(S, S) + language_model(S)),
    "causal with a tied head": (
        learning("causal", CAUSAL.replace(**TIED)),
        base_encoder(S, S) - product(S, 128, 768) + product(S, 768, 30000),
    ),
    "disentangled attention": (
        learning("roberta", DISENTANGLED),
        product(S, 128, 768) + 11 * BLOCK_WITH_DISTANCES + LAST_WITH_DISTANCES + language_model(P),
    ),
    "classification by the mean reads every position and has no pooler": (
        Classification(BASE.replace(classifier_pooling="mean")),
        base_encoder(S, S) + product(1, 768, 2),
    ),
    "classification by the last piece reads it and the first": (
        Classification(BASE.replace(classifier_pooling="last")),
        base_encoder(S, 2) + product(1, 768, 2),
    ),
    "an answer's span takes two scores a position": (
        QuestionAnswering(BASE),
        base_encoder(S, S) + product(S, 768, 2),
    ),
    "a span given its beginning takes a layer a position, and one for no answer": (
        ConditionalQuestionAnswering(BASE),
        base_encoder(S, S) + product(S, 768, 1) + CONDITIONAL_END + NO_ANSWER,
    ),
    "an encoder as wide as its embeddings has no mapping": (
        learning("albert", BASE.replace(embedding_size=768)),
        base_encoder(S, P + 1)
        - product(S, 128, 768)
        + product(P, 768, 768)
        + product(P, 768, 30000)
        + POOLER
        + product(1, 768, 2),
    ),
}


@pytest.mark.parametrize(("objective", "forward"), CASES.values(), ids=CASES)
def test_operations_are_those_of_the_products(objective, forward):
    assert flops_of_an_example(objective) == FORWARD_AND_BACKWARD * forward


def test_base_model_takes_as_many_as_is_known_of_it():
    assert flops_of_an_example(learning("albert", BASE)) == pytest.approx(0.271e12, rel=0.01)


def test_classification_takes_those_of_encoder_and_one_head():
    forward = base_encoder(64, 1) + POOLER + product(1, 768, 5)
    assert flops_of_an_example(Classification(BASE, tuple("abcde")), 64) == FORWARD_AND_BACKWARD * forward


@pytest.mark.parametrize("objective", [QuestionAnswering, ConditionalQuestionAnswering])
def test_aligning_a_question_takes_cosines_averages_and_a_layer(objective):
    aligning = product(S, 128, S) + product(S, S, 128) + product(S, 3 * 128, 128)
    found = flops_of_an_example(objective(BASE.replace(question_alignment="words")))
    assert found == pytest.approx(flops_of_an_example(objective(BASE)) + FORWARD_AND_BACKWARD * aligning)


def test_layers_count_whoever_shares_them():
    found = flops_of_an_example(learning("albert", BASE.replace(inner_group_num=2, num_hidden_layers=6)))
    assert found == flops_of_an_example(learning("albert", BASE))
