"""Labelled texts, or pairs of them."""

import collections
import collections.abc
import dataclasses

import numpy as np

from albert_tf.asked_texts import read_texts
from albert_tf.errors import InputError
from albert_tf.finetuning.datasets import DataFiles
from albert_tf.finetuning.tables import BadRows, read_rows, tell_once
from albert_tf.tokenization import Tokenizer
from albert_tf.tokenization.model_inputs import pack_segments

# What a file to predict may hold in place of a label that nobody knows yet.
UNKNOWN_LABELS = ("", "-", "?")
_MOST_NAMED = 10


@dataclasses.dataclass(frozen=True)
class LabelledText:
    """One row of a file.

    Attributes:
        text: The text.
        text_pair: The second text, or None.
        label: The label as it is written, or None where the file has no label column.
        line: Number of the row's line in the file, for messages.
    """

    text: str
    text_pair: str | None
    label: str | None
    line: int

    @property
    def texts(self) -> str:
        """The text, or both, as one."""
        return self.text if self.text_pair is None else f"{self.text}\t{self.text_pair}"


def read_examples(path: str, files: DataFiles, needs_label: bool) -> list[LabelledText]:
    """Reads every row of a file.

    Args:
        path: The file.
        files: What its columns mean, and what to do with a row that can't be used.
        needs_label: Whether the label column must be there.

    Raises:
        InputError: A column is missing, a row can't be used and is not to be left out, or there is no row.
    """
    bad_rows = BadRows(files.on_bad_row)
    columns = [files.text_column]
    columns += [files.text_pair_column] if files.text_pair_column else []
    columns += [files.label_column] if needs_label else []
    rows = read_rows(path, files.columns, bad_rows)
    for column in columns:
        if not any(column in row.values for row in rows):
            found = ", ".join(map(str, rows[0].values))
            raise InputError(
                f"{path}, line 1: no column named {column}; the header has {found}; name yours by --text_column, "
                "--text_pair_column and --label_column"
            )
    examples = []
    for row in rows:
        missing = [column for column in columns if row.values.get(column) is None]
        if needs_label and row.values.get(files.label_column) == "":
            missing.append(files.label_column)
        if missing:
            bad_rows.refuse(f"{path}, line {row.number}: nothing under {missing[0]}")
            continue
        for column in columns:
            _check_is_one_value(f"{path}, line {row.number}", column, row.values[column])
        pair = str(row.values[files.text_pair_column]) if files.text_pair_column else None
        label = row.values.get(files.label_column)
        text = str(row.values[files.text_column])
        examples.append(LabelledText(text, pair, None if label is None else str(label), row.number))
    bad_rows.warn()
    _warn_of_empty_texts(path, examples)
    if not examples:
        raise InputError(f"{path} has no row that can be used")
    return examples


def _warn_of_empty_texts(path, examples):
    """Tells of texts without a character; a file to predict has an answer for each, so none is left out."""
    lines = [each.line for each in examples if "" in (each.text.strip(), each.text_pair and each.text_pair.strip())]
    if lines:
        rows = f"{len(lines):,} rows" if len(lines) > 1 else "1 row"
        tell_once(f"warning: {rows} of {path} with an empty text, the first on line {lines[0]:,}; used as any other")


def _check_is_one_value(place, column, value):
    """Refuses objects, lists and bytes, whose Python notation would be taken for a text or a label."""
    if isinstance(value, dict):
        inner = " or ".join(f"{column}.{key}" for key in list(value)[:5])
        raise InputError(f"{place}: {column} holds an object; name a value in it{f', {inner}' if inner else ''}")
    if isinstance(value, list):
        raise InputError(f"{place}: {column} holds a list, not one value; name another column")
    if isinstance(value, bytes):
        raise InputError(f"{place}: {column} holds bytes, not text; write it as strings, or name another column")


def unlabelled_examples(inputs: collections.abc.Sequence, reads_pairs: bool) -> list[LabelledText]:
    """Returns texts, or pairs of them, as examples without labels.

    Raises:
        InputError: One is not a string, or not two of them where pairs are read.
    """
    texts = read_texts(inputs, reads_pairs)
    return [LabelledText(text[0], text[1] if reads_pairs else None, None, n) for n, text in enumerate(texts)]


def check_known_labels(
    path: str,
    examples: list[LabelledText],
    labels: tuple[str, ...],
    needs_label: bool = True,
    on_bad_row: str = "fail",
) -> list[LabelledText]:
    """Checks that each example has one of the labels; returns those that have.

    Args:
        path: Where the examples come from; named in errors.
        examples: What was read of it.
        labels: The labels.
        needs_label: Whether each example must have one. If not, those of `UNKNOWN_LABELS` stand for none.
        on_bad_row: With "skip" examples that must have a label and have another one are left out, counted and named; in
            a file to predict, where each text is to have an answer, they are refused as with "fail".

    Raises:
        InputError: A label is not in the list, or none of them is.
    """
    accepted = {*labels, None} if needs_label else {*labels, None, *UNKNOWN_LABELS}
    unknown = [example for example in examples if example.label not in accepted]
    if not unknown:
        return examples
    if not needs_label or on_bad_row != "skip":
        raise InputError(
            f"{path}, line {unknown[0].line}: label {unknown[0].label!r} is not in the list {', '.join(labels)}; "
            "correct the line, or name all labels with --labels"
            + ("; or pass --on_bad_row=skip to leave such rows out" if needs_label else "")
        )
    if len(unknown) == len(examples):
        raise InputError(f"{path} has no row whose label is in the list {', '.join(labels)}; name yours with --labels")
    tell_once(_describe_unknown(path, unknown, labels))
    return [example for example in examples if example.label in accepted]


def _describe_unknown(path, unknown, labels):
    lines = {example.label: example.line for example in reversed(unknown)}
    counts = collections.Counter(example.label for example in unknown).most_common()
    named = ", ".join(f"{label!r} ({n:,}, the first on line {lines[label]:,})" for label, n in counts[:_MOST_NAMED])
    more = f", and {len(counts) - _MOST_NAMED:,} more" if len(counts) > _MOST_NAMED else ""
    rows = f"{len(unknown):,} rows" if len(unknown) > 1 else "1 row"
    return f"warning: {rows} of {path} left out, whose labels are not in the list {', '.join(labels)}: {named}{more}"


def encode_examples(tokenizer: Tokenizer, examples: list[LabelledText], max_seq_length: int) -> dict[str, np.ndarray]:
    """Encodes texts as `[CLS] text [SEP]` or `[CLS] text [SEP] pair [SEP]`; the end of the longer text is cut off.

    Args:
        tokenizer: Its vocabulary must hold the special tokens.
        examples: N texts.
        max_seq_length: Length S.

    Returns:
        int32 [N, S] `input_ids`, `input_mask`, `segment_ids`.

    Raises:
        InputError: A special token is missing.
    """
    columns = [[example.text for example in examples]]
    if examples[0].text_pair is not None:
        columns.append([example.text_pair for example in examples])
    segments = [tokenizer.encode_ids(column) for column in columns]
    features = pack_segments(segments, tokenizer.vocabulary, max_seq_length)
    return {name: values.numpy() for name, values in features.items()}
