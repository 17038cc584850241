"""A few entities that are found by ids alone, for models of 50 pieces."""

import numpy as np

from albert_tf.base.sequences import build_trie
from albert_tf.config import AlbertConfig
from albert_tf.pretraining_data.entities import KnownEntities

PIECES = ((10,), (10, 40), (11, 12, 41), (13, 14))
NUM_PIECES, SIZE = 50, 6
# Pieces from 40 on go on with a word.
STARTS_WORD = np.arange(NUM_PIECES) < 40


def tiny_entities() -> KnownEntities:
    """Returns four entities, whose names are `PIECES`."""
    vectors = np.random.default_rng(4).normal(size=[len(PIECES), SIZE]).astype(np.float32)
    return KnownEntities(
        tuple(map(str, PIECES)), vectors, *build_trie(PIECES, STARTS_WORD), told="four entities", sha256="of four"
    )


def with_entities(config: AlbertConfig, **changes) -> AlbertConfig:
    """Returns the config of the same model that knows them."""
    return tiny_entities().config_for(config.replace(vocab_size=NUM_PIECES)).replace(**changes)
