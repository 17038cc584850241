"""The documents of a chunk of text and their digests."""

import collections.abc
import dataclasses
import hashlib
import itertools

from albert_tf.corpus.reader import Chunk, CorpusReader


@dataclasses.dataclass(frozen=True)
class Documents:
    chunk_id: tuple[int, int]  # file number and chunk number within the file; with the seed they key every random draw
    texts: list[list[str]]  # the lines of each document
    # SHA-256 of each document; the parts of a document that was too long for a chunk have the digest of the first, so
    # that they stay together.
    digests: list[bytes]
    part_digests: list[bytes]  # the same, but different for every part of a document that was too long for a chunk
    continues: bool = False  # whether the first document continues the last one of the previous chunk
    source: str = ""  # what `CorpusReader.source_of` says of the file

    def select(self, is_kept: list[bool]) -> "Documents":
        columns = ([*itertools.compress(each, is_kept)] for each in (self.texts, self.digests, self.part_digests))
        return Documents(self.chunk_id, *columns, self.continues and is_kept[0], self.source)


def read_documents(reader: CorpusReader, file_index: int) -> collections.abc.Iterator[tuple[Documents, Chunk]]:
    """Yields the documents of one file, chunk by chunk, with the chunk; errors as of `CorpusReader.lines`."""
    last_digest = last_part_digest = b""
    source = reader.source_of(file_index)
    for chunk in reader.chunks(file_index):
        digests = [hashlib.sha256("\n".join(lines).encode()).digest() for lines in chunk.documents]
        part_digests = list(digests)
        if chunk.continues:
            # Two parts are equal only if everything before them in their documents is equal too.
            part_digests[0] = hashlib.sha256(last_part_digest + digests[0]).digest()
            digests[0] = last_digest
        if digests:
            last_digest, last_part_digest = digests[-1], part_digests[-1]
        places = (file_index, chunk.index), chunk.documents, digests, part_digests
        yield Documents(*places, chunk.continues, source), chunk


def digest_fraction(digest: bytes) -> float:
    """Returns a number in [0, 1) that depends on the document alone."""
    return int.from_bytes(digest[:8], "big") / 2**64
