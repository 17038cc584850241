"""Folders that appear with all of their files or not at all."""

import collections.abc
import contextlib
import os
import shutil
import tempfile

import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.files import check_can_write


def check_is_new(folder: str) -> None:
    """Checks that a folder is not there or is empty, and can be written.

    Raises:
        InputError: It holds something, or can't.
    """
    if tf.io.gfile.exists(folder) and (not tf.io.gfile.isdir(folder) or tf.io.gfile.listdir(folder)):
        raise InputError(f"--output_dir={folder} holds something already; choose another folder")
    check_can_write(folder, "output_dir")


@contextlib.contextmanager
def new_folder(folder: str) -> collections.abc.Iterator[str]:
    """Gives a local folder to write into, and makes it the folder that is asked for when all went well.

    Args:
        folder: Must not be there, or be empty.

    Yields:
        The folder to write into, empty.

    Raises:
        InputError: The folder holds something, or can't be written.
    """
    check_is_new(folder)
    is_local = "://" not in folder
    is_there = is_local and os.path.isdir(folder)
    place = folder if is_there else os.path.dirname(os.path.abspath(folder)) if is_local else None
    if is_local:
        os.makedirs(place, exist_ok=True)
    temporary = tempfile.mkdtemp(prefix=".new-", dir=place)
    try:
        yield temporary
        if is_there:
            # It may be a link or a volume, which nothing else can take the place of.
            for name in _index_last(temporary):
                os.rename(os.path.join(temporary, name), os.path.join(folder, name))
        elif is_local:
            os.chmod(temporary, 0o777 & ~_umask())
            os.rename(temporary, folder)
        else:
            tf.io.gfile.makedirs(folder)
            for name in _index_last(temporary):
                tf.io.gfile.copy(os.path.join(temporary, name), os.path.join(folder, name))
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _umask():
    """Returns which rights new files don't have; there is no other way to ask for it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _index_last(folder):
    """Returns the names of files, that of a checkpoint's index last, so that no half of one is taken for a whole."""
    return sorted(os.listdir(folder), key=lambda name: name.endswith(".index"))
