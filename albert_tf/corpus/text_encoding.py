"""Decoding UTF-8, with an error that names the encoding where the bytes look like another one."""

from albert_tf.corpus.errors import BadLineError
from albert_tf.text_encoding import guess_encoding


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
        encoding = guess_encoding(line)
        what = f"not valid UTF-8 but, by its looks, {encoding}" if encoding else "not valid UTF-8"
        how = f" (iconv -f {encoding} -t UTF-8)" if encoding else ""
        raise BadLineError(f"{what}; convert the file{how}") from error
