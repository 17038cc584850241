"""The one error type for input that a user can correct."""


class InputError(ValueError):
    """A file, flag or setting is wrong; the message is one sentence that says which and what to do.

    Scripts print the message without a traceback and exit with code 1 (`albert_tf.cli.app`).
    """
