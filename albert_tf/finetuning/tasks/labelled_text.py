"""Labelled texts, or pairs of them: how they are read and encoded, and which labels there are."""

import ast
import collections
import collections.abc
import dataclasses
import itertools
import os
import re
import typing

import numpy as np

from albert_tf.base.errors import InputError, listed, quote, shorten
from albert_tf.base.texts import read_texts
from albert_tf.finetuning.datasets import DataFiles
from albert_tf.finetuning.task import CUT, Features
from albert_tf.reading.rows import BadRows, RowFile, counted, read_once, tell_once
from albert_tf.reading.values import columns_of, describe_columns, is_missing, joined_text, one_value, plain_labels
from albert_tf.tokenization import Tokenizer
from albert_tf.tokenization.model_inputs import cut_windows, pack_arrays, pack_segments

# What a file to predict may hold in place of a label that nobody knows yet.
UNKNOWN_LABELS = ("", "-", "?")
_MOST_NAMED = 10
# How programs that write CSV write a text with quotation marks: within some, and each of its own twice.
_QUOTED = re.compile(r'"(?:[^"]|"")*""(?:[^"]|"")*"')

NUM_SPECIAL = 2  # [CLS] and [SEP]
# Of features: the text that each window is of, int32 [N], ascending; and what a window counts in the loss, so that all
# windows of a text together count as one, float32 [N].
TEXT_INDICES, WINDOW_WEIGHTS = "text_indices", "window_weights"


@dataclasses.dataclass(frozen=True)
class LabelledText:
    """One row of a file.

    Attributes:
        text_pair: The second text, or None.
        label: As it is written, None where the file has no label column; a tuple of labels where there may be several.
        line: Number of the row's line in the file, for messages.
    """

    text: str
    text_pair: str | None
    label: str | tuple[str, ...] | None
    line: int
    path: str = dataclasses.field(default="", compare=False)

    @property
    def texts(self) -> str:
        """The text, or both, as one."""
        return "\t".join(self.columns.values())

    @property
    def columns(self) -> dict[str, str]:
        """The text, or both, by the names that they have in files of ours."""
        return {"text": self.text} | ({} if self.text_pair is None else {"text_pair": self.text_pair})


def read_examples(
    path: str | tuple[str, ...],
    files: DataFiles,
    needs_label: bool,
    read_labels: collections.abc.Callable[..., tuple[str, ...] | None] | None = None,
) -> list[LabelledText]:
    """Reads every row of a file, or of several, and prints in a line how each was understood."""
    # `read_labels` returns any number of labels, given a row's values, the columns and `needs_label`; None: one a text.
    paths = (path,) if isinstance(path, str) else path
    examples = [example for each in paths for example in _read_file(each, files, needs_label, read_labels)]
    if read_labels is None:
        labels = plain_labels([example.label for example in examples])
        examples = [dataclasses.replace(example, label=label) for example, label in zip(examples, labels)]
    return examples


@read_once
def _read_file(path, files, needs_label, read_labels):
    bad_rows = BadRows(files.on_bad_row)
    row_file = RowFile(path, files.columns)
    rows = list(row_file.records(bad_rows.refuse, skips_empty_lines=True))
    if not rows:
        bad_rows.warn()
        below = " below its header" if row_file.columns else ""
        raise InputError(f"{path} has no {row_file.unit}s{below} that can be used")
    found = row_file.columns or tuple(dict.fromkeys(name for _, values in rows for name in values))
    text_columns = [columns_of(setting, found) for setting in files.text_columns]
    label_columns = (files.label_column,) if read_labels is None else columns_of(files.label_column, found)
    has_labels = any(column in found for column in label_columns)
    wanted = [*itertools.chain(*text_columns), *(label_columns if needs_label or has_labels else ())]
    how = "name your columns with `text_column`, `text_pair_column` and `label_column`"
    if read_labels is None and "," in files.label_column:
        how += "; several columns of 1 and 0 are read with `multi_label`"
    row_file.check_columns(wanted, found, how)
    examples = []
    for place, values in rows:
        try:
            texts = [joined_text(values, columns) for columns in text_columns]
            label = (read_labels or _label)(values, label_columns, needs_label)
        except InputError as error:
            bad_rows.refuse(f"{place}: {error}")
        else:
            pair = texts[1] if len(texts) > 1 else None
            examples.append(LabelledText(texts[0], pair, label, place.number, path))
    bad_rows.warn()
    if not examples:
        raise InputError(f"{path} has no row that can be used")
    tell_once(_describe_file(row_file, found, files, text_columns, label_columns, examples))
    _warn_of_empty_texts(path, examples)
    if row_file.form == "tab-separated":
        _warn_of_quoted_texts(path, examples)
    return examples


