"""Files of tables, recognized by the ends of their names: their columns, texts, and the names of their labels."""

import collections.abc
import contextlib
import itertools
import json
import os

from albert_tf.corpus.errors import BadCorpusError
from albert_tf.corpus.table_file import SeekableFile, TableFile
from albert_tf.errors import InputError, first_line, listed, shorten, with_extra
from albert_tf.files import reading
from albert_tf.saved_datasets import is_saved
from albert_tf.text_fields import columns_of

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
