"""Open Parquet files, and those of folders that `datasets` has saved, read some rows at a time."""

import collections.abc
import io
import typing

from albert_tf.corpus.errors import BadCorpusError
from albert_tf.saved_datasets import import_datasets

if typing.TYPE_CHECKING:
    import pyarrow

_BYTES_PER_READ = 1 << 18
_ROWS_PER_BATCH = 1024


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
    """An open Parquet file, of which pages are read as they are needed, or an Arrow file that `datasets` has saved.

    Attributes:
        form: What its format is called.
        schema: The columns and their types.
    """

    schema: "pyarrow.Schema"

    def __init__(self, file: SeekableFile, path: str):
        self._file, self._path = file, path
        if path.endswith(".arrow"):
            table = import_datasets(path).Dataset.from_file(path).data
            self.form, self.schema, self._num_rows = "Arrow", table.schema, table.num_rows
            self._read = lambda columns: table.select(columns).to_batches(_ROWS_PER_BATCH)
        else:
            import pyarrow.parquet

            # By default pyarrow reads a row group's whole column at once.
            parquet = pyarrow.parquet.ParquetFile(file, buffer_size=_BYTES_PER_READ, pre_buffer=False)
            self.form, self.schema, self._num_rows = "Parquet", parquet.schema_arrow, parquet.metadata.num_rows
            self._read = lambda columns: parquet.iter_batches(_ROWS_PER_BATCH, columns=columns, use_threads=False)

    def batches(self, columns: list[str] | None = None) -> collections.abc.Iterator[tuple["pyarrow.RecordBatch", int]]:
        """Yields some rows of columns, or of all, and about how many bytes of the file were read by then.

        Raises:
            BadCorpusError: Two of the columns have one name.
        """
        columns = columns or self.schema.names
        for name in columns:
            if self.schema.names.count(name) > 1:
                raise BadCorpusError(f'{self._path} has two columns "{name}"; give each a different name')
        number = 0
        for batch in self._read(columns):
            number += len(batch)
            yield batch, self._file.size * number // self._num_rows
