"""Learning from pairs of translations: two replicas learn as one does, with embeddings of languages and without."""

import numpy as np
import pytest
from tiny_training import CONFIG, TinyRun, assert_same_training, unevenly_weighted_examples

from albert_tf.objectives import make_objective

pytestmark = [pytest.mark.slow, pytest.mark.keras_2]


@pytest.mark.parametrize("num_languages", [2, 0])
def test_two_replicas_learn_as_one(num_languages):
    config = CONFIG.replace(num_languages=num_languages, pooler=False)
    examples = unevenly_weighted_examples(8)
    first = np.arange(len(examples["input_ids"]))[:, None] % 2
    pairs = {**examples, "language_ids": (first ^ examples["segment_ids"]).astype(np.int32)}
    pairs = {name: pairs[name] for name in pairs if name not in ("sentence_order_labels", "example_weights")}
    runs = []
    for num_replicas in (1, 2):
        objective = make_objective("translation", config)
        run = TinyRun.start(num_replicas, optimizer="adamw", config=config, objective=objective)
        run.take_steps(pairs, 8)
        runs.append(run)
    assert_same_training(*runs)
    assert {"masked_lm_loss", "masked_lm_accuracy"} <= runs[0].averages.keys()
