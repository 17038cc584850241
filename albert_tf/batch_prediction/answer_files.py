"""Files of answers: lines of JSON, or one tab-separated table of them."""

import collections.abc
import json
import typing

from albert_tf.files import gfile_for, replacing, to_json
from albert_tf.rows.row_file import tab_separated

Answer = dict[str, typing.Any]

TABLE_ENDING = ".tsv"


def write_lines(file: typing.BinaryIO, answers: list[Answer]) -> None:
    """Writes answers as lines of JSON."""
    file.write("".join(to_json(answer) + "\n" for answer in answers).encode("utf-8"))


def read_answers(path: str) -> collections.abc.Iterator[Answer]:
    """Yields the answers of a file of JSON lines."""
    with gfile_for(path).GFile(path, "rb") as file:
        yield from map(json.loads, file)


def write_table(path: str, answers_file: str) -> None:
    """Writes answers, lines of JSON in `answers_file`, as a table with a header.

    There is a column for each name that an answer has, in the order in which they come, `a.b` for b of the object a;
    it is empty where an answer has none.
    """
    with replacing(path) as output:
        columns = list(dict.fromkeys(name for answer in read_answers(answers_file) for name in _flat(answer)))
        output.write(tab_separated(columns).encode())
        for answer in read_answers(answers_file):
            values = _flat(answer)
            output.write(tab_separated([values.get(name, "") for name in columns]).encode())


def _flat(answer, prefix=""):
    """Returns an answer's values by column, as text; what is neither text nor a number is written as in JSON."""
    values = {}
    for name, value in answer.items():
        if isinstance(value, dict):
            values |= _flat(value, f"{prefix}{name}.")
        else:
            values[prefix + name] = value if isinstance(value, str) else to_json(value)
    return values
