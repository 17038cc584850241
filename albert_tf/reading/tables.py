"""Files of tables, recognized by the ends of their names: their columns, texts, and the names of their labels."""

import collections.abc
import contextlib
import io
import itertools
import json
import os
import typing

import numpy as np

from albert_tf.base.errors import InputError, first_line, listed, shorten, with_extra
from albert_tf.base.files import gfile_for, reading
from albert_tf.reading.blocks import BadCorpusError
from albert_tf.reading.values import columns_of

# Folders that the library `datasets` has saved (`save_to_disk`).

TRAIN_SPLIT = "train"


def is_saved(folder: str) -> bool:
    return any(gfile_for(folder).exists(os.path.join(folder, name)) for name in ("state.json", "dataset_dict.json"))


def import_datasets(path: str):
    try:
        import datasets
    except ImportError as error:
        raise InputError(
            f"{path} was saved by the library datasets, which is not installed; pip install "
            f"{with_extra('datasets')}, or write Parquet files"
        ) from error
    return datasets


def saved_splits(folder: str) -> dict[str, tuple[str, ...]]:
    """Returns the Arrow files of each split of such a folder, by name; those of a Dataset as the split train."""
    datasets = import_datasets(folder)
    try:
        loaded = datasets.load_from_disk(folder, keep_in_memory=False)
    except Exception as error:  # whatever is wrong with the folder
        raise InputError(f"datasets can't load {folder} ({first_line(error)}); copy or save it again") from error
    splits = loaded if isinstance(loaded, dict) else {TRAIN_SPLIT: loaded}
    return {name: tuple(file["filename"] for file in split.cache_files) for name, split in splits.items()}


# Open Parquet and Arrow files, read some rows at a time.

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


# Of Arrow those files alone are read that datasets has saved in a folder.
TABLE_ENDINGS = _, _ARROW = ".parquet", ".arrow"


@contextlib.contextmanager
def open_table(path: str) -> collections.abc.Iterator[TableFile]:
    """Opens a file whose name ends in one of `TABLE_ENDINGS`.

    Raises BadCorpusError if it isn't whole, and InputError if it can't be read, pyarrow is not installed, or it is an
    Arrow file outside a folder of `datasets`.
    """
    folder, name = os.path.split(path)
    if path.endswith(_ARROW) and (name.startswith("cache-") or not is_saved(folder)):
        raise InputError(
            f"{path} is a part or the cache of a data set; name the folder that datasets saved, or save it as Parquet"
        )
    try:
        import pyarrow
    except ImportError as error:
        raise InputError(
            f"reading {path} needs pyarrow, which is not installed; pip install {with_extra('parquet')}"
        ) from error
    with reading(path) as file:
        try:
            yield TableFile(SeekableFile(file), path)
        except (pyarrow.ArrowException, OSError, OverflowError, UnicodeDecodeError) as error:
            form = "Arrow" if path.endswith(_ARROW) else "Parquet"
            raise BadCorpusError(f"can't read {path}: not a whole {form} file ({first_line(error)})") from error


def read_texts(path: str, text_field: str) -> collections.abc.Iterator[tuple[bytes | None, int]]:
    """Yields the text of every row, None for null, and about how many bytes of the file were read by then.

    Texts are bytes, which may be invalid UTF-8. Those of several columns follow one another, each on lines of its own,
    without nulls. Raises BadCorpusError if there is no such column, and the errors of `open_table`.
    """
    with open_table(path) as table:
        import pyarrow

        names = list(columns_of(text_field, table.schema.names))
        for name in names:
            _check_column(table.schema, path, name, pyarrow.types, may_be_null=len(names) > 1)
        for batch, position in table.batches(names):
            # pyarrow doesn't check that strings are valid UTF-8, so take the bytes and let the caller decode them.
            columns = (batch.column(name).cast(pyarrow.large_string()) for name in names)
            # Nothing here keeps the values of a batch while the next one is read.
            for values in zip(*(column.cast(pyarrow.large_binary()).to_pylist() for column in columns)):
                texts = [text for text in values if text is not None]
                yield b"\n".join(texts) if texts else None, position


def label_names(table: TableFile, path: str) -> dict[str, tuple[str, ...]]:
    """Returns, by column, the label names of what `datasets` calls a ClassLabel, or a list of them; -1 is no label."""
    content = (table.schema.metadata or {}).get(b"huggingface")
    if content is None:
        return {}
    try:
        features = json.loads(content)["info"].get("features") or {}
        labels = {column: _of_each(feature) for column, feature in features.items()}
        found = {
            column: tuple(feature["names"])
            for column, feature in labels.items()
            if isinstance(feature, dict) and feature.get("_type") == "ClassLabel"
        }
        if all(isinstance(name, str) for name in itertools.chain(*found.values())):
            return found
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        pass
    raise BadCorpusError(
        f"{path}: the names of labels that datasets has written into it can't be read; write the file again"
    )


def _of_each(feature):
    """Returns the feature of a list's elements, as any version of `datasets` has written it; others as they are."""
    if isinstance(feature, list) and len(feature) == 1:
        return feature[0]
    is_list = isinstance(feature, dict) and feature.get("_type") in ("List", "LargeList", "Sequence")
    return feature.get("feature") if is_list else feature


def _check_column(schema, path, name, types, may_be_null):
    if name not in schema.names:
        raise BadCorpusError(f'{path} has no column "{name}"; name one of {listed(schema.names)} with `text_field`')
    column_type = schema.types[schema.names.index(name)]
    value_type = column_type.value_type if types.is_dictionary(column_type) else column_type
    if may_be_null and types.is_null(value_type):
        return
    if not any(is_text(value_type) for is_text in (types.is_string, types.is_large_string, types.is_string_view)):
        raise BadCorpusError(
            f'{path}: column "{name}" holds {shorten(column_type)}, not text; name a column of strings with '
            "`text_field`"
        )
