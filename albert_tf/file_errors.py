"""Errors of the operating system about files, as sentences that say which file, what is wrong and what to do.

TensorFlow's file system raises errors of its own, with the system's words in their messages. Nothing here imports
TensorFlow by itself.
"""

import collections.abc
import contextlib
import errno
import os
import re
import sys

from albert_tf.errors import first_line

# Errors that name no file and say something else than these are no file's.
_OF_DISKS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_ADVICE = {
    **dict.fromkeys(_OF_DISKS, "free some space there, or choose another place"),
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), "correct its permissions, or choose another place"),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "allow more open files, as by ulimit -n 4096"),
}


def file_errors() -> tuple[type[Exception], ...]:
    """Returns the errors that `albert_tf.files.gfile_for`'s functions raise where a file can't be read or written."""
    tf = sys.modules.get("tensorflow")
    return (OSError,) if tf is None else (OSError, tf.errors.OpError)


def reason_of(error: Exception) -> str:
    """Returns why a file can't be read or written, given one of `file_errors`."""
    if type(error).__name__ in ("FileNotFoundError", "NotFoundError"):
        return "no such file"
    return getattr(error, "message", None) or getattr(error, "strerror", None) or str(error)


def describe_file_error(error: BaseException) -> str | None:
    """Returns a sentence on a system's error about a file: which, what is wrong and what to do; None for others."""
    if not isinstance(error, file_errors()):
        return None
    codes = {os.strerror(code): code for code in errno.errorcode}
    if isinstance(error, OSError):
        if error.errno not in errno.errorcode or (error.filename is None and error.errno not in _OF_DISKS):
            return None
        path, reason = error.filename2 or error.filename, os.strerror(error.errno)  # HDF5 says more than a sentence
    # As TensorFlow spells it: "/data/a; No space left on device", behind an operation's name if that has failed.
    elif found := re.search(rf"(?:\{{\{{.*\}}\}} )?([^\n;]*); ({'|'.join(map(re.escape, codes))})", error.message):
        path, reason = found[1], found[2]
    elif found := re.search(r"^([^\n]*) is not a directory$", error.message, re.MULTILINE):
        path, reason = found[1], os.strerror(errno.ENOTDIR)
    else:
        return f"{first_line(error)}; correct that and repeat the command" if "://" in error.message else None
    what = "a file" if path is None else os.fsdecode(path)
    return f"can't read or write {what} ({reason}); {_ADVICE.get(codes[reason], 'put the path right')}"


@contextlib.contextmanager
def naming(path: str) -> collections.abc.Iterator[None]:
    """Adds the path to the system's errors, which don't always say which file they are about."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or path
        raise
