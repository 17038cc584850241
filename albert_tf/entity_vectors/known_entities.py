"""What a model is told of entities: vectors, and how a vocabulary spells the names that they are found by."""

import hashlib
import os
import typing

import numpy as np

from albert_tf.config import AlbertConfig
from albert_tf.entity_vectors.folder import read_folder
from albert_tf.mentions.finder import MentionFinder
from albert_tf.mentions.names import NameList
from albert_tf.mentions.trie import Trie, TrieSizes
from albert_tf.tokenization import Tokenizer


class KnownEntities(typing.NamedTuple):
    """Entities whose names a vocabulary can spell.

    Attributes:
        names: Their names; the number of an entity is its place here, counted from 1.
        vectors: float32 [entities, size].
        trie: Of the names' pieces.
        sizes: Its sizes.
        told: In a sentence, how many there are, and how many can't be spelled.
        sha256: Hash of the names and vectors that were read.
    """

    names: tuple[str, ...]
    vectors: np.ndarray
    trie: Trie
    sizes: TrieSizes
    told: str
    sha256: str

    def config_for(self, config: AlbertConfig) -> AlbertConfig:
        """Returns the config of a model that knows them, in the middle of its blocks if it knew none before.

        Raises:
            InputError: The model can't.
        """
        return config_with_entities(config, self.vectors.shape, self.sizes)


def config_with_entities(config: AlbertConfig, shape: tuple[int, int], sizes: TrieSizes) -> AlbertConfig:
    """Returns the config of a model that knows entities, in the middle of its blocks if it knew none before.

    Args:
        config: Of the model.
        shape: Of their vectors.
        sizes: Of the trie of their names.

    Raises:
        InputError: The model can't.
    """
    num_entities, entity_size = shape
    return config.replace(
        num_entities=num_entities,
        entity_size=entity_size,
        entity_layer=config.entity_layer if config.num_entities else config.num_blocks // 2,
        entity_name_edges=sizes.num_edges,
        entity_name_collisions=sizes.most_of_hash,
        entity_name_length=sizes.max_length,
    )


def read_known_entities(folder: str | os.PathLike, tokenizer: Tokenizer, source: str) -> KnownEntities:
    """Returns what a folder of entity vectors says to models of a vocabulary.

    Args:
        folder: What `train_entity_vectors.py` wrote, or `entities.txt` and `entity_vectors.npy` of another program.
        tokenizer: Of the data.
        source: What names the folder; errors begin with it.

    Raises:
        InputError: The folder can't be used, or the vocabulary spells none of its names.
    """
    found = read_folder(os.fspath(folder), source)
    rows = [(name, str(number)) for number, name in enumerate(found.entities)]
    names = NameList.from_rows(rows, tokenizer, source)
    vectors = found.vectors[[int(number) for number in names.identifiers]]
    finder = MentionFinder.of(names, tokenizer)
    told = f"{len(names):,} entities of {len(rows):,} have names that can be found"
    if names.left_out:
        told += f"; left out: {names.tell_left_out()}"
    digest = hashlib.sha256("".join(f"{name}\n" for name in found.entities).encode())
    digest.update(found.vectors.tobytes())
    return KnownEntities(names.names, vectors, finder.trie, finder.sizes, told, digest.hexdigest())
