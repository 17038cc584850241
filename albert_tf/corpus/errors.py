"""Errors in the content of a corpus."""

from albert_tf.errors import InputError


class BadCorpusError(InputError):
    """The content of the corpus can't be used; reading it again gives the same error, unlike other `InputError`s."""


class BadLineError(ValueError):
    """A line or row can't be read; the message says why and what to do."""
