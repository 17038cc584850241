"""What readers of Parquet and Arrow files share: the file as pyarrow wants it, and a check of the names of columns."""

import collections.abc
import io
import typing

from albert_tf.corpus.errors import BadCorpusError


class SeekableFile(io.IOBase):
    """A GFile with the methods that pyarrow calls and GFile lacks.

    A damaged file may say that a part of it has any number of bytes; no more are asked for than there are.

    Attributes:
        size: How many bytes the file has.
    """

    def __init__(self, file: typing.BinaryIO):
        self._file, self.seek, self.tell = file, file.seek, file.tell
        file.seek(0, io.SEEK_END)
        self.size = file.tell()
        file.seek(0)

    def read(self, size: int = -1) -> bytes:
        """Returns the next bytes, at most `size`, all of them if that is negative."""
        rest = max(0, self.size - self.tell())
        return self._file.read(rest if size < 0 else min(size, rest))

    def readable(self) -> bool:
        """Returns True."""
        return True


def check_names(path: str, names: collections.abc.Sequence[str], columns: list[str] | None) -> None:
    """Checks that each of the columns, by default of all, has a name of its own.

    Raises:
        BadCorpusError: Two have one name.
    """
    for name in columns or names:
        if names.count(name) > 1:
            raise BadCorpusError(f'{path} has two columns "{name}"; give each a name of its own')
