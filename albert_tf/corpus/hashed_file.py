"""What tells the text of a file: a hash of its bytes as they are stored, taken while they are read."""

import hashlib
import typing


class FileStart(typing.NamedTuple):
    """The beginning of a file, or all of it.

    Attributes:
        num_bytes: How many bytes, as they are stored.
        sha256: Their SHA-256.
    """

    num_bytes: int
    sha256: str


class HashedFile:
    """A file that is read from its beginning to its end.

    Args:
        file: The open file.
    """

    def __init__(self, file: typing.BinaryIO):
        self._file, self._digest, self._num_bytes = file, hashlib.sha256(), 0

    def read(self, size: int = -1) -> bytes:
        """Returns the next bytes, at most `size`."""
        content = self._file.read(size)
        self._digest.update(content)
        self._num_bytes += len(content)
        return content

    def tell(self) -> int:
        """Returns how many bytes were read so far."""
        return self._num_bytes

    @property
    def start(self) -> FileStart:
        """What was read so far."""
        return FileStart(self._num_bytes, self._digest.hexdigest())
