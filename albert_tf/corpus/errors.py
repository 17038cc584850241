"""What can be wrong with a corpus."""

from albert_tf.errors import InputError


class BadCorpusError(InputError):
    """The content of the corpus can't be used, so reading it again gives the same error.

    Any other `InputError`, such as one from a file system that can't be reached, may be temporary.
    """


class BadLineError(ValueError):
    """A line or row can't be read; the message says why and what to do."""
