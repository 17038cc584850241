"""Folders that are held by one process, and that are written whole or not at all."""

import collections.abc
import contextlib
import fcntl
import json
import os
import re
import shutil
import sys
import tempfile
import threading

from albert_tf.base.errors import InputError, file_errors, naming, reason_of
from albert_tf.base.files import (
    UNFINISHED,
    empty,
    gfile_for,
    name_in_folder,
    names_in,
    remove,
    unfinished_files,
    unfinished_path,
    write_text,
)

# One command at a time writes into a folder.
#
# The lock is on the folder itself (flock takes directories too), so that there is no lock file to make and clear
# away, and the system drops it with the process, however that ends. It keeps the commands of one machine apart,
# whatever the folder lies on. It doesn't hold across machines, and so neither on "gs://..." nor between users of
# one NFS folder: there two commands must not be started at once. Only training notices it
# (`albert_tf.training.run_folder.held_folder`).

_held_by_thread = threading.local()


@contextlib.contextmanager
def hold(
    folder: str | os.PathLike, flag: str = "output_dir", shown_as: str | None = None
) -> collections.abc.Iterator[None]:
    """Keeps other commands from writing into a folder; nobody is kept away from one on "gs://...".

    The folder is made if it is not there, and removed again if it stays empty. Half-written files of commands that were
    killed are deleted. A thread that holds the folder may hold it again. Errors name the flag, and the folder as
    `shown_as`: InputError if another command holds it, or it can't be written to.
    """
    folder = os.fspath(folder).rstrip("/") or ("/" if folder else ".")
    is_local = "://" not in folder
    name, shown_as = os.path.realpath(folder) if is_local else folder, shown_as or folder
    held = _held_by_thread.__dict__.setdefault("folders", set())
    if name in held:
        yield
        return
    with contextlib.ExitStack() as stack:
        try:
            if is_local:
                stack.enter_context(_locked(folder, shown_as))
            _check_can_write(folder)
            _clear(folder)
        except file_errors() as error:
            raise InputError(
                f"`{flag}={shown_as}` can't be written to ({reason_of(error)}); name another folder"
            ) from error
        held.add(name)
        stack.callback(held.discard, name)
        yield


@contextlib.contextmanager
def _locked(folder, name):
    """Makes a folder, with those above it, and locks it; removes those that it made and that are empty in the end."""
    made, above = [], os.path.dirname(folder)
    while above and not os.path.lexists(above):
        made.append(above)
        above = os.path.dirname(above)
    descriptor, tries_left = None, 1000
    while descriptor is None:  # other commands may make or remove it, and those above it, at this moment
        try:
            os.makedirs(os.path.dirname(folder) or ".", exist_ok=True)
            os.mkdir(folder)
            made.insert(0, folder)
        except (FileExistsError, FileNotFoundError):
            tries_left -= 1
            if not tries_left:  # nothing can be made there, as in /proc
                raise
        # Whoever doesn't get the lock removes nothing: another command has it, and may be about to write.
        descriptor = _try_to_lock(folder, name)
    try:
        yield
    finally:
        for each in made:
            with contextlib.suppress(OSError):  # something is in it
                os.rmdir(each)
        os.close(descriptor)


def _try_to_lock(folder, name):
    """Returns the descriptor that holds the lock; None if the folder is another by now, or gone."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        if os.path.islink(folder):  # to nowhere
            raise
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        advice = "wait until that has ended, stop it (fuser -v shows its process), or choose another folder"
        raise InputError(f"{name} is in use by another command; {advice}") from error
    except OSError as error:  # as clusters' file systems answer that were mounted without locks
        print(
            f"warning: {name} can't be locked ({error.strerror}); don't run another command in it meanwhile",
            file=sys.stderr,
        )
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(descriptor), os.stat(folder)):
            return descriptor
    os.close(descriptor)
    return None


def _check_can_write(folder):
    gfile, probe = gfile_for(folder), unfinished_path(os.path.join(folder, "probe"))
    try:
        with gfile.GFile(probe, "w") as file:
            file.write("can it be written?")
    finally:
        with contextlib.suppress(*file_errors()):
            gfile.remove(probe)


def _clear(folder):
    """Deletes half-written files and folders, but not those that other commands are writing at this moment."""
    list_path, names = os.path.join(folder, UNFINISHED), names_in(folder)
    if UNFINISHED in names:
        for name in unfinished_files(folder):
            remove(name_in_folder(folder, name, list_path))
        remove(list_path)
    for name in names:
        if re.fullmatch(rf"\..+{re.escape(UNFINISHED)}", name):
            path = os.path.join(folder, name)
            with contextlib.suppress(InputError), contextlib.ExitStack() as stack:
                if "://" not in path and os.path.isdir(path):
                    stack.enter_context(_locked(path, path))
                remove(path)


# Files that appear together or not at all, however the command that writes them ends.
#
# A folder that is not there yet is written under a temporary name and renamed. In one that is there, as a mounted
# volume is, and on Cloud Storage, which can't rename, files come one by one; while they do, a list of them lies
# beside them (`files.UNFINISHED`). Readers refuse files on the list, and whoever holds the folder next deletes
# them.

# What readers of folders look for comes last, the first of these at the very end: those that know nothing of the list
# find nothing before either.
_LAST = ("assets.extra", "model_card.json", "saved_model.pb", "config.json", ".index")


@contextlib.contextmanager
def new_folder(folder: str) -> collections.abc.Iterator[str]:
    """Yields an empty local folder to write into, which becomes the folder that is asked for when all went well.

    Raises InputError if the latter holds something, another command writes it, or it can't be written.
    """
    if "://" in folder or os.path.lexists(folder):
        with hold(folder):
            _check_is_empty(folder)
            with files_together(folder) as temporary:
                yield temporary
        return
    temporary = unfinished_path(os.path.abspath(folder))
    with hold(temporary, shown_as=folder), naming(temporary):
        _check_is_empty(folder)  # another command may have written it in the meantime
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


def _check_is_empty(folder):
    if names_in(folder) or (gfile_for(folder).exists(folder) and not gfile_for(folder).isdir(folder)):
        raise InputError(f"`output_dir={folder}` holds something already; choose another folder")
