"""How many operations a training step takes: against the products of the model, counted one by one by hand.

Whether XLA counts as many is tested where the step is compiled, in tests/training/test_tpu_compile.py.
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


def flops_of_an_example(objective, length):
    return objective.flops(with_batch_size(objective.batch_spec(length), B)) / B


def pretraining_flops(config):
    return flops_of_an_example(make_objective("albert", config, masking=MaskingOptions(P)), S)


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
    assert pretraining_flops(BASE) == FORWARD_AND_BACKWARD * forward
    assert pretraining_flops(BASE) == pytest.approx(0.271e12, rel=0.01)


def test_matching_halves_reads_every_position_and_compares_all_sentences():
    masked_lm = product(P, 768, 128) + product(P, 128, 30000)
    room = 51  # sentences of 8 pieces with two [SEP], after [CLS]
    matching = product(2 * room, S, 768) + product(room, 768, B * room)
    assert flops_of_an_example(make_objective("halves", BASE, masking=MaskingOptions(P)), S) == FORWARD_AND_BACKWARD * (
        base_encoder(S, S) + masked_lm + matching
    )


def test_next_pieces_are_predicted_at_every_position():
    config = BASE.replace(is_causal=True)
    causal_lm = product(S, 768, 128) + product(S, 128, 30000)
    assert flops_of_an_example(make_objective("causal", config), S) == FORWARD_AND_BACKWARD * (
        base_encoder(S, S) + causal_lm
    )
    tied = make_objective("causal", config.replace(embedding_size=768, language_model_head="tied"))
    encoder = base_encoder(S, S) - product(S, 128, 768)
    assert flops_of_an_example(tied, S) == FORWARD_AND_BACKWARD * (encoder + product(S, 768, 30000))


def test_disentangled_attention_multiplies_all_positions_with_distances():
    config = BASE.replace(relative_attention="p2c|c2p", position_buckets=128, pooler=False)
    every_block = base_block(S, S) + 2 * 12 * product(S, 64, 256)
    last_block = every_block - product(S - P - 1, 768, 768) - 2 * product(S - P - 1, 768, 3072)
    masked_lm = product(P, 768, 128) + product(P, 128, 30000)
    forward = product(S, 128, 768) + 11 * every_block + last_block + masked_lm
    objective = make_objective("roberta", config, masking=MaskingOptions(P))
    assert flops_of_an_example(objective, S) == FORWARD_AND_BACKWARD * forward


@pytest.mark.parametrize("num_labels", [2, 5])
@pytest.mark.parametrize("length", [64, 128])
def test_classification_takes_those_of_encoder_and_one_head(length, num_labels):
    forward = base_encoder(length, 1) + POOLER + product(1, 768, num_labels)
    assert (
        flops_of_an_example(Classification(BASE, tuple(map(str, range(num_labels)))), length)
        == FORWARD_AND_BACKWARD * forward
    )


def test_classification_by_the_mean_reads_every_position_and_has_no_pooler():
    forward = base_encoder(S, S) + product(1, 768, 2)
    objective = Classification(BASE.replace(classifier_pooling="mean"))
    assert flops_of_an_example(objective, S) == FORWARD_AND_BACKWARD * forward


def test_classification_by_the_last_piece_reads_it_and_the_first():
    forward = base_encoder(S, 2) + product(1, 768, 2)
    objective = Classification(BASE.replace(classifier_pooling="last"))
    assert flops_of_an_example(objective, S) == FORWARD_AND_BACKWARD * forward


def test_answer_span_takes_those_of_encoder_and_two_scores_a_position():
    forward = base_encoder(S, S) + product(S, 768, 2)
    assert flops_of_an_example(QuestionAnswering(BASE), S) == FORWARD_AND_BACKWARD * forward


@pytest.mark.parametrize("objective", [QuestionAnswering, ConditionalQuestionAnswering])
def test_aligning_a_question_takes_cosines_averages_and_a_layer(objective):
    aligning = product(S, 128, S) + product(S, S, 128) + product(S, 3 * 128, 128)
    aligned = objective(BASE.replace(question_alignment="words"))
    assert flops_of_an_example(aligned, S) == pytest.approx(
        flops_of_an_example(objective(BASE), S) + FORWARD_AND_BACKWARD * aligning
    )


def test_conditional_answer_span_takes_a_layer_for_every_position_and_one_for_no_answer():
    end = product(S, 768, 768) + product(1, 768, 768) + product(S, 768, 1)  # of each position, of the first one
    null = product(1, S, 768) + product(1, 2 * 768, 768) + product(1, 768, 1)
    forward = base_encoder(S, S) + product(S, 768, 1) + end + null
    assert flops_of_an_example(ConditionalQuestionAnswering(BASE), S) == FORWARD_AND_BACKWARD * forward


def test_encoder_as_wide_as_its_embeddings_has_no_mapping():
    config = BASE.replace(embedding_size=768)
    difference = product(S, 128, 768) + product(P, 768, 128) + product(P, 128, 30000)
    difference -= product(P, 768, 768) + product(P, 768, 30000)
    expected = pretraining_flops(BASE) - FORWARD_AND_BACKWARD * difference
    assert pretraining_flops(config) == expected


def test_every_layer_of_a_group_is_counted():
    two = BASE.replace(inner_group_num=2, num_hidden_layers=6)
    assert pretraining_flops(two) == pretraining_flops(BASE)


def test_groups_that_share_less_take_no_more():
    assert pretraining_flops(BASE.replace(num_hidden_groups=4)) == pretraining_flops(BASE)
