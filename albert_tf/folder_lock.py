"""One command at a time writes into a folder.

The lock is on the folder itself (flock takes directories too), so that there is no lock file to make and clear away,
and the system drops it with the process, however that ends. It keeps the commands of one machine apart, whatever the
folder lies on. It doesn't hold across machines, and so neither on "gs://..." nor between users of one NFS folder: there
two commands must not be started at once. Only training notices it (`albert_tf.training.run_folder.held_folder`).
"""

import collections.abc
import contextlib
import fcntl
import os
import re
import sys
import threading

from albert_tf.errors import InputError
from albert_tf.file_errors import file_errors, reason_of
from albert_tf.files import UNFINISHED, gfile_for, name_in_folder, names_in, remove, unfinished_files, unfinished_path

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
