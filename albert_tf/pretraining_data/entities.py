"""Entities: lists of their names, as a tokenizer cuts them into pieces, and folders of their vectors."""

import collections
import collections.abc
import dataclasses
import hashlib
import io
import os
import typing
import unicodedata

import numpy as np

from albert_tf.base.errors import InputError, quote, shorten
from albert_tf.base.files import read_bytes, read_text
from albert_tf.base.sequences import Trie, TrieSizes, build_trie
from albert_tf.config import AlbertConfig
from albert_tf.tokenization import Tokenizer
from albert_tf.tokenization.vocabulary import UNK

# Longer than any name; what is longer is likely a file of running text.
MAX_PIECES_OF_NAME = 32

_REPEATED = "has the pieces of another name"


@dataclasses.dataclass(frozen=True)
class NameList:
    """Names that a tokenizer's pieces can spell."""

    names: tuple[str, ...]  # each name in NFC; the number of a name is its place here, counted from 1
    # What the file says of each after a tab, such as a type or the name of an entity; "" for nothing.
    identifiers: tuple[str, ...]
    pieces: tuple[tuple[int, ...], ...]  # the ids that each is cut into
    left_out: dict[str, str]  # the names that no piece spells, or that others spell, and why
    sha256: str  # hash of names and identifiers in order, also of those that are left out

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def from_rows(
        cls, rows: collections.abc.Iterable[tuple[str, str]], tokenizer: Tokenizer, source: str = "the list of names"
    ) -> "NameList":
        """Encodes names, each with its identifier or ""; errors begin with the source.

        Raises InputError if there are no names, the pieces can spell none of them, or don't tell where words begin.
        """
        if getattr(tokenizer, "wordpiece_scheme", None) == "end_of_word":
            raise InputError(
                f"{source}: names are found where words begin, which pieces of `wordpiece_scheme=end_of_word` don't "
                "tell; make a vocabulary of `wordpiece_scheme=continuation`"
            )
        rows = [(unicodedata.normalize("NFC", name), identifier) for name, identifier in rows]
        if not rows:
            raise InputError(f"{source} contains no names; write one per line")
        encoded = tokenizer.encode_ids([name for name, _ in rows]).to_list()
        kept, left_out = {}, {}
        for (name, identifier), pieces in zip(rows, map(tuple, encoded)):
            reason = _why_left_out(name, pieces, tokenizer) or (_REPEATED if pieces in kept else "")
            if reason:
                left_out[name] = reason
            else:
                kept[pieces] = name, identifier
        if not kept:
            name, reason = next(iter(left_out.items()))
            raise InputError(
                f"{source}: no name can be found by this vocabulary ({shorten(name)} {reason}); give other names"
            )
        return cls(
            names=tuple(name for name, _ in kept.values()),
            identifiers=tuple(identifier for _, identifier in kept.values()),
            pieces=tuple(kept),
            left_out=left_out,
            sha256=hashlib.sha256("".join("\t".join(row) + "\n" for row in rows).encode()).hexdigest(),
        )

    def tell_left_out(self) -> str:
        """Returns how many names are left out and why, for people; "" if none is."""
        reasons = collections.Counter(self.left_out.values())
        examples = {reason: name for name, reason in reversed(self.left_out.items())}
        return "; ".join(f"{count:,} {reason}, as {shorten(examples[reason])}" for reason, count in reasons.items())


def read_names(path: str | os.PathLike, tokenizer: Tokenizer) -> NameList:
    """Reads names from a UTF-8 file, one per line, maybe with a tab and an identifier; blank lines are left out.

    Raises InputError as `NameList.from_rows`, or for a line with no name or several tabs, or a name repeated.
    """
    rows, lines = [], {}
    for number, line in enumerate(read_text(path, "the list of names").split("\n"), start=1):
        if not line.strip():
            continue
        place = f"{os.fspath(path)}, line {number}"
        name, *identifiers = (unicodedata.normalize("NFC", part).strip() for part in line.split("\t"))
        if not _is_one_line(name) or len(identifiers) > 1:
            raise InputError(
                f"{place}: it must be a name, or a name, a tab and what identifies it. Received: {quote(line)}"
            )
        if name in lines:
            raise InputError(f"{place}: {shorten(name)} is on line {lines[name]} too; remove one")
        lines[name] = number
        rows.append((name, *(identifiers or [""])))
    return NameList.from_rows(rows, tokenizer, os.fspath(path))


def _why_left_out(name, pieces, tokenizer):
    """Returns why a name can't be found, as words after "it"; "" if it can."""
    vocabulary = tokenizer.vocabulary
    if not pieces:
        return "has no piece"
    if "\t" in name or not _is_one_line(name):
        return "has a tab or the end of a line"
    if vocabulary.id_of(UNK) in pieces:
        return "has a word that the vocabulary can't spell"
    if any(vocabulary.is_reserved(vocabulary.pieces[piece]) for piece in pieces):
        return "has a special token"
    if not tokenizer.starts_word[pieces[0]]:
        return "begins with a piece that begins no word"
    return f"has more than {MAX_PIECES_OF_NAME} pieces" if len(pieces) > MAX_PIECES_OF_NAME else ""


def _is_one_line(name):
    return len(name.splitlines()) == 1  # which also knows the line ends of other systems


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
