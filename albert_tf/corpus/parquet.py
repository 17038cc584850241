"""A column of a Parquet file, row by row, in bounded memory."""

import collections.abc
import io

import tensorflow as tf

from albert_tf.corpus.errors import BadCorpusError
from albert_tf.errors import InputError, first_line, with_extra

_BYTES_PER_READ = 1 << 18
_ROWS_PER_BATCH = 128


def read_column(file: tf.io.gfile.GFile, path: str, name: str) -> collections.abc.Iterator[tuple[bytes | None, int]]:
    """Yields every value of a column of text, and how far into the file it lies.

    Args:
        file: The open file.
        path: Its path; named in errors.
        name: The column.

    Yields:
        The value as bytes, which may be invalid UTF-8, or None for null; and about how many bytes of the file, as it
        is stored, were read up to there.

    Raises:
        BadCorpusError: The file isn't a whole Parquet file, or has no such column of text.
        InputError: pyarrow is not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(
            f"reading {path} needs pyarrow, which is not installed; pip install {with_extra('parquet')}"
        ) from error
    try:
        # By default pyarrow reads a row group's whole column at once.
        parquet = pyarrow.parquet.ParquetFile(_SeekableFile(file), buffer_size=_BYTES_PER_READ, pre_buffer=False)
        _check_column(parquet.schema_arrow, path, name, pyarrow.types)
        number, num_rows, file_size = 0, parquet.metadata.num_rows, file.size()
        for batch in parquet.iter_batches(_ROWS_PER_BATCH, columns=[name], use_threads=False):
            # pyarrow doesn't check that strings are valid UTF-8, so take the bytes and let the caller decode them.
            texts = batch.column(name).cast(pyarrow.large_string()).cast(pyarrow.large_binary())
            for text in texts.to_pylist():
                number += 1
                yield text, file_size * number // num_rows
    except (pyarrow.ArrowException, OSError) as error:
        raise BadCorpusError(f"can't read {path}: not a whole Parquet file ({first_line(error)})") from error


def _check_column(schema, path, name, types):
    if name not in schema.names:
        names = ", ".join(schema.names)
        raise BadCorpusError(f'{path} has no column "{name}"; name one of {names} by --text_field')
    column_type = schema.field(name).type
    value_type = column_type.value_type if types.is_dictionary(column_type) else column_type
    if not any(is_text(value_type) for is_text in (types.is_string, types.is_large_string, types.is_string_view)):
        raise BadCorpusError(
            f'{path}: column "{name}" holds {column_type}, not text; name a column of strings by --text_field'
        )


class _SeekableFile(io.IOBase):
    """A GFile with the methods that pyarrow calls and GFile lacks."""

    def __init__(self, file):
        self._file = file

    def readable(self):
        return True

    def read(self, size):
        return self._file.read(size)

    def seek(self, offset, whence=io.SEEK_SET):
        self._file.seek(offset, whence)
        return self.tell()

    def tell(self):
        return self._file.tell()
