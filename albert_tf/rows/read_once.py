"""Files that are read once, though a run needs them for several purposes: labels, lengths, and to learn from."""

import collections.abc
import contextlib
import contextvars
import functools

_kept: contextvars.ContextVar[dict | None] = contextvars.ContextVar("kept", default=None)


@contextlib.contextmanager
def reading_once() -> collections.abc.Iterator[None]:
    """Keeps the results of functions that `read_once` decorates, until its end."""
    token = _kept.set({})
    try:
        yield
    finally:
        _kept.reset(token)


def read_once(read: collections.abc.Callable[..., list]) -> collections.abc.Callable[..., list]:
    """Decorates a function that reads a file; within `reading_once`, it reads once for the same arguments."""

    @functools.wraps(read)
    def wrapped(*arguments, **options):
        kept, key = _kept.get(), (read, arguments, tuple(options.items()))
        if kept is None:
            return read(*arguments, **options)
        if key not in kept:
            kept[key] = read(*arguments, **options)
        return list(kept[key])

    return wrapped
