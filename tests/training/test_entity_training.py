"""Learning which entities are mentioned: each replica chooses among those of its own examples."""

import numpy as np
import pytest
import tensorflow as tf
from tiny_config import tiny_config
from tiny_entities import NUM_PIECES, tiny_entities, with_entities
from tiny_training import TinyRun

from albert_tf.objectives import make_objective
from albert_tf.objectives.knowledge import most_mentions
from albert_tf.pretraining_data.masking import MaskingOptions

pytestmark = [pytest.mark.slow, pytest.mark.keras_2]

LENGTH, PREDICTIONS, BATCH_SIZE = 16, 2, 8
CONFIG = with_entities(tiny_config(NUM_PIECES, num_hidden_layers=2, initializer_range=0.3))
OBJECTIVE = make_objective("entities", CONFIG, masking=MaskingOptions(PREDICTIONS), entities=tiny_entities())


def make_examples():
    """Returns a batch whose second half mentions two of the four entities, and one of its examples none."""
    generator = np.random.default_rng(0)
    mentions = most_mentions(LENGTH)
    labels = generator.integers(1, [[5]] * 4 + [[3]] * 4, size=[BATCH_SIZE, mentions])
    labels[-1] = 0
    batch = {
        "input_ids": generator.integers(5, NUM_PIECES, [BATCH_SIZE, LENGTH]),
        "input_mask": np.ones([BATCH_SIZE, LENGTH]),
        "segment_ids": np.zeros([BATCH_SIZE, LENGTH]),
        "masked_lm_positions": generator.integers(1, LENGTH, [BATCH_SIZE, PREDICTIONS]),
        "masked_lm_ids": generator.integers(5, NUM_PIECES, [BATCH_SIZE, PREDICTIONS]),
        "entity_ids": generator.integers(0, 5, [BATCH_SIZE, LENGTH]),
        "entity_positions": generator.integers(1, LENGTH, [BATCH_SIZE, mentions]),
        "entity_labels": labels,
    }
    batch = {name: values.astype(np.int32) for name, values in batch.items()}
    return batch | {"masked_lm_weights": np.ones([BATCH_SIZE, PREDICTIONS], np.float32)}


def entity_loss(model, parts):
    """Returns the mean over the mentions of parts of a batch, each compared within its part."""
    batches = [{name: tf.constant(values) for name, values in part.items()} for part in parts]
    sums = [OBJECTIVE.compute(batch, False, None, model=model)["entity_loss"] for batch in batches]
    loss, weight = np.sum(np.array(sums), axis=0)
    return loss / weight


@pytest.mark.parametrize(("num_replicas", "num_parts"), [(1, 1), (2, 1), (1, 2)])
def test_entities_are_told_among_those_of_a_replica_or_of_a_part(num_replicas, num_parts):
    run, examples = TinyRun.start(num_replicas, "adamw", objective=OBJECTIVE), make_examples()
    told = "model/encoder/entity_fusion/entity_embeddings"
    before, count = run.values()[told], num_replicas * num_parts
    cut = {name: np.split(values, count) for name, values in examples.items()}
    expected = entity_loss(run.model, [{name: cut[name][part] for name in cut} for part in range(count)])
    whole = entity_loss(run.model, [examples])
    found = run.take_steps(examples, BATCH_SIZE, num_parts)
    assert found["entity_loss"] == pytest.approx(expected, rel=1e-5)
    assert (abs(expected - whole) > 0.01) == (count > 1)
    np.testing.assert_array_equal(run.values()[told], before)
