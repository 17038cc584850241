"""Mentions that are marked in the text itself: <이순신:PS>은, as the sentences of KLUE-NER have them.

A sign of less or greater that marks nothing has a backslash before it, and a type is in capital letters, so that
ordinary text, such as the title <킹덤:아신전>, is never taken for a mark, or the other way round.
"""

import re
import typing

from albert_tf.corpus.errors import BadCorpusError
from albert_tf.corpus.formats import CorpusFile
from albert_tf.corpus.long_lines import MAX_CHARACTERS_PER_LINE
from albert_tf.errors import InputError
from albert_tf.rows.lines import read_lines

_SIGN = re.compile(r"\\([<>])|<([^<>\\]+):([A-Z][A-Z0-9_-]*)>|[<>]")

_HOW = "a mention is written <name:TYPE>, the type in capital letters, and a sign that marks none \\< or \\>"


class MarkedText(typing.NamedTuple):
    """A text without its marks.

    Attributes:
        text: What is left.
        spans: Where mentions begin and end in it, in characters, from left to right.
        types: What kind of entity each is said to be.
    """

    text: str
    spans: list[tuple[int, int]]
    types: list[str]


def take_marks_out(line: str) -> MarkedText:
    """Returns a line without the marks, and where they stood.

    Raises:
        BadCorpusError: It holds a sign of less or greater that is no part of a mark; says which.
    """
    parts, spans, types, end, length = [], [], [], 0, 0
    for found in _SIGN.finditer(line):
        sign, name, kind = found.groups()
        if sign is None and (name is None or not name.strip()):
            raise BadCorpusError(f"{line[found.start() : found.start() + 20]!r} is no mark; {_HOW}")
        before, kept = line[end : found.start()], sign or name
        length += len(before)
        if name is not None:
            spans.append((length, length + len(name)))
            types.append(kind)
        parts += [before, kept]
        length += len(kept)
        end = found.end()
    return MarkedText("".join([*parts, line[end:]]), spans, types)


def check_marked_files(paths: list[str]) -> None:
    """Reads text files through, before anything is built of them.

    Raises:
        InputError: A file is no text with one sentence a line.
        BadCorpusError: A line holds what is no mark; names file and line.
    """
    for path in paths:
        if not CorpusFile(path, "text", "fail").is_text:
            raise InputError(f"`entity_markup` needs text files with one sentence per line, and {path} is not one")
        for line in read_lines(path):
            text = line.content.decode("utf-8", errors="replace")
            if len(text) > MAX_CHARACTERS_PER_LINE:
                raise BadCorpusError(
                    f"{path}, line {line.number}: more than {MAX_CHARACTERS_PER_LINE:,} characters; split it"
                )
            try:
                take_marks_out(text)
            except BadCorpusError as error:
                raise BadCorpusError(f"{path}, line {line.number}: {error}") from error
