"""A folder of entity vectors: names, vectors, and how they were made."""

import collections
import dataclasses
import io
import os
import typing
import unicodedata

import numpy as np

from albert_tf.errors import InputError
from albert_tf.files import names_in, read_bytes, read_text, write_bytes, write_json, write_text

ENTITIES_FILE, VECTORS_FILE = "entities.txt", "entity_vectors.npy"
_RELATIONS_FILE, _RELATION_VECTORS_FILE = "relations.txt", "relation_vectors.npy"
SETTINGS_FILE = "entity_vectors.json"
UNFINISHED_FILE = "unfinished_vectors.npz"  # until all others are there


@dataclasses.dataclass(frozen=True)
class EntityVectors:
    """Names and what is known of them.

    Attributes:
        entities: Names, each once.
        vectors: float32 [entities, size].
    """

    entities: list[str]
    vectors: np.ndarray


def write_folder(
    folder: str,
    found: EntityVectors,
    relations: list[str],
    relation_vectors: np.ndarray,
    settings: dict[str, typing.Any],
) -> None:
    """Writes a folder; whoever calls sees to it that it comes whole (`whole_folders`).

    Args:
        folder: An empty one.
        found: Entities.
        relations: Names of relations.
        relation_vectors: float32 [relations, size].
        settings: How they were made and what they score, JSON values.
    """
    for file, names in ((ENTITIES_FILE, found.entities), (_RELATIONS_FILE, relations)):
        write_text(os.path.join(folder, file), "".join(f"{name}\n" for name in names))
    for file, vectors in ((VECTORS_FILE, found.vectors), (_RELATION_VECTORS_FILE, relation_vectors)):
        content = io.BytesIO()
        np.save(content, vectors, allow_pickle=False)
        write_bytes(os.path.join(folder, file), content.getvalue())
    write_json(os.path.join(folder, SETTINGS_FILE), settings)


def read_folder(folder: str, source: str) -> EntityVectors:
    """Reads a folder of any program that writes `entities.txt` and `entity_vectors.npy`; names are returned in NFC.

    Args:
        folder: The folder.
        source: What names it; errors begin with it.

    Raises:
        InputError: They can't be read, aren't all there yet, don't go together, or are no numbers.
    """
    if UNFINISHED_FILE in names_in(folder):
        raise InputError(f"{source} is not finished; repeat the command that began it to finish it")
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
            f"{path} must hold a vector of floats for each entity. Received: {vectors.dtype} {list(vectors.shape)}"
        )
    if len(vectors) != len(entities):
        raise InputError(
            f"{source}: there are {len(entities):,} names in {ENTITIES_FILE} and {len(vectors):,} vectors in "
            f"{VECTORS_FILE}; make the folder anew"
        )
    if len(set(entities)) < len(entities):
        twice = collections.Counter(entities).most_common(1)[0][0]
        raise InputError(f"{source}: {twice} appears in {ENTITIES_FILE} twice; remove one, and its vector")
    with np.errstate(over="ignore"):  # which is refused
        vectors = vectors.astype(np.float32)
    if not np.isfinite(vectors).all():
        raise InputError(f"{path} holds NaN, infinity, or a number too large for float32; make the vectors anew")
    return EntityVectors(entities, vectors)
