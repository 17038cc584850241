"""Files that appear together or not at all, however the command that writes them ends.

A folder that is not there yet is written under a temporary name and renamed. In one that is there, as a mounted volume
is, and on Cloud Storage, which can't rename, files come one by one; while they do, a list of them lies beside them
(`files.UNFINISHED`). Readers refuse files on the list, and whoever holds the folder next deletes them.
"""

import collections.abc
import contextlib
import json
import os
import shutil
import tempfile

from albert_tf.errors import InputError
from albert_tf.file_errors import naming
from albert_tf.files import UNFINISHED, empty, gfile_for, names_in, remove, unfinished_path, write_text
from albert_tf.folder_lock import hold

# What readers of folders look for comes last, the first of these at the very end: those that know nothing of the list
# find nothing before either.
_LAST = ("assets.extra", "model_card.json", "saved_model.pb", "config.json", ".index")


@contextlib.contextmanager
def new_folder(folder: str, flag: str = "output_dir") -> collections.abc.Iterator[str]:
    """Yields an empty local folder to write into, which becomes the folder that is asked for when all went well.

    Raises InputError if the latter holds something, another command writes it, or it can't be written.
    """
    if "://" in folder or os.path.lexists(folder):
        with hold(folder, flag):
            _check_is_empty(folder, flag)
            with files_together(folder) as temporary:
                yield temporary
        return
    temporary = unfinished_path(os.path.abspath(folder))
    with hold(temporary, flag, folder), naming(temporary):
        _check_is_empty(folder, flag)  # another command may have written it in the meantime
        empty(temporary)
        try:
            yield temporary
            os.rename(temporary, folder)
        except BaseException:
            empty(temporary)
            raise


@contextlib.contextmanager
def files_together(folder: str) -> collections.abc.Iterator[str]:
    """Yields an empty local folder; its files move together into another, held by the caller, when all went well."""
    with contextlib.ExitStack() as stack:
        if "://" in folder:
            temporary = stack.enter_context(tempfile.TemporaryDirectory())
        else:
            temporary = unfinished_path(os.path.join(folder, "files"))
            os.mkdir(temporary)
            stack.callback(shutil.rmtree, temporary, ignore_errors=True)
        with naming(temporary):
            yield temporary
            _move_in(temporary, folder)


def _move_in(source, folder):
    names = sorted(os.listdir(source), key=_lateness)
    list_path = os.path.join(folder, UNFINISHED)
    write_text(list_path, json.dumps(names))
    for name in names:
        _move(os.path.join(source, name), os.path.join(folder, name))
    shutil.rmtree(source)
    remove(list_path)


def _move(source, target):
    if "://" not in target:
        os.replace(source, target)
    elif os.path.isdir(source):
        for name in sorted(os.listdir(source), key=_lateness):
            _move(os.path.join(source, name), os.path.join(target, name))
    else:
        gfile = gfile_for(target)
        gfile.makedirs(os.path.dirname(target))
        remove(target)  # not every file system replaces what it copies to
        gfile.copy(source, target)


def _lateness(name):
    return [name.endswith(ending) for ending in _LAST]


def _check_is_empty(folder, flag):
    if names_in(folder) or (gfile_for(folder).exists(folder) and not gfile_for(folder).isdir(folder)):
        raise InputError(f"`{flag}={folder}` holds something already; choose another folder")