def _label(values, columns, needs_label):
    """Returns the label of a row; without need of one, None where there is none."""
    (column,) = columns
    if not needs_label and is_missing(values.get(column)):
        return None
    label = one_value(values, column)
    if needs_label and label == "":
        raise InputError(f"nothing under {column}")
    if looks_like_list(label):
        raise InputError(f"{column} holds {shorten(label)}, a list; texts with several labels need `multi_label`")
    return label


def _describe_file(row_file, found, files, text_columns, label_columns, examples):
    """Returns how a file was understood, and its first row, in two lines."""
    meaning = f"{describe_columns(text_columns)} the text{'s' * (len(text_columns) > 1)}"
    used = {*itertools.chain(*text_columns), *label_columns}
    if len(label_columns) > 1 and label_columns[0] in found:
        meaning += f", {', '.join(label_columns)} the labels where they hold 1"
    elif files.label_column in found:
        kind = "number" if files.is_regression else "label"
        meaning += f", {files.label_column} the {kind}"
        if names := row_file.label_names.get(files.label_column):
            meaning += f" by its name ({listed(names, _MOST_NAMED)})"
    if unread := [str(name) for name in found if name not in used]:
        meaning += f"; {listed(unread, _MOST_NAMED)} not read"
    header = ", no header" if files.columns else ""
    first = examples[0]
    shown = " | ".join(map(shorten, first.columns.values()))
    if first.label is not None:
        label = first.label if isinstance(first.label, str) else " and ".join(first.label)
        shown += f" -> {shorten(label or 'no label')}"
    return f"{row_file.path}: {counted(len(examples), 'row')}, {row_file.form}{header}; {meaning}\n  the first: {shown}"


def _warn_of_empty_texts(path, examples):
    """Tells of texts without a character; a file to predict has an answer for each, so none is left out."""
    lines = [each.line for each in examples if "" in (each.text.strip(), each.text_pair and each.text_pair.strip())]
    if lines:
        rows = counted(len(lines), "row")
        tell_once(f"warning: {rows} of {path} with an empty text, the first on line {lines[0]:,}; used like any other")


def _warn_of_quoted_texts(path, examples):
    """Tells if all texts with quotation marks have them as a CSV file would, for here they belong to the texts."""
    texts = [(text, each.line) for each in examples for text in (each.text, each.text_pair) if text and '"' in text]
    if texts and all(_QUOTED.fullmatch(text) for text, _ in texts):
        tell_once(
            f"warning: {counted(len(texts), 'text')} of {path}, the first on line {texts[0][1]:,}, with quotation "
            'marks as in CSV ("a ""b"""), which tab-separated files keep as they are; write them without '
            "(csv.QUOTE_NONE), or write a .csv file"
        )


def line_names(examples: collections.abc.Sequence[typing.Any]) -> list[str]:
    """Returns the number of each example's line; where they are of several files, with the name of its file."""
    if len({example.path for example in examples}) < 2:
        return [str(example.line) for example in examples]
    return [f"{example.line} of {os.path.basename(example.path)}" for example in examples]


def unlabelled_examples(inputs: collections.abc.Sequence, reads_pairs: bool) -> list[LabelledText]:
    """Returns texts, or pairs of them, as examples without labels; anything else is refused."""
    texts = read_texts(inputs, reads_pairs)
    return [LabelledText(text[0], text[1] if reads_pairs else None, None, n) for n, text in enumerate(texts)]


def encode_examples(tokenizer: Tokenizer, examples: list[LabelledText], max_seq_length: int) -> Features:
    """Encodes texts as `[CLS] text [SEP]` or `[CLS] text [SEP] pair [SEP]`; the end of the longer text is cut off."""
    # Returns int32 [N, S] `input_ids`, `input_mask`, `segment_ids`.
    features = encode_and_count_cut(tokenizer, examples, max_seq_length)
    del features[CUT]
    return features


