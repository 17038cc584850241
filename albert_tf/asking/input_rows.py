"""The inputs of a prediction, out of a file of any length: one a row."""

import collections.abc
import json
import os
import types
import typing

from albert_tf.asking.model import Model
from albert_tf.base.errors import InputError, shorten
from albert_tf.base.files import replace_halves
from albert_tf.base.texts import OPTIONS, read_texts
from albert_tf.reading.rows import COLUMN_ENDINGS, JSON_ENDINGS, Row, RowFile, decode, read_lines
from albert_tf.reading.values import columns_of, describe_columns, joined_text, json_value

_NAME_COLUMNS = "name the column of each text with `input_fields`"


class Asked(typing.NamedTuple):
    """The question of a row."""

    value: typing.Any  # what the task's `examples_of` takes
    # What of the row goes into the answer: its "id", if it has one, another column, and what is asked, if wanted.
    more: dict[str, typing.Any]


class InputRows:
    """The rows of a file, and the input in each.

    JSON, CSV and Parquet files have columns, and so have others whose first line names those that are read; a file that
    the model was trained or evaluated on is understood as it was there. Of any other file each line is a text; where an
    input is several texts, there are tabs between them. JSON lines may also be strings, where an input is one text.

    Args:
        task: Of the model: a `FinetuningTask`, or a `TextTask` without TensorFlow.
        path: The file, a gzip file if its name ends in .gz.
        fields: The columns to read, in the order in which the task reads them; several for a task that reads one text
            are joined. None for those of the training file, or else `task.input_fields`.
        keeps_inputs: Whether the input goes into the answer, by the names of the columns.
        kept_columns: The names that other columns have in the answer, if the row has them.

    Attributes:
        description: How the file was understood, and its first row, in two lines.

    Raises:
        InputError: It can't be read, or not understood.
    """

    def __init__(
        self,
        task: typing.Any,
        path: str,
        fields: list[str] | None = None,
        keeps_inputs: bool = False,
        kept_columns: collections.abc.Mapping[str, str] = types.MappingProxyType({}),
    ):
        self._task, self._path, self._keeps_inputs = task, path, keeps_inputs
        self._kept_columns = {"id": "id", **kept_columns}
        num_fields = len(task.input_fields)
        if fields and num_fields == 1:
            fields = [",".join(fields)]
        if fields and len(fields) != num_fields:
            raise InputError(
                f"`input_fields={','.join(fields)}`: this model reads {num_fields}, {' and '.join(task.input_fields)}; "
                "name the column of each"
            )
        # The columns that may be meant, the likeliest first.
        choices = [tuple(fields)] if fields else [task.input_columns, task.input_fields]
        self._choices = [choice for choice in choices if len(choice) == num_fields]
        self._fields, self._has_columns = self._choices[-1], True
        ending = os.path.splitext(path.lower().removesuffix(".gz"))[1]
        if ending in COLUMN_ENDINGS:
            self._file = RowFile(path)
            self._fields = self._choose(self._file.columns) or self._choices[-1]
            self._check_columns(self._file.columns)
        elif ending in JSON_ENDINGS:
            self._file = RowFile(path)
            found = self._columns_of_objects()
            if choice := self._choose(found):
                self._fields = choice
                self._check_columns(found)
        else:
            self._open_lines(fields)
        self.description = self._describe()

    def __iter__(self) -> collections.abc.Iterator[Row]:
        return iter(self._file)

    def parse(self, row: Row) -> Asked:
        """Returns the input of a row; InputError, with file and line, if the task can't read it."""
        if row.error:
            raise InputError(row.error)
        try:
            asked = self._from_text(row.values) if not self._has_columns else self._from_columns(row.values)
            self._task.examples_of([asked.value])
        except InputError as error:
            message = str(error).removeprefix("input 0 ")
            raise InputError(f"{self._file.place(row.number)}: {message}") from error
        if self._keeps_inputs:
            values = asked.value if len(self._fields) > 1 else [asked.value]
            asked = asked._replace(more={**asked.more, **dict(zip(self._fields, values))})
        return asked

    def _choose(self, columns):
        """Returns the first choice that is there, or else the first of which something is; None if nothing is."""
        there = [choice for has in (_has_all, _has_some) for choice in self._choices if has(choice, columns)]
        return there[0] if there else None

    def _check_columns(self, found):
        columns = [column for field in self._fields for column in columns_of(field, found)]
        self._file.check_columns(columns, tuple(found), _NAME_COLUMNS)

    def _columns_of_objects(self):
        """Returns the columns of the first object, and of more of them where it lacks some of those that are joined."""
        found = {}
        for row in self._file:
            if not row.error:
                found |= dict.fromkeys(row.values) if isinstance(row.values, dict) else {}
                if _has_all(self._choices[0], found) or not _has_some(self._choices[0], found):
                    break
        return tuple(found)

    def _open_lines(self, fields):
        """Finds out whether the first line of a file names columns, or is an input as all others."""
        line = next(read_lines(self._path), None)
        columns = decode(self._path, line).rstrip("\r").split("\t") if line else []
        header = self._choose(columns)
        if header or (fields and line):
            self._file, self._fields = RowFile(self._path), header or tuple(fields)
            self._check_columns(self._file.columns)
            return
        self._file, self._has_columns = RowFile(self._path, is_text=True), False
        num_texts = len(self._task.input_fields)
        has_options = self._task.input_fields[-1] == OPTIONS
        if len(columns) > num_texts and not has_options:
            raise InputError(
                f"{self._path}, line 1: {len(columns)} columns, but the model reads {num_texts} "
                f"({', '.join(self._fields)}); if the line names the columns, {_NAME_COLUMNS}; if it is an input, take "
                "the tabs out of its texts, or write a .jsonl file"
            )

    def _describe(self):
        if self._has_columns:
            columns = self._file.columns
            texts = [columns_of(field, columns or ()) for field in self._fields]
            used = [name for names in texts for name in names] + [name for name in self._kept_columns if name != "id"]
            unread = [name for name in columns or () if name not in used]
            meaning = f"{describe_columns(texts)} read"
            meaning += f", {', '.join(unread)} not" if unread else ""
        else:
            meaning = "a line is a text" if len(self._fields) == 1 else f"a line is {', tab, '.join(self._fields)}"
        first = next(iter(self), None)
        if first is None:
            return f"{self._path}: no rows"
        try:
            value = self.parse(first).value
            shown = shorten(value) if isinstance(value, str) else " | ".join(shorten(str(text)) for text in value)
        except InputError:
            shown = "can't be read"
        return f"{self._path}: {self._file.form}; {meaning}\n  the first: {shown}"

    def _from_text(self, text):
        if len(self._fields) == 1:
            return Asked(text, {})
        values = text.split("\t")
        num_texts = len(self._fields)
        if self._task.input_fields[-1] == OPTIONS and len(values) >= num_texts:
            values = [*values[: num_texts - 1], values[num_texts - 1 :]]
        if len(values) != num_texts:
            raise InputError(
                f"{len(values)} texts with tabs between them, but the model reads {num_texts}: "
                f"{', '.join(self._fields)}; mend the line, or use a .jsonl file"
            )
        return Asked(tuple(values), {})

    def _from_columns(self, values):
        if isinstance(values, str) and len(self._fields) == 1:
            return Asked(values, {})
        if not isinstance(values, dict):
            raise InputError(f"must be a JSON object. Received: {shorten(json.dumps(values, ensure_ascii=False))}")
        missing = [field for field in self._fields if not _has_some([field], values)]
        if missing:
            raise InputError(f'no "{missing[0]}"; add it, or {_NAME_COLUMNS}')
        options = self._task.input_fields[-1] == OPTIONS
        fields = self._fields[: len(self._fields) - options]
        texts = [joined_text(values, columns_of(field, values)) for field in fields]
        found = (*texts, values[self._fields[-1]]) if options else tuple(texts)
        kept = {name: json_value(values, column) for column, name in self._kept_columns.items() if column in values}
        return Asked(found if len(found) > 1 else found[0], kept)


