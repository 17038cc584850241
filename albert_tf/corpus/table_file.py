"""Open Parquet and Arrow files, read some rows at a time."""

import collections.abc
import io
import itertools
import typing

import numpy as np

from albert_tf.corpus.errors import BadCorpusError
from albert_tf.errors import shorten
from albert_tf.saved_datasets import import_datasets

if typing.TYPE_CHECKING:
    import pyarrow

_BYTES_PER_READ = 1 << 18
_ROWS_PER_BATCH = 1024
# What the texts of a batch may take: a file can repeat a long one in few bytes.
_BYTES_PER_BATCH = 1 << 26
_MOST_UNPACKED, _FEWEST_ROWS = 1000, 16


class SeekableFile(io.IOBase):
    """A GFile with the methods that pyarrow calls and GFile lacks; it never asks for more than its `size` of bytes."""

    def __init__(self, file: typing.BinaryIO):
        self._file, self.seek, self.tell = file, file.seek, file.tell
        file.seek(0, io.SEEK_END)
        self.size = file.tell()
        file.seek(0)

    def read(self, size: int = -1) -> bytes:
        """Returns the next bytes, at most `size`, or all if that is negative."""
        rest = max(0, self.size - self.tell())
        return self._file.read(rest if size < 0 else min(size, rest))

    def readable(self) -> bool:
        return True


class TableFile:
    """An open Parquet file, whose pages are read as they are needed, or an Arrow file that `datasets` has saved."""

    schema: "pyarrow.Schema"

    def __init__(self, file: SeekableFile, path: str):
        self._file, self._path = file, path
        if path.endswith(".arrow"):
            table = import_datasets(path).Dataset.from_file(path).data
            self.form, self.schema, self._num_rows = "Arrow", table.schema, table.num_rows
            self._read = lambda columns: table.select(columns).to_batches(_ROWS_PER_BATCH)
        else:
            import pyarrow.parquet

            metadata = pyarrow.parquet.read_metadata(file)
            self.form, self.schema, self._num_rows = "Parquet", metadata.schema.to_arrow_schema(), metadata.num_rows
            texts, num_rows = _reading_in_bounds(metadata, path)
            # By default pyarrow reads a row group's whole column at once.
            parquet = pyarrow.parquet.ParquetFile(
                file, metadata=metadata, read_dictionary=texts, buffer_size=_BYTES_PER_READ, pre_buffer=False
            )
            self._read = lambda columns: itertools.chain.from_iterable(
                map(_decoded, parquet.iter_batches(num_rows, columns=columns, use_threads=False))
            )

    def batches(self, columns: list[str] | None = None) -> collections.abc.Iterator[tuple["pyarrow.RecordBatch", int]]:
        """Yields rows, and about how many bytes were read; raises BadCorpusError if two columns have one name."""
        columns = columns or self.schema.names
        for name in columns:
            if self.schema.names.count(name) > 1:
                raise BadCorpusError(f'{self._path} has two columns "{name}"; give each a different name')
        number = 0
        for batch in self._read(columns):
            number += len(batch)
            yield batch, self._file.size * number // self._num_rows


def _reading_in_bounds(metadata, path):
    """Returns which columns to read as dictionaries, and how many rows at a time, so that no batch fills the memory.

    A text that a file stores once takes its full size in every row that repeats it. Columns read as dictionaries are
    decoded in parts; where pyarrow can't leave a text coded, fewer rows are read.
    """
    coded, others, sizes = set(), set(), {}
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            name, size = column.path_in_schema, column.total_uncompressed_size
            if size > max(_BYTES_PER_BATCH, _MOST_UNPACKED * column.total_compressed_size):
                raise BadCorpusError(
                    f"{path}: the column {shorten(name)} unpacks to more than {_MOST_UNPACKED:,} times its size; the "
                    "file is damaged, or made to fill the memory"
                )
            repeats = column.has_dictionary_page or "DELTA_BYTE_ARRAY" in column.encodings
            is_small = column.physical_type == "BYTE_ARRAY" and repeats and size <= _BYTES_PER_BATCH
            can_stay_coded = is_small and column.has_dictionary_page and name in metadata.schema.names
            (coded if can_stay_coded else others).add(name)
            if is_small:
                sizes[name] = max(size, sizes.get(name, 1))
    coded -= others
    largest = max((size for name, size in sizes.items() if name not in coded), default=1)
    return sorted(coded), max(_FEWEST_ROWS, min(_ROWS_PER_BATCH, _BYTES_PER_BATCH // largest))


def _decoded(batch):
    """Yields a batch with its dictionaries decoded, in parts of at most `_BYTES_PER_BATCH`, or of one row."""
    import pyarrow

    is_coded = [pyarrow.types.is_dictionary(column.type) for column in batch.columns]
    sizes = sum(_sizes(column) for column, coded in zip(batch.columns, is_coded) if coded)
    ends = np.cumsum(np.broadcast_to(sizes, [len(batch)]), dtype=np.int64)
    begin = 0
    while begin < len(batch):
        before = ends[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + _BYTES_PER_BATCH, side="right")))
        part = batch.slice(begin, end - begin)
        columns = [column.dictionary_decode() if coded else column for column, coded in zip(part.columns, is_coded)]
        yield pyarrow.RecordBatch.from_arrays(columns, names=batch.schema.names)
        begin = end


def _sizes(column):
    """Returns how many bytes the text of each row has, int [N]; 0 for null."""
    import pyarrow.compute

    lengths = pyarrow.compute.binary_length(column.dictionary).take(column.indices)
    return lengths.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
