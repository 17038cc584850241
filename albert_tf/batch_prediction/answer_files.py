"""Files of answers: lines of JSON, part by part and put together, or one tab-separated table of all of them."""

import collections.abc
import json
import typing

from albert_tf.files import gfile_for, replacing

Answer = dict[str, typing.Any]

TABLE_ENDING = ".tsv"

_BYTES_PER_COPY = 1 << 22
# A table has a line a row.
_SPACES = str.maketrans("\t\n\r", "   ")


def write_part(path: str, answers: list[Answer]) -> None:
    """Writes answers as lines of JSON."""
    with replacing(path) as file:
        file.write("".join(json.dumps(answer, ensure_ascii=False) + "\n" for answer in answers).encode("utf-8"))


def read_answers(paths: list[str]) -> collections.abc.Iterator[Answer]:
    """Yields the answers of several parts."""
    for path in paths:
        with gfile_for(path).GFile(path, "rb") as file:
            yield from map(json.loads, file.read().splitlines())


def write_answers(output_file: str, paths: list[str], as_table: bool = False) -> None:
    """Puts the parts of answers together.

    Args:
        output_file: The file to write.
        paths: The parts.
        as_table: Whether to write a table with a header: a column for each name that an answer has, in the order in
            which they come, `a.b` for b of the object a; empty where an answer has none.
    """
    with replacing(output_file) as output:
        if as_table:
            columns = list(dict.fromkeys(name for answer in read_answers(paths) for name in _flat(answer)))
            output.write(_line(columns))
            for answer in read_answers(paths):
                values = _flat(answer)
                output.write(_line([values.get(name, "") for name in columns]))
            return
        for path in paths:
            with gfile_for(path).GFile(path, "rb") as file:
                while content := file.read(_BYTES_PER_COPY):
                    output.write(content)


def _flat(answer, prefix=""):
    """Returns an answer's values by column, as text; what is neither text nor a number is written as in JSON."""
    values = {}
    for name, value in answer.items():
        if isinstance(value, dict):
            values |= _flat(value, f"{prefix}{name}.")
        else:
            values[prefix + name] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return values


def _line(values):
    return ("\t".join(value.translate(_SPACES) for value in values) + "\n").encode("utf-8")
