"""Rows of a Parquet file, in memory that its pages and its longest value bound, and not the number of its rows.

A value may be many times as large as what the file holds of it: values are repeated out of a dictionary, and pages are
compressed.
"""

import collections.abc
import re
import typing

from albert_tf.corpus.blocks import refuse_bomb
from albert_tf.corpus.table_file import SeekableFile, check_names

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

    form = "Parquet"

    def __init__(self, file: SeekableFile, path: str):
        import pyarrow.parquet

        self._file, self._path = file, path
        # By default pyarrow reads a row group's whole column at once.
        self._parquet = pyarrow.parquet.ParquetFile(self._file, buffer_size=_BYTES_PER_READ, pre_buffer=False)
        self.schema: pyarrow.Schema = self._parquet.schema_arrow

    def batches(self, columns: list[str] | None = None) -> collections.abc.Iterator[tuple["pyarrow.RecordBatch", int]]:
        """Yields some rows of columns, or of all, and about how many bytes of the file were read by then.

        Raises:
            BadCorpusError: It isn't a whole Parquet file, holds far more than its size says, or two of the columns have
                one name.
        """
        check_names(self._path, self.schema.names, columns)
        metadata, number = self._parquet.metadata, 0
        for group in range(metadata.num_row_groups):
            num_read, num_rows = self._rows_per_batch(metadata.row_group(group), columns)
            for batch in self._parquet.iter_batches(num_read, [group], columns, use_threads=False):
                for begin in range(0, len(batch), num_rows):
                    part = batch.slice(begin, num_rows)
                    number += len(part)
                    yield part, self._file.size * number // metadata.num_rows

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
