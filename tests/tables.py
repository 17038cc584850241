"""Parquet files, written with pyarrow alone, and folders that the library datasets saves."""

import json

import pytest


def write_table(path, columns, rows_per_group=None, labels=None, **options):
    """Writes a Parquet file.

    Args:
        path: The file.
        columns: Values by column, or a table.
        rows_per_group: How many rows a row group has at most.
        labels: The names of the labels of columns that datasets calls a ClassLabel.
        options: Of pyarrow's writer.

    Returns:
        The path, as text.
    """
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = columns if isinstance(columns, pyarrow.Table) else pyarrow.table(columns)
    if labels is not None:
        features = {name: {"dtype": "string", "_type": "Value"} for name in table.column_names}
        features |= {name: {"names": names, "_type": "ClassLabel"} for name, names in labels.items()}
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    parquet.write_table(table, path, row_group_size=rows_per_group, **options)
    return str(path)


def save_dataset(folder, columns, labels=None, num_shards=1):
    """Saves a Dataset in some files; columns and labels as of `write_table`."""
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_dict(columns)
    for name, names in (labels or {}).items():
        dataset = dataset.cast_column(name, datasets.ClassLabel(names=names))
    dataset.save_to_disk(folder, num_shards=num_shards)


def save_splits(folder, labels=None, **splits):
    """Saves a DatasetDict, or adds splits to one, columns by the name of the split."""
    for name, columns in splits.items():
        save_dataset(folder / name, columns, labels)
    names = [path.parent.name for path in folder.glob("*/state.json")]
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": names}))
