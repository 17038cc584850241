"""Folders that the library `datasets` has saved (`save_to_disk`), and which Arrow files in them are the data.

A folder of a Dataset has a state.json, which names its files in their order; others beside them, as of its cache, are
no data. The folder of a DatasetDict has such a folder for each split.
"""

import os

from albert_tf.errors import InputError
from albert_tf.files import gfile_for, name_in_folder, names_in, read_json

_STATE_FILE, _SPLITS_FILE = "state.json", "dataset_dict.json"


def is_saved_dataset(folder: str) -> bool:
    """Whether a folder is one of a Dataset."""
    return gfile_for(folder).exists(os.path.join(folder, _STATE_FILE))


def is_cache(path: str) -> bool:
    """Whether a file is one that `datasets` keeps beside a data set: what has been made of it, so most of it again."""
    name = os.path.basename(path)
    return name.startswith("cache-") and name.endswith(".arrow")


def saved_files(folder: str) -> tuple[str, ...]:
    """Returns the paths of the Arrow files of a Dataset's folder, in order."""
    state = os.path.join(folder, _STATE_FILE)
    values = read_json(state, "what datasets says of the folder,")
    if any(value for name, value in values.items() if name.startswith("_indices")):
        raise InputError(
            f"{state} picks rows out of the files, as early versions of datasets did; save it with a later one"
        )
    entries = values.get("_data_files")
    are_objects = isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)
    names = [entry.get("filename") for entry in entries] if are_objects else []
    paths = tuple(name_in_folder(folder, name, state) for name in names)
    is_whole = set(names) <= set(names_in(folder)) and len(set(names)) == len(names)
    if not paths or not is_whole or not all(name.endswith(".arrow") for name in names):
        raise InputError(
            f'{state} must name .arrow files of its folder under "_data_files", each once; copy all of the folder, or '
            "save the data set once more"
        )
    return paths


def saved_splits(folder: str) -> list[str]:
    """Returns the names of the splits of a DatasetDict's folder, sorted; none where it is no such folder."""
    if is_saved_dataset(folder):
        return []
    splits = sorted(name for name in names_in(folder) if is_saved_dataset(os.path.join(folder, name)))
    listed = os.path.join(folder, _SPLITS_FILE)
    if not splits and gfile_for(folder).exists(listed):
        raise InputError(f"{listed} belongs to a data set whose splits are missing; copy the whole folder")
    return splits
