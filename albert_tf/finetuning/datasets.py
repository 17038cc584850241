"""Data sets for fine-tuning: the names of their files, columns and labels."""

import dataclasses
import os

import tensorflow as tf

from albert_tf.errors import InputError


@dataclasses.dataclass(frozen=True)
class DataFiles:
    """The files of a data set and the meaning of their columns.

    Attributes:
        train: Names that the training file may have.
        dev: Names that the file for evaluation may have.
        test: Names that the file to predict may have.
        text_column: Column of the text.
        text_pair_column: Column of the second text, None if there is none.
        label_column: Column of the label.
        labels: The labels in the order of their ids; None for those of the training file, sorted.
    """

    train: tuple[str, ...] = ("train.tsv",)
    dev: tuple[str, ...] = ("dev.tsv",)
    test: tuple[str, ...] = ("test.tsv", "dev.tsv")
    text_column: str = "document"
    text_pair_column: str | None = None
    label_column: str = "label"
    labels: tuple[str, ...] | None = None


# To add a data set whose files look like this, add a line.
DATASETS = {
    "tsv": DataFiles(),
    "nsmc": DataFiles(
        train=("ratings_train.txt",),
        dev=("ratings_dev.txt", "ratings_test.txt"),
        test=("ratings_test.txt", "ratings_dev.txt"),
        labels=("0", "1"),
    ),
}


def find_file(data_dir: str, names: tuple[str, ...]) -> str:
    """Returns the path of the first name that exists in a folder.

    Raises:
        InputError: None does.
    """
    for name in names:
        path = os.path.join(data_dir, name)
        if tf.io.gfile.exists(path):
            return path
    raise InputError(f"--data_dir={data_dir} has no {' or '.join(names)}")
