"""Learning what comes next, alone or beside masked pieces: two replicas learn as one, and where one has nothing."""

import numpy as np
import pytest
from tiny_training import (
    CONFIG,
    PREDICTIONS,
    SEQUENCE_LENGTH,
    TinyRun,
    assert_all_learn_alike,
    assert_same_training,
    ways_to_run,
)

from albert_tf.objectives import DataOptions, make_objective

pytestmark = [pytest.mark.slow, pytest.mark.keras_2]

GPT = CONFIG.replace(
    is_causal=True, norm_position="pre", language_model_head="tied", embedding_size=16, type_vocab_size=0, pooler=False
)


def make_blocks(count):
    """Returns examples of up to three documents; every fourth one is empty, as what fills a batch up."""
    draws = np.random.default_rng(0)
    numbers = np.sort(draws.integers(1, 4, [count, SEQUENCE_LENGTH]))
    numbers[3::4] = 0
    begins = np.array([[np.flatnonzero(row == number)[0] for number in row] for row in numbers])
    blocks = {
        "input_ids": draws.integers(5, CONFIG.vocab_size, numbers.shape) * (numbers > 0),
        "input_mask": numbers > 0,
        "segment_ids": np.zeros_like(numbers),
        "document_ids": numbers,
        "position_ids": np.arange(SEQUENCE_LENGTH) - begins,
    }
    characters = draws.integers(5, 30, count) * (numbers[:, 0] > 0)
    return {name: values.astype(np.int32) for name, values in blocks.items()} | {
        "num_characters": characters.astype(np.float32)
    }


def make_blocks_and_masks(count):
    """Returns the same examples, and masked besides."""
    blocks, draws = make_blocks(count), np.random.default_rng(1)
    positions = np.sort(np.argsort(draws.random([count, SEQUENCE_LENGTH - 1]))[:, :PREDICTIONS]) + 1
    ids, masked = blocks["input_ids"], blocks["input_ids"].copy()
    np.put_along_axis(masked, positions, 4, axis=1)
    weights = np.repeat(blocks["document_ids"][:, :1] > 0, PREDICTIONS, axis=1).astype(np.float32)
    return blocks | {
        "masked_input_ids": masked,
        "masked_lm_positions": positions.astype(np.int32),
        "masked_lm_ids": np.take_along_axis(ids, positions, axis=1),
        "masked_lm_weights": weights,
    }


SHIFTED = CONFIG.replace(masked_lm_is_shifted=True, pooler=False)
HYBRID = make_objective("hybrid", SHIFTED, options=DataOptions(PREDICTIONS, settings={"causal_share": 0.25}))


@pytest.mark.parametrize(
    ("objective", "make_examples", "measured"),
    [
        (make_objective("causal", GPT), make_blocks, {"causal_lm_loss", "causal_lm_accuracy", "bits_per_character"}),
        (HYBRID, make_blocks_and_masks, {"causal_lm_loss", "bits_per_character", "masked_lm_loss"}),
    ],
    ids=["causal", "hybrid"],
)
def test_replicas_and_compiled_steps_learn_alike(objective, make_examples, measured):
    runs = []
    for strategy in ways_to_run():
        run = TinyRun.start(strategy=strategy, optimizer="adamw", config=objective.config, objective=objective)
        run.take_steps(make_examples(24), 8)
        runs.append(run)
    assert_all_learn_alike(runs)
    assert measured <= runs[0].averages.keys()


def test_parts_of_a_batch_have_the_share_of_the_whole():
    runs = []
    for parts in (1, 2):
        run = TinyRun.start(optimizer="adamw", config=SHIFTED, objective=HYBRID)
        run.take_steps(make_blocks_and_masks(24), 8, parts)
        runs.append(run)
    assert_same_training(*runs)