def _has_all(fields, columns):
    return all(column in columns for field in fields for column in columns_of(field, columns))


def _has_some(fields, values):
    """Whether an object has what is read; of what is joined a part may be missing."""
    return all(any(column in values for column in columns_of(field, values)) for field in fields)


class AskedTexts:
    """A model and one of its abilities, as `predict_file` asks it; it is its own task.

    The ability is "score", "choose" or "generate", with the options of that method of `Model`.

    Raises:
        InputError: The model lacks the ability, or an option is out of range.
    """

    input_fields = ("text",)
    input_columns = ()

    def __init__(self, model: Model, ability: str, **options: typing.Any):
        self._model, self._question, self.task = model, model.question(ability, **options), self

    @property
    def num_cut(self) -> int:
        """As of the model."""
        return self._model.num_cut

    @property
    def num_unknown(self) -> int:
        """As of the model."""
        return self._model.num_unknown

    def examples_of(self, inputs: collections.abc.Sequence[typing.Any]) -> list[tuple[str, ...]]:
        """Returns each text in a tuple; raises InputError if one is no text, or can't be asked about."""
        texts = read_texts(inputs, reads_pairs=False)
        self._question.check([replace_halves(text) for (text,) in texts])
        return texts

    def predict(self, inputs: collections.abc.Sequence[str], batch_size: int) -> list[dict[str, typing.Any]]:
        """Returns an answer to each text, in order."""
        return self._model.answer(self._question, inputs, batch_size)
