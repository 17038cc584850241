"""Parquet and Arrow files, and folders as the library datasets saves them, written with pyarrow alone."""

import json

import pytest


def write_table(path, columns, is_stream=True, rows_per_group=None, labels=None, **options):
    """Writes a Parquet or Arrow file, by the end of its name.

    Args:
        path: The file.
        columns: Values by column, or a table.
        is_stream: Whether an Arrow file is a stream, as datasets writes them, and not of the format of files.
        rows_per_group: How many rows a row group, or batch, has at most.
        labels: The names of the labels of columns that datasets calls a ClassLabel.
        options: Of pyarrow's writer.

    Returns:
        The path, as text.
    """
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    ipc = pytest.importorskip("pyarrow.ipc")
    table = columns if isinstance(columns, pyarrow.Table) else pyarrow.table(columns)
    if labels is not None:
        features = {name: {"dtype": "string", "_type": "Value"} for name in table.column_names}
        features |= {name: {"names": names, "_type": "ClassLabel"} for name, names in labels.items()}
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    if str(path).endswith(".parquet"):
        parquet.write_table(table, path, row_group_size=rows_per_group, **options)
        return str(path)
    with (ipc.new_stream if is_stream else ipc.new_file)(str(path), table.schema, **options) as writer:
        writer.write_table(table, max_chunksize=rows_per_group)
    return str(path)


def save_dataset(folder, *shards, labels=None):
    """Writes a folder as `Dataset.save_to_disk` does; one of its cache's files is there, too.

    Args:
        folder: The folder.
        shards: Values by column of each file.
        labels: As of `write_table`.
    """
    folder.mkdir(parents=True)
    names = [f"data-{index:05d}-of-{len(shards):05d}.arrow" for index in range(len(shards))]
    for name, columns in zip(names, shards):
        write_table(folder / name, columns, labels=labels)
    write_table(folder / "cache-0123456789abcdef.arrow", {"text": ["from the cache"]})
    state = {"_data_files": [{"filename": name} for name in names], "_fingerprint": "0", "_split": None}
    (folder / "state.json").write_text(json.dumps(state, indent=2))
    (folder / "dataset_info.json").write_text("{}")


def save_splits(folder, labels=None, **splits):
    """Writes a folder as `DatasetDict.save_to_disk` does; of each split there is one file."""
    for name, columns in splits.items():
        save_dataset(folder / name, columns, labels=labels)
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": list(splits)}))
