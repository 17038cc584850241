"""One kind of error for what a user gave, and sentences for what the system refuses."""

import collections.abc
import contextlib
import errno
import itertools
import os
import re
import shlex
import sys

# What may be done with a row that can't be used: raise an InputError, or leave it out.
ON_BAD_ROW = ("fail", "skip")

_LONGEST_SHOWN, _MOST_LISTED = 100, 50
# As a terminal would show them, or not.
_SPACES = dict.fromkeys(map(ord, "\t\n\r\x0b\x0c\x1b\x1c\x1d\x1e\x85\u2028\u2029"), " ")

_CHECKOUT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class InputError(ValueError):
    """A file or setting is wrong; the message is one sentence that says which and what to do.

    It names settings in backquotes, as `train_batch_size` or `attention=flash`. Commands print it without a traceback,
    with flags for the settings, and exit with code 1.
    """


def describe(value: object) -> str:
    return f"{quote(value)} ({type(value).__name__})"


def quote(value: object) -> str:
    """Returns the beginning of a value as Python writes it."""
    return shorten(repr(value))


def shorten(text: object) -> str:
    """Returns the beginning of a text in one line; messages repeat what a file holds by way of this, or of `quote`."""
    text = str(text).translate(_SPACES)
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."


def listed(names: collections.abc.Iterable[object], most: int = _MOST_LISTED) -> str:
    """Returns names from a file, shortened, with commas between; the first `most` of many."""
    shown = list(map(shorten, itertools.islice(names, most + 1)))
    return ", ".join(shown[:most] + ["..."] * (len(shown) > most))


def first_line(error: Exception) -> str:
    """Returns the first line of an error's message that says something, or else the error's type."""
    message = getattr(error, "message", None) or str(error)
    headings = ("Graph execution error:", "Detected at node")
    lines = [line.strip() for line in message.splitlines() if line.strip() and not line.startswith(headings)]
    return lines[0] if lines else type(error).__name__


def with_extra(extra: str) -> str:
    """Returns the argument of `pip install` for an extra of this library, quoted for a shell."""
    # pip finds no albert_tf elsewhere, and `make demo` does not install it.
    if os.path.exists(os.path.join(_CHECKOUT, "setup.py")):
        return f"-e {shlex.quote(f'{_CHECKOUT}[{extra}]')}"
    return shlex.quote(f"albert_tf[{extra}]")


# Errors of the operating system about files, as sentences that say which file, what is wrong and what to do.
#
# TensorFlow's file system raises errors of its own, with the system's words in their messages. Nothing here imports
# TensorFlow by itself.

# Errors that name no file and say something else than these are no file's.
_OF_DISKS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_ADVICE = {
    **dict.fromkeys(_OF_DISKS, "free some space there, or choose another place"),
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), "correct its permissions, or choose another place"),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "allow more open files, as by ulimit -n 4096"),
}


def file_errors() -> tuple[type[Exception], ...]:
    """Returns the errors that the functions of `files.gfile_for` raise where a file can't be read or written."""
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
