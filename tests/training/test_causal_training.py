"""Learning what comes next: two replicas learn as one, and where one has nothing."""

import numpy as np
import pytest
from tiny_training import CONFIG, SEQUENCE_LENGTH, TinyRun, assert_all_learn_alike, ways_to_run

from albert_tf.objectives import make_objective

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


def test_replicas_and_compiled_steps_learn_alike():
    objective = make_objective("causal", GPT)
    runs = []
    for strategy in ways_to_run():
        run = TinyRun.start(strategy=strategy, optimizer="adamw", config=GPT, objective=objective)
        run.take_steps(make_blocks(24), 8)
        runs.append(run)
    assert_all_learn_alike(runs)
    assert {"causal_lm_loss", "causal_lm_accuracy", "bits_per_character"} <= runs[0].averages.keys()
