"""Learning which pieces were replaced: two replicas learn as one does."""

import numpy as np
import pytest
from tiny_training import CONFIG, PREDICTIONS, TinyRun, assert_all_learn_alike, make_examples, ways_to_run

from albert_tf.objectives import DataOptions, make_objective

pytestmark = [pytest.mark.slow, pytest.mark.keras_2]

ELECTRA = CONFIG.replace(pooler=False, classification_head="dense_gelu")
OBJECTIVE = make_objective("electra", ELECTRA, options=DataOptions(PREDICTIONS, settings={"generator_size": 0.5}))


def make_masked(count):
    """Returns examples whose masked pieces are told by the others; every fourth one is empty, as what fills a batch."""
    examples, draws = make_examples(count), np.random.default_rng(1)
    positions = np.sort(np.argsort(draws.random([count, 6]), axis=1)[:, :PREDICTIONS], axis=1).astype(np.int32)
    examples["masked_lm_positions"] = positions
    examples["masked_lm_ids"] = np.take_along_axis(examples["input_ids"], positions, axis=1)
    np.put_along_axis(examples["input_ids"], positions, 4, axis=1)
    examples["replacement_draws"] = draws.random([count, PREDICTIONS], np.float32)
    for name in ("input_mask", "masked_lm_weights"):
        examples[name][3::4] = 0
    return {name: examples[name] for name in OBJECTIVE.batch_spec(12)}


def test_replicas_and_compiled_steps_learn_alike():
    runs = []
    for strategy in ways_to_run():
        run = TinyRun.start(strategy=strategy, optimizer="adamw", config=ELECTRA, objective=OBJECTIVE)
        run.take_steps(make_masked(24), 8)
        runs.append(run)
    assert_all_learn_alike(runs)
    expected = {"masked_lm_loss", "replaced_token_loss", "replaced_token_share", "replaced_token_auc"}
    assert expected <= runs[0].averages.keys()
    assert any(name.startswith("generator/") for name in runs[0].weights())
