"""Errors of the operating system about files: which they are, what they say, and what to do about each, in a sentence.

TensorFlow's own file system raises errors of its own, with the system's words in their messages. Nothing here imports
TensorFlow by itself.
"""

import collections.abc
import contextlib
import errno
import os
import re
import sys

from albert_tf.errors import first_line

_OTHER_PLACE = "choose another place, or mend its rights"
_SPACE = "free some space, or choose another place"
_PATH = "put the path right"
_LIMIT = "allow more open files, as by ulimit -n 4096"
_DISK = "see to the disk, or choose another place"
_ADVICE = {
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EFBIG: "allow larger files (ulimit -f), or choose another place",
    errno.EROFS: _OTHER_PLACE,
    errno.EACCES: _OTHER_PLACE,
    errno.EPERM: _OTHER_PLACE,
    errno.ENOENT: _PATH,
    errno.ENOTDIR: _PATH,
    errno.EISDIR: _PATH,
    errno.EEXIST: _PATH,
    errno.ENOTEMPTY: _PATH,
    errno.ELOOP: _PATH,
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EMFILE: _LIMIT,
    errno.ENFILE: _LIMIT,
    errno.EBUSY: _DISK,
    errno.EIO: _DISK,
    errno.ENXIO: _DISK,
    errno.ENODEV: _DISK,
    errno.ESTALE: _DISK,
    errno.ETIMEDOUT: _DISK,
}
_REASONS = {os.strerror(code): code for code in _ADVICE}
# As TensorFlow spells them: "/data/a; No space left on device", behind the name of an operation, if one of them failed.
_OF_TENSORFLOW = re.compile(rf"(?:\{{\{{[^}}]*\}}\}} )?([^\n;]*); ({'|'.join(map(re.escape, _REASONS))})")


def file_errors() -> tuple[type[Exception], ...]:
    """Returns what functions of `albert_tf.files.gfile_for` raise where a file can't be read or written."""
    tf = sys.modules.get("tensorflow")
    return (OSError,) if tf is None else (OSError, tf.errors.OpError)


def reason_of(error: Exception) -> str:
    """Returns why a file can't be read or written, given one of `file_errors`."""
    if type(error).__name__ in ("FileNotFoundError", "NotFoundError"):
        return "no such file"
    return getattr(error, "message", None) or getattr(error, "strerror", None) or str(error)


def describe_file_error(error: BaseException) -> str | None:
    """Returns in a sentence which file an error of the operating system is about, what it says, and what to do.

    Args:
        error: Any. Of TensorFlow's errors, those are the system's whose message gives the system's reason, or is about
            a file elsewhere ("gs://...").

    Returns:
        None if the error is of another kind.
    """
    if not isinstance(error, file_errors()):
        return None
    if isinstance(error, OSError):
        path, code = error.filename2 or error.filename, error.errno
        if code not in _ADVICE:
            return None
    else:
        found = _OF_TENSORFLOW.search(error.message)
        if found is None:
            return f"{first_line(error)}; see to that and repeat the command" if "://" in error.message else None
        path, code = found[1].strip(), _REASONS[found[2]]
    what = f"can't read or write {os.fsdecode(path)}" if isinstance(path, str | bytes) else "can't read or write a file"
    return f"{what}: {os.strerror(code)}; {_ADVICE[code]}, and repeat the command"


@contextlib.contextmanager
def naming(path: str) -> collections.abc.Iterator[None]:
    """Lets the system's errors, which don't always say which file they are about, name one."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or path
        raise
