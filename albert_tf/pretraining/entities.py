"""The entities that a run's model knows: read from a folder of vectors, and compared with those of an initial model."""

import numpy as np

from albert_tf.checkpoint_files import MODEL_PREFIX, CheckpointReader
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.mentions.known_entities import (
    KnownEntities,
    config_with_entities,
    read_entity_vectors,
    read_known_entities,
)
from albert_tf.mentions.names import MAX_PIECES_OF_NAME
from albert_tf.mentions.trie import TrieSizes
from albert_tf.modeling.entity_fusion import constants
from albert_tf.modeling.pretrained import find_checkpoint, read_config
from albert_tf.objectives.entities import ENTITY_VECTORS
from albert_tf.tokenization import Tokenizer

_USUAL_COLLISIONS = 6


def find_entities(folder: str, tokenizer: Tokenizer | None) -> KnownEntities:
    """Returns the entities of the folder that `entity_vectors` names, as the tokenizer of the data spells them."""
    source = f"`{ENTITY_VECTORS}={folder}`"
    if tokenizer is None:
        raise InputError(
            f"{source}: there is no tokenizer.json beside the shards to tell how names are spelled; make the shards "
            "again"
        )
    return read_known_entities(folder, tokenizer, source)


def config_for_plan(config: AlbertConfig, folder: str) -> AlbertConfig:
    """Returns the config of a model that is to know the entities of a folder, where there is no vocabulary yet."""
    entities, vectors = read_entity_vectors(folder, f"`{ENTITY_VECTORS}={folder}`")
    # A piece is a character at least, but for the space that SentencePiece sees before each name.
    lengths = [min(1 + len(name), MAX_PIECES_OF_NAME) for name in entities]
    sizes = TrieSizes(config.vocab_size, sum(lengths), _USUAL_COLLISIONS, max(lengths))
    return config_with_entities(config, vectors.shape, sizes)


def check_same_entities(known: KnownEntities, folder: str, init_checkpoint: str) -> None:
    """Checks that the model of `init_checkpoint` knows no entities, or these, which come from `folder`."""
    path = find_checkpoint(init_checkpoint, "`init_checkpoint`")
    config = read_config(path, "`init_checkpoint`")
    if not config.num_entities:
        return
    told = constants(known.vectors, known.trie)
    expected = {f"{MODEL_PREFIX}encoder/entity_fusion/{name}": values for name, values in told.items()}
    reader = CheckpointReader(path)
    is_same = known.config_for(config) == config and expected.keys() <= reader.shapes.keys()
    values = reader.read(expected) if is_same else {}
    if not is_same or not all(_is_stored_as(values[name], value) for name, value in expected.items()):
        raise InputError(
            f"`init_checkpoint={init_checkpoint}` was trained with other entities than "
            f"`{ENTITY_VECTORS}={folder}`; name the folder that it was trained with, or a model without entities"
        )


def _is_stored_as(stored, values):
    """Whether an array in a checkpoint is this one; floats may have been published in half precision."""
    is_float = values.dtype.kind == "f"
    return np.array_equal(stored, values) or (is_float and np.array_equal(stored, values.astype(np.float16)))
