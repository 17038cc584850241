"""Folders that the library `datasets` has saved (`save_to_disk`)."""

import os

from albert_tf.errors import InputError, first_line, with_extra
from albert_tf.files import gfile_for

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
