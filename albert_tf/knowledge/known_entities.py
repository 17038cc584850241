"""The entities that a model knows: their vectors, and how a vocabulary spells their names."""

import collections
import hashlib
import io
import os
import typing
import unicodedata

import numpy as np

from albert_tf.base.errors import InputError, shorten
from albert_tf.base.files import read_bytes, read_text
from albert_tf.config import AlbertConfig
from albert_tf.knowledge.mentions import NameList, Trie, TrieSizes, build_trie
from albert_tf.tokenization import Tokenizer

ENTITIES_FILE, VECTORS_FILE = "entities.txt", "entity_vectors.npy"


class KnownEntities(typing.NamedTuple):
    """Entities whose names a vocabulary can spell."""

    names: tuple[str, ...]  # their names; the number of an entity is its place here, counted from 1
    vectors: np.ndarray  # float32 [entities, size]
    trie: Trie  # of the names' pieces
    sizes: TrieSizes  # of the trie
    told: str  # in a sentence, how many there are, and how many can't be spelled
    sha256: str  # hash of the names and vectors that were read

    def config_for(self, config: AlbertConfig) -> AlbertConfig:
        """Returns the config of a model that knows them; raises InputError if the model can't."""
        return config_with_entities(config, self.vectors.shape, self.sizes)


def config_with_entities(config: AlbertConfig, shape: tuple[int, int], sizes: TrieSizes) -> AlbertConfig:
    """Returns the config of a model that knows entities, in the middle of its blocks if it knew none before."""
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
    """Returns the entities in a folder of vectors whose names a vocabulary can spell; errors begin with the source."""
    entities, vectors = read_entity_vectors(folder, source)
    digest = hashlib.sha256("".join(f"{name}\n" for name in entities).encode())
    digest.update(vectors.tobytes())
    rows = [(name, str(number)) for number, name in enumerate(entities)]
    names = NameList.from_rows(rows, tokenizer, source)
    trie, sizes = build_trie(names.pieces, tokenizer.starts_word)
    told = f"{len(names):,} entities of {len(rows):,} have names that can be found"
    if names.left_out:
        told += f"; left out: {names.tell_left_out()}"
    kept = [int(number) for number in names.identifiers]
    return KnownEntities(names.names, vectors[kept], trie, sizes, told, digest.hexdigest())


def read_entity_vectors(folder: str | os.PathLike, source: str) -> tuple[list[str], np.ndarray]:
    """Returns names in NFC, each once, and float32 [entities, size] vectors; errors begin with the source.

    They are read from `entities.txt`, a name a line, and `entity_vectors.npy`, in the same order. Raises InputError if
    the files can't be read, don't go together, or don't hold finite floats.
    """
    names = read_text(os.path.join(folder, ENTITIES_FILE), f"the names that {source} has vectors of,").split("\n")
    entities = [unicodedata.normalize("NFC", name).strip() for name in names if name.strip()]
    path = os.path.join(folder, VECTORS_FILE)
    content = read_bytes(path, "the entity vectors")
    try:
        vectors = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise InputError(f"{path} is not a NumPy file as `numpy.save` writes it; make the folder again") from error
    if vectors.ndim != 2 or vectors.dtype.kind != "f" or not vectors.shape[1]:
        raise InputError(
            f"{path} must hold a vector of floats for each name. Received: {vectors.dtype} {list(vectors.shape)}"
        )
    if len(vectors) != len(entities):
        raise InputError(
            f"{source}: {len(entities):,} names in {ENTITIES_FILE}, but {len(vectors):,} vectors in "
            f"{VECTORS_FILE}; make the folder anew"
        )
    if len(set(entities)) < len(entities):
        twice = collections.Counter(entities).most_common(1)[0][0]
        raise InputError(f"{source}: {shorten(twice)} appears in {ENTITIES_FILE} twice; remove one, and its vector")
    with np.errstate(over="ignore"):  # which is refused
        vectors = vectors.astype(np.float32)
    if not np.isfinite(vectors).all():
        raise InputError(f"{path} holds NaN, infinity, or a number too large for float32; make the vectors anew")
    return entities, vectors
