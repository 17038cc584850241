"""Rows of an Arrow file, in memory that its largest batch bounds, and not the number of its rows.

Both formats are read (https://arrow.apache.org/docs/format/Columnar.html#format-ipc): streams, which `datasets` writes,
and files, which can be read from their end, too.
"""

import collections.abc
import typing

from albert_tf.corpus.blocks import refuse_bomb
from albert_tf.corpus.errors import BadCorpusError
from albert_tf.corpus.table_file import SeekableFile, check_names

if typing.TYPE_CHECKING:
    import pyarrow

_BYTES_PER_BATCH = 1 << 26
_ROWS_PER_BATCH = 1024

_MAGIC_OF_FILES = b"ARROW1"
_END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"


class ArrowReader:
    """An open Arrow file, whose path is named in errors; `schema` says the columns and their types."""

    form = "Arrow"

    def __init__(self, file: SeekableFile, path: str):
        import pyarrow.ipc

        self._file, self._path = file, path
        self._is_stream = file.read(len(_MAGIC_OF_FILES)) != _MAGIC_OF_FILES
        file.seek(0)
        self._reader = pyarrow.ipc.open_stream(file) if self._is_stream else pyarrow.ipc.open_file(file)
        self.schema: pyarrow.Schema = self._reader.schema

    def batches(self, columns: list[str] | None = None) -> collections.abc.Iterator[tuple["pyarrow.RecordBatch", int]]:
        """Yields some rows of columns, or of all, and about how many bytes of the file were read by then.

        Raises:
            BadCorpusError: It isn't a whole Arrow file, holds far more than its size says, or two of the columns have
                one name.
        """
        check_names(self._path, self.schema.names, columns)
        num_bytes = num_rows = 0
        for batch, position in self._record_batches():
            batch = batch.select(columns or self.schema.names)
            # Compressed values are unpacked by now, and nulls take no place at all.
            num_bytes, num_rows = num_bytes + sum(map(_checked_size, batch.columns)), num_rows + len(batch)
            refuse_bomb(self._path, self._file.size, max(num_bytes, num_rows))
            num_rows_per_part = min(map(_rows_that_fit, batch.columns), default=_ROWS_PER_BATCH)
            for begin in range(0, len(batch), num_rows_per_part):
                yield batch.slice(begin, num_rows_per_part), position

    def _record_batches(self):
        if self._is_stream:
            for batch in self._reader:
                yield batch, self._file.tell()
            self._check_end()
        else:
            number = self._reader.num_record_batches
            for index in range(number):
                yield self._reader.get_batch(index), self._file.size * (index + 1) // number

    def _check_end(self):
        """Checks that a stream that has no more batches is whole; pyarrow takes a file cut between two for its end."""
        position = self._file.tell()
        self._file.seek(position - len(_END_OF_STREAM))
        if self._file.read(len(_END_OF_STREAM)) != _END_OF_STREAM:
            raise BadCorpusError(f"can't read {self._path}: not a whole Arrow file (it ends without a mark of its end)")
        if position != self._file.size:
            raise BadCorpusError(
                f"can't read {self._path}: not one Arrow file (something follows its end, at byte {position:,}); "
                "give each file by itself"
            )


def _checked_size(column):
    """Returns how many bytes a column has, and checks that they lie within what was read.

    pyarrow takes a damaged file at its word, and would read memory elsewhere: nothing else is done before.

    Raises:
        pyarrow.ArrowInvalid: It doesn't.
    """
    import pyarrow

    if pyarrow.types.is_dictionary(column.type):
        column.indices.validate(full=True)
        pyarrow.DictionaryArray.from_arrays(column.indices, column.dictionary)  # checks the indices
        _checked_size(column.dictionary)
        return column.indices.nbytes  # many batches may share the values
    # Whether texts are UTF-8 is the caller's business, row by row.
    for is_text, as_bytes in (
        (pyarrow.types.is_string, pyarrow.binary),
        (pyarrow.types.is_large_string, pyarrow.large_binary),
        (pyarrow.types.is_string_view, pyarrow.binary_view),
    ):
        if is_text(column.type):
            column = column.view(as_bytes())
    column.validate(full=True)
    return column.nbytes


def _rows_that_fit(column):
    """Returns how many rows to unpack at once, where one value may be there many times and is stored once."""
    if not any(kind in str(column.type) for kind in ("dictionary", "view", "run_end_encoded")):
        return _ROWS_PER_BATCH
    return max(1, min(_ROWS_PER_BATCH, _BYTES_PER_BATCH // max(1, column.get_total_buffer_size())))
