"""Open Parquet and Arrow files, read some rows at a time."""

import collections.abc
import io
import typing

from albert_tf.corpus.errors import BadCorpusError

if typing.TYPE_CHECKING:
    import pyarrow

_BYTES_PER_READ = 1 << 18
_ROWS_PER_BATCH = 1024

_MAGIC_OF_ARROW_FILES = b"ARROW1"
_END_OF_ARROW_STREAM = b"\xff\xff\xff\xff\0\0\0\0"


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


class TableFile:
    """An open file, whose path is named in errors.

    Attributes:
        form: What its format is called.
        schema: The columns and their types.
    """

    form: str
    schema: "pyarrow.Schema"

    def __init__(self, file: SeekableFile, path: str):
        self._file, self._path = file, path

    def batches(self, columns: list[str] | None = None) -> collections.abc.Iterator[tuple["pyarrow.RecordBatch", int]]:
        """Yields some rows of columns, or of all, and about how many bytes of the file were read by then.

        Raises:
            BadCorpusError: It isn't a whole file of its format, or two of the columns have one name.
        """
        columns = columns or self.schema.names
        for name in columns:
            if self.schema.names.count(name) > 1:
                raise BadCorpusError(f'{self._path} has two columns "{name}"; give each a different name')
        for batch, position in self._batches(columns):
            for begin in range(0, len(batch), _ROWS_PER_BATCH):
                yield batch.slice(begin, _ROWS_PER_BATCH), position


class ParquetFile(TableFile):
    """A Parquet file, of which pages are read as they are needed."""

    form = "Parquet"

    def __init__(self, file: SeekableFile, path: str):
        import pyarrow.parquet

        super().__init__(file, path)
        # By default pyarrow reads a row group's whole column at once.
        self._parquet = pyarrow.parquet.ParquetFile(file, buffer_size=_BYTES_PER_READ, pre_buffer=False)
        self.schema = self._parquet.schema_arrow

    def _batches(self, columns):
        number = 0
        for batch in self._parquet.iter_batches(_ROWS_PER_BATCH, columns=columns, use_threads=False):
            number += len(batch)
            yield batch, self._file.size * number // self._parquet.metadata.num_rows


class ArrowFile(TableFile):
    """An Arrow file, of which one batch is in memory at a time.

    Both formats are read (https://arrow.apache.org/docs/format/Columnar.html#format-ipc): streams, which `datasets`
    writes, and files, which can be read from their end, too.
    """

    form = "Arrow"

    def __init__(self, file: SeekableFile, path: str):
        import pyarrow.ipc

        super().__init__(file, path)
        self._is_stream = file.read(len(_MAGIC_OF_ARROW_FILES)) != _MAGIC_OF_ARROW_FILES
        file.seek(0)
        self._reader = pyarrow.ipc.open_stream(file) if self._is_stream else pyarrow.ipc.open_file(file)
        self.schema = self._reader.schema

    def _batches(self, columns):
        import pyarrow

        # Whether texts are UTF-8 is the caller's business, row by row.
        as_bytes = {pyarrow.string(): pyarrow.binary(), pyarrow.large_string(): pyarrow.large_binary()}
        for batch, position in self._stream() if self._is_stream else self._indexed():
            # pyarrow takes a damaged file at its word, and would read memory elsewhere: nothing else is done before.
            for column in batch.columns:
                (column.view(as_bytes[column.type]) if column.type in as_bytes else column).validate(full=True)
            yield batch.select(columns), position

    def _indexed(self):
        number = self._reader.num_record_batches
        for index in range(number):
            yield self._reader.get_batch(index), self._file.size * (index + 1) // number

    def _stream(self):
        """Yields what a stream holds, and checks its end; pyarrow takes a file cut between two batches for whole."""
        for batch in self._reader:
            yield batch, self._file.tell()
        position = self._file.tell()
        self._file.seek(position - len(_END_OF_ARROW_STREAM))
        if self._file.read(len(_END_OF_ARROW_STREAM)) != _END_OF_ARROW_STREAM:
            raise BadCorpusError(f"can't read {self._path}: not a whole Arrow file (it ends without a mark of its end)")
        if position != self._file.size:
            raise BadCorpusError(
                f"can't read {self._path}: not one Arrow file (something follows its end, at byte {position:,}); "
                "give each file by itself"
            )
