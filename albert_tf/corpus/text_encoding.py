"""Decoding UTF-8, with an error that names the encoding where the bytes look like another one."""

from albert_tf.corpus.errors import BadLineError
from albert_tf.text_encoding import describe_not_utf8


def decode(line: bytes, errors: str) -> str:
    """Decodes UTF-8.

    Args:
        line: The bytes.
        errors: As for `bytes.decode`.

    Raises:
        BadLineError: The bytes are not UTF-8 and `errors` is "strict".
    """
    try:
        return line.decode("utf-8", errors)
    except UnicodeDecodeError as error:
        raise BadLineError(describe_not_utf8(line, "the file")) from error
