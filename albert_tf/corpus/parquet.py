"""Rows of a Parquet file, in memory that its pages and its longest value bound, and not the number of its rows.

A value may be many times as large as what the file holds of it: values are repeated out of a dictionary, and pages are
compressed.
"""

import collections.abc
import contextlib
import io
import re
import typing

from albert_tf.corpus.blocks import refuse_bomb
from albert_tf.corpus.errors import BadCorpusError
from albert_tf.errors import InputError, first_line, with_extra
from albert_tf.files import gfile_for, reading

if typing.TYPE_CHECKING:
    import pyarrow

_BYTES_PER_READ = 1 << 18
_BYTES_PER_BATCH = 1 << 26
_ROWS_PER_BATCH = 1024

# How a dictionary's page begins: two integers in Thrift's compact protocol, 2 for its kind, and its size unpacked
# (https://parquet.apache.org/docs/file-format/metadata/).
_DICTIONARY_HEADER = re.compile(rb"\x15\x04\x15([\x80-\xff]{,4}[\x00-\x7f])")


class ParquetReader:
    """An open Parquet file, whose path is named in errors; `schema` says the columns and their types."""

    def __init__(self, file: typing.BinaryIO, path: str):
        import pyarrow.parquet

        self._file, self._path = _SeekableFile(file), path
        # By default pyarrow reads a row group's whole column at once.
        self._parquet = pyarrow.parquet.ParquetFile(self._file, buffer_size=_BYTES_PER_READ, pre_buffer=False)
        self.schema: pyarrow.Schema = self._parquet.schema_arrow

    def batches(self, columns: list[str] | None = None) -> collections.abc.Iterator[tuple["pyarrow.RecordBatch", int]]:
        """Yields some rows of columns, or of all, and about how many bytes of the file were read by then.

        Raises:
            BadCorpusError: It isn't a whole Parquet file, holds far more than its size says, or two of the columns have
                one name.
        """
        for name in columns or self.schema.names:
            if self.schema.names.count(name) > 1:
                raise BadCorpusError(f'{self._path} has two columns "{name}"; give each a name of its own')
        metadata = self._parquet.metadata
        number, file_size = 0, gfile_for(self._path).stat(self._path).length
        for group in range(metadata.num_row_groups):
            num_read, num_rows = self._rows_per_batch(metadata.row_group(group), columns)
            for batch in self._parquet.iter_batches(num_read, [group], columns, use_threads=False):
                for begin in range(0, len(batch), num_rows):
                    part = batch.slice(begin, num_rows)
                    number += len(part)
                    yield part, file_size * number // metadata.num_rows

    def _rows_per_batch(self, group, columns):
        """Returns how many rows to read at once, and how many of them to unpack at once.

        They differ where pyarrow leaves values in their dictionary, and repeats this with each batch.
        """
        types = {name: field.type for name, field in zip(self.schema.names, self.schema)}
        num_read = num_unpacked = _ROWS_PER_BATCH
        for index in range(group.num_columns):
            chunk = group.column(index)
            name = next((each for each in types if f"{chunk.path_in_schema}.".startswith(f"{each}.")), None)
            if columns is None or name in columns:
                num_rows = self._rows_that_fit(chunk, max(group.num_rows, 1))
                num_unpacked = min(num_unpacked, num_rows)
                if not hasattr(types.get(name), "index_type"):
                    num_read = min(num_read, num_rows)
        return num_read, num_unpacked

    def _rows_that_fit(self, chunk, num_rows):
        size, largest = chunk.total_uncompressed_size, 0
        if chunk.physical_type == "BYTE_ARRAY":
            refuse_bomb(self._path, chunk.total_compressed_size, size)
            # Only in a dictionary, or where each is told by what differs from the one before, do values take less than
            # their length.
            largest = size if "DELTA_BYTE_ARRAY" in chunk.encodings else self._dictionary_size(chunk)
        return max(1, _BYTES_PER_BATCH // max(1, size // num_rows, largest * max(1, chunk.num_values // num_rows)))

    def _dictionary_size(self, chunk):
        """Returns how large the dictionary of a column is in a row group, 0 if there is none."""
        self._file.seek(min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset))))
        header = _DICTIONARY_HEADER.match(self._file.read(8))
        return sum((byte & 0x7F) << 7 * place for place, byte in enumerate(header[1])) >> 1 if header else 0


@contextlib.contextmanager
def open_parquet(path: str) -> collections.abc.Iterator[ParquetReader]:
    """Opens a Parquet file.

    Raises:
        BadCorpusError: The file isn't a whole Parquet file.
        InputError: It can't be read, or pyarrow is not installed.
    """
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(
            f"reading {path} needs pyarrow, which is not installed; pip install {with_extra('parquet')}"
        ) from error
    with reading(path) as file:
        try:
            yield ParquetReader(file, path)
        except (pyarrow.ArrowException, OSError) as error:
            raise BadCorpusError(f"can't read {path}: not a whole Parquet file ({first_line(error)})") from error


def read_column(path: str, name: str) -> collections.abc.Iterator[tuple[bytes | None, int]]:
    """Yields every value of a column of text, None for null, and about how many bytes of the file were read by then.

    The values are bytes, which may be invalid UTF-8.

    Raises:
        BadCorpusError: The file isn't a whole Parquet file, or has no such column of text.
        InputError: It can't be read, or pyarrow is not installed.
    """
    with open_parquet(path) as parquet:
        import pyarrow

        _check_column(parquet.schema, path, name, pyarrow.types)
        for batch, position in parquet.batches([name]):
            # pyarrow doesn't check that strings are valid UTF-8, so take the bytes and let the caller decode them.
            for text in batch.column(name).cast(pyarrow.large_string()).cast(pyarrow.large_binary()).to_pylist():
                yield text, position


def _check_column(schema, path, name, types):
    if name not in schema.names:
        names = ", ".join(schema.names)
        raise BadCorpusError(f'{path} has no column "{name}"; name one of {names} by `text_field`')
    column_type = schema.types[schema.names.index(name)]
    value_type = column_type.value_type if types.is_dictionary(column_type) else column_type
    if not any(is_text(value_type) for is_text in (types.is_string, types.is_large_string, types.is_string_view)):
        raise BadCorpusError(
            f'{path}: column "{name}" holds {column_type}, not text; name a column of strings by `text_field`'
        )


class _SeekableFile(io.IOBase):
    """A GFile with the methods that pyarrow calls and GFile lacks."""

    def __init__(self, file):
        self.read, self.seek, self.tell = file.read, file.seek, file.tell

    def readable(self):
        return True
