"""What to predict, out of a file of any length: an input a line, as text or as JSON."""

import collections.abc
import gzip
import json
import typing
import zlib

from albert_tf.asked_texts import OPTIONS, AskedTask
from albert_tf.corpus.blocks import split_at_line_ends
from albert_tf.errors import InputError
from albert_tf.files import file_errors, gfile_for, reason_of
from albert_tf.text_encoding import not_utf8

MAX_BYTES_PER_LINE = 1 << 26

_JSON_LINES_ENDINGS = (".jsonl", ".ndjson", ".json")
_BYTES_PER_BLOCK = 1 << 18


class Line(typing.NamedTuple):
    """A line of a file.

    Attributes:
        number: Its number, from 1.
        content: Its bytes, without the line feed.
        position: How many bytes of the file, as it is stored, were read by then.
    """

    number: int
    content: bytes
    position: int


class Asked(typing.NamedTuple):
    """What a line asks.

    Attributes:
        value: What `AskedTask.examples_of` takes.
        more: What of the line goes into the answer: the "id" of an object, if it has one, and what is asked, if wanted.
    """

    value: typing.Any
    more: dict[str, typing.Any]


def read_lines(path: str) -> collections.abc.Iterator[Line]:
    """Yields the lines of a file, a gzip file if its name ends in .gz; a byte order mark is left out.

    Raises:
        InputError: It can't be read, or a line is longer than `MAX_BYTES_PER_LINE`.
    """
    try:
        with gfile_for(path).GFile(path, "rb") as file:
            stream = gzip.GzipFile(fileobj=file, mode="rb") if path.endswith(".gz") else file
            number = 1
            for content, begins_line, ends_line in split_at_line_ends(_blocks(stream), MAX_BYTES_PER_LINE):
                if not (begins_line and ends_line):
                    raise InputError(
                        f"{path}, line {number}: longer than {MAX_BYTES_PER_LINE >> 20} MB; is each input on a line "
                        "of its own?"
                    )
                for line in bytes(content).split(b"\n"):
                    yield Line(number, line, file.tell())
                    number += 1
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:  # the first is an OSError, too
        raise InputError(f"can't read {path}: not a whole gzip file ({error})") from error
    except file_errors() as error:
        raise InputError(f"can't read {path}: {reason_of(error)}") from error


class LineParser:
    """Reads what lines ask.

    Lines of .jsonl files (.jsonl.gz likewise) are objects, or strings where an input is one text. Of any other file
    each line is a text; where an input is several texts, there are tabs between them.

    Args:
        task: What is to be asked.
        path: The file; its name tells the form, and errors begin with it.
        fields: Of objects, in the order in which the task reads them; None for those of `task.input_fields`.
        keeps_inputs: Whether what is asked goes into the answer, by the names of the fields.

    Raises:
        InputError: There must be as many fields as the task reads, and the file one of these forms.
    """

    def __init__(self, task: AskedTask, path: str, fields: list[str] | None = None, keeps_inputs: bool = False):
        self._task, self._path, self._keeps_inputs = task, path, keeps_inputs
        self._fields = tuple(fields or task.input_fields)
        if len(self._fields) != len(task.input_fields):
            raise InputError(
                f"--input_fields={','.join(self._fields)}: this model reads {len(task.input_fields)}, "
                f"{' and '.join(task.input_fields)}; name the field of each"
            )
        if path.removesuffix(".gz").lower().endswith((".csv", ".parquet")):
            raise InputError(
                f"{path}: lines of text or .jsonl objects are read here, no CSV or Parquet; convert it, or let the "
                "command that fine-tuned the model read it: --do_predict --data_dir=FOLDER, where it is called test"
            )
        self._is_json = path.removesuffix(".gz").lower().endswith(_JSON_LINES_ENDINGS)

    def parse(self, line: Line) -> Asked:
        """Returns what a line asks.

        Raises:
            InputError: Nothing that the task reads; the message names file and line.
        """
        try:
            text = line.content.decode("utf-8").removesuffix("\r")
            asked = self._parse_json(text) if self._is_json else Asked(self._parse_text(text), {})
            self._task.examples_of([asked.value])
            if self._keeps_inputs:
                values = asked.value if len(self._fields) > 1 else [asked.value]
                asked = asked._replace(more={**asked.more, **dict(zip(self._fields, values))})
        except UnicodeDecodeError as error:
            raise not_utf8(f"{self._path}, line {line.number}", line.content, "the file") from error
        except InputError as error:
            message = str(error).removeprefix("input 0 ")
            raise InputError(f"{self._path}, line {line.number}: {message}") from error
        return asked

    def _parse_text(self, text):
        if len(self._fields) == 1:
            return text
        values = text.split("\t")
        num_texts = len(self._fields)
        if self._task.input_fields[-1] == OPTIONS and len(values) >= num_texts:
            values = [*values[: num_texts - 1], values[num_texts - 1 :]]
        if len(values) != num_texts:
            raise InputError(
                f"{len(values)} texts with tabs between them, but the model reads {num_texts}: "
                f"{', '.join(self._fields)}; mend the line, or use a .jsonl file"
            )
        return tuple(values)

    def _parse_json(self, text):
        try:
            values = json.loads(text)
            # JSON can express half a surrogate pair, which is no character.
            json.dumps(values, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError as error:
            raise InputError("half a surrogate pair, which is no character; mend the line") from error
        except (ValueError, RecursionError) as error:
            raise InputError(f"not valid JSON ({error}); mend the line") from error
        if isinstance(values, str) and len(self._fields) == 1:
            return Asked(values, {})
        if not isinstance(values, dict):
            raise InputError(f"must be a JSON object. Received: {text[:60]}")
        missing = [field for field in self._fields if field not in values]
        if missing:
            raise InputError(f'no "{missing[0]}"; add it, or name the fields by --input_fields')
        found = tuple(values[field] for field in self._fields)
        return Asked(found if len(found) > 1 else found[0], {name: values[name] for name in ("id",) if name in values})


def _blocks(stream):
    is_first = True
    while block := stream.read(_BYTES_PER_BLOCK):
        yield block.removeprefix(b"\xef\xbb\xbf") if is_first else block
        is_first = False
