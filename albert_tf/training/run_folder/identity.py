"""The identities of files and checkpoints that a run began with, wherever they lie by now."""

import hashlib
import os
import re

import tensorflow as tf

from albert_tf.checkpoint_files import resolve_checkpoint
from albert_tf.files import reading, sha256_of

_CHUNK_BYTES = 1 << 20


def absolute_path(path: str) -> str:
    """Returns a path that means the same from every working directory, spelled in one way."""
    scheme, separator, rest = path.rpartition("://")
    if not separator:
        return os.path.abspath(path)
    return f"{scheme}://{re.sub('/+', '/', rest).rstrip('/')}"


def file_identity(path: str) -> dict[str, str]:
    """Returns a file's name and the SHA-256 of its bytes; of a folder, of the names and digests of its files.

    Hidden files don't count.
    """
    digest = _folder_sha256(path) if tf.io.gfile.isdir(path) else sha256_of(path)
    return {"name": os.path.basename(path), "sha256": digest}


def joint_identity(identities: list[dict[str, str]]) -> dict[str, str]:
    """Returns the names of several files, and a SHA-256 of theirs, given what `file_identity` returned of each."""
    digests = "".join(f"{identity['sha256']}  {identity['name']}\n" for identity in identities)
    names = "+".join(identity["name"] for identity in identities)
    return {"name": names, "sha256": hashlib.sha256(digests.encode()).hexdigest()}


def shard_identity(path: str) -> str:
    """Returns the identity of a shard whose manifest holds no digest: size and SHA-256 of its first record."""
    with reading(path) as file:
        header = file.read(12)  # the length of the record, and the checksum of the length
        record = file.read(min(int.from_bytes(header[:8], "little"), _CHUNK_BYTES))
        size = tf.io.gfile.stat(path).length
    return f"{size}-{hashlib.sha256(record).hexdigest()}"


def checkpoint_identity(path: str | None) -> dict[str, str | None] | None:
    """Returns a checkpoint's absolute "path", given it or its folder, and the "index_sha256" of its index.

    The index holds the checksum of every variable; the hash is None where there is no checkpoint (any more).
    """
    if not path:
        return None
    found = resolve_checkpoint(path)
    if found is None:
        return {"path": absolute_path(path), "index_sha256": None}
    return {"path": absolute_path(found), "index_sha256": sha256_of(f"{found}.index")}


def is_same_checkpoint(earlier: dict | None, now: dict | None) -> bool:
    """Returns whether two of `checkpoint_identity` are the same; it may be gone by now, and its folder be named."""
    if earlier is None or now is None:
        return earlier is now
    if earlier["index_sha256"] and now["index_sha256"]:
        return earlier["index_sha256"] == now["index_sha256"]
    return now["path"] in (earlier["path"], os.path.dirname(earlier["path"]))


def _folder_sha256(folder):
    """Returns the SHA-256 of what sha256sum would print of the files below a folder, sorted by name."""
    digest = hashlib.sha256()
    for name in sorted(_names_below(folder)):
        digest.update(f"{sha256_of(os.path.join(folder, name))}  {name}\n".encode())
    return digest.hexdigest()


def _names_below(folder, prefix=""):
    """Yields the names of all files below a folder, but for hidden ones."""
    for name in tf.io.gfile.listdir(os.path.join(folder, prefix)):
        name = name.rstrip("/")  # so Cloud Storage spells a folder
        if name.startswith("."):
            continue
        path = os.path.join(prefix, name)
        if tf.io.gfile.isdir(os.path.join(folder, path)):
            yield from _names_below(folder, path)
        else:
            yield path