def encode_and_count_cut(tokenizer: Tokenizer, examples: list[LabelledText], max_seq_length: int) -> Features:
    """Adds to the features of `encode_examples` int32 [N] `CUT`, how many tokens of each example are cut off."""
    columns = [[example.text for example in examples]]
    if examples[0].text_pair is not None:
        columns.append([example.text_pair for example in examples])
    segments = [tokenizer.encode_ids(column) for column in columns]
    features = pack_segments(segments, tokenizer.vocabulary, max_seq_length)
    features = {name: values.numpy() for name, values in features.items()}
    num_special = tokenizer.vocabulary.num_special(len(segments))
    lengths = sum(segment.row_lengths().numpy() for segment in segments) + num_special
    cut = lengths - features["input_mask"].sum(axis=1)
    return {**features, CUT: cut.astype(np.int32)}


def encode_in_windows(tokenizer: Tokenizer, texts: list[str], max_seq_length: int, stride: int) -> Features:
    """Encodes texts as windows, `[CLS] part [SEP]`, those of one text one after the other, at least one of each."""
    # Returns of N windows int32 [N, S] `input_ids`, `input_mask`, `segment_ids`; `TEXT_INDICES`; `WINDOW_WEIGHTS`.
    ids = tokenizer.encode_ids(texts)
    pieces, splits = ids.values.numpy(), ids.row_splits.numpy()
    rows, begins, ends = cut_windows(np.diff(splits), max_seq_length - NUM_SPECIAL, stride)
    parts = [pieces[begin:end] for begin, end in zip(splits[rows] + begins, splits[rows] + ends)]
    return {
        **pack_arrays([parts], tokenizer.vocabulary, max_seq_length),
        TEXT_INDICES: rows,
        WINDOW_WEIGHTS: (1 / np.bincount(rows)[rows]).astype(np.float32),
    }


def describe_windows(text_indices: np.ndarray, where: str) -> str | None:
    """Returns how many texts are read in more than one window, None if none is; `where` as in "in train.tsv"."""
    counts = np.bincount(text_indices)
    if counts.max() == 1:
        return None
    count = int((counts > 1).sum())
    texts = f"{counted(count, 'text')}{where and f' {where}'} {'are' if count > 1 else 'is'}"
    return f"{texts} read in windows, up to {counts.max():,} of one"


def check_labels(labels: tuple[str, ...], source: str) -> None:
    """Checks that labels are two or more, and none empty or there twice; errors call where they come from `source`."""
    doubled = [label for label, count in collections.Counter(labels).items() if count > 1]
    if doubled:
        raise InputError(f"{source}: the label {quote(doubled[0])} appears twice; name each label once")
    if "" in labels:
        raise InputError(f"{source}: a label is empty; give it a name, or remove it")
    if len(labels) < 2:
        raise InputError(f"{source}: {', '.join(map(quote, labels))} is the only label; a classifier needs two or more")


def labels_of(examples: list[LabelledText]) -> tuple[str, ...]:
    """Returns the labels of the examples to train on, sorted: each has one, and not all the same."""
    for example in examples:
        if not example.label:
            place = f"{example.path}, line {example.line}"
            raise InputError(f"{place}: the label is empty; give the line one, or remove it")
    return _checked({example.label for example in examples}, examples)


