"""The one error type for input that a user can correct."""


class InputError(ValueError):
    """A file, flag or setting is wrong; the message is one sentence that says which and what to do.

    Scripts print the message without a traceback and exit with code 1 (`albert_tf.cli.app`).
    """


def first_line(error: Exception) -> str:
    """Returns the first line of an error's message that says something, or else the error's type."""
    message = getattr(error, "message", None) or str(error)
    headings = ("Graph execution error:", "Detected at node")
    lines = [line.strip() for line in message.splitlines() if line.strip() and not line.startswith(headings)]
    return lines[0] if lines else type(error).__name__