def labels_of_sets(examples: list[LabelledText], columns: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Returns the labels of examples that may have several, sorted; those with columns need no example."""
    found = {label for example in examples for label in example.label}
    return _checked(found | set(columns if found and found <= set(columns) else ()), examples)


def _checked(found, examples):
    labels = tuple(sorted(found))
    if not labels:
        raise InputError(f"{examples[0].path} has no label at all; name the column that holds them with `label_column`")
    check_labels(labels, examples[0].path)
    return labels


def balanced_class_weights(labels: tuple[str, ...], examples: list[LabelledText]) -> tuple[float, ...]:
    """Returns weights with which all labels count alike in the loss, on average 1 an example."""
    # A label without examples has weight 1; examples of other labels don't count.
    counts = collections.Counter(example.label for example in examples)
    present = sum(counts[label] > 0 for label in labels)
    total = sum(counts[label] for label in labels)
    return tuple(total / (present * counts[label]) if counts[label] else 1.0 for label in labels)


def label_report(path: str, examples: list[LabelledText], labels: tuple[str, ...]) -> list[str]:
    """Returns how many examples of a training file have each label, and a warning of texts with several, as lines."""
    counts = collections.Counter(dict.fromkeys(labels, 0))
    counts.update(example.label for example in examples)
    named = list(counts.items()) if len(counts) <= _MOST_NAMED else counts.most_common(_MOST_NAMED)
    text = ", ".join(f"{shorten(label)} ({count:,})" for label, count in named)
    rest = f", and {len(counts) - len(named):,} more" if len(counts) > len(named) else ""
    report = [f"{len(counts):,} labels in the {counts.total():,} examples of {path}: {text}{rest}"]
    lines = collections.defaultdict(dict)
    for example, name in zip(examples, line_names(examples)):
        lines[example.texts].setdefault(example.label, name)
    several = [list(by_label.values()) for by_label in lines.values() if len(by_label) > 1]
    if several:
        first = " and ".join(several[0][:2])
        report.append(f"warning: {counted(len(several), 'text')} of {path} with different labels, as on lines {first}")
    return report


# How Python writes a list of strings, of numbers or of nothing, as pandas does into a CSV file.
_LIST = re.compile(r"\[\s*((['\"\d.+-]|None|nan).*)?\]", re.DOTALL)

# What a file to predict may hold in place of labels that nobody knows yet; nothing at all is no label.
_UNKNOWN = ("-", "?")
# How a column of a label's own says whether a text has it, in lower case.
_FLAGS = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}


@dataclasses.dataclass(frozen=True)
class LabelSetReader:
    """Reads the labels of a row: a list of JSON or Parquet; one value with a separator between them (K-MHaS, KOTE); or
    of several columns, named as the labels, those that hold 1 and not 0 (UnSmile).
    """

    separator: str

    def __call__(
        self, values: collections.abc.Mapping[str, typing.Any], columns: tuple[str, ...], needs_label: bool
    ) -> tuple[str, ...] | None:
        """Returns the labels of a row, none among them; None where nobody knows them. Errors lack the place."""
        if len(columns) > 1:
            return _flagged(values, columns, needs_label)
        (column,) = columns
        value = values.get(column)
        if isinstance(value, np.ndarray):
            value = value.tolist()
        elif isinstance(value, str) and looks_like_list(value):
            value = _written_list(value.strip(), column)
        if isinstance(value, list | tuple):
            labels = tuple(one_value({column: each}, column) for each in value)
        elif is_missing(value):
            if needs_label:
                one_value(values, column)  # which says what is missing
            return None
        else:
            text = one_value(values, column).strip()
            if not needs_label and text in _UNKNOWN:
                return None
            labels = tuple(part.strip() for part in text.split(self.separator)) if text else ()
        if "" in labels:
            raise InputError(f"an empty label under {column}, {quote(value)}; remove the extra separator")
        if len(set(labels)) < len(labels):
            raise InputError(f"a label appears twice under {column}, {quote(value)}; name each once")
        return labels


def looks_like_list(text: str) -> bool:
    """Whether a text is a list as Python writes it."""
    return _LIST.fullmatch(text.strip()) is not None


def _written_list(text, column):
    """Returns a list that was written as text."""
    try:
        found = ast.literal_eval(text)
        if str(found) == text:  # NumPy's lists have no commas, so Python reads their strings as one
            return found
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        pass
    raise InputError(
        f"{column} holds {quote(text)}, a list written as text that can't be read; write lists into JSON lines or "
        "Parquet, or labels with a separator between them"
    )


def _flagged(values, columns, needs_label):
    """Returns the columns that hold 1; None where all are open in a row that needs no label."""
    if not needs_label and all(is_missing(value) or value in ("", *_UNKNOWN) for value in map(values.get, columns)):
        return None
    written = {column: one_value(values, column).strip() for column in columns}
    for column, value in written.items():
        if value.lower() not in _FLAGS:
            raise InputError(f"{shorten(column)} holds {quote(value)}; each of several label columns must hold 1 or 0")
    return tuple(column for column, value in written.items() if _FLAGS[value.lower()])
