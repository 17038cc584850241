"""Labelled texts, or pairs of them, from tab-separated files with a header line."""

import dataclasses

import numpy as np

from albert_tf.errors import InputError
from albert_tf.files import read_text
from albert_tf.finetuning.datasets import DataFiles
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.model_inputs import pack_segments

# What a file to predict may hold in place of a label that nobody knows yet.
UNKNOWN_LABELS = ("", "-", "?")


@dataclasses.dataclass(frozen=True)
class LabelledText:
    """One line of a file.

    Attributes:
        text: The text.
        text_pair: The second text, or None.
        label: The label as it is written, or None where the file has no label column.
        line: Line number in the file, for messages.
    """

    text: str
    text_pair: str | None
    label: str | None
    line: int


def read_examples(path: str, files: DataFiles, needs_label: bool) -> list[LabelledText]:
    """Reads every line of a file.

    Args:
        path: The file.
        files: What its columns mean.
        needs_label: Whether the label column must be there.

    Raises:
        InputError: A column is missing, a line has too few or too many, or there is no line.
    """
    lines = read_text(path, "the labelled data").removesuffix("\n").split("\n")
    header = lines[0].rstrip("\r").split("\t")
    if len(header) > 1:  # where the text is all there is, an empty line may be one
        while len(lines) > 1 and not lines[-1].rstrip("\r"):
            lines.pop()
    needed = [files.text_column]
    needed += [files.text_pair_column] if files.text_pair_column else []
    needed += [files.label_column] if needs_label else []
    for column in needed:
        if column not in header:
            raise InputError(f"{path}, line 1: no column named {column}; the header has {', '.join(header)}")
    examples = []
    for number, line in enumerate(lines[1:], start=2):
        values = line.rstrip("\r").split("\t")
        if len(values) != len(header):
            raise InputError(f"{path}, line {number}: {len(values)} columns, but the header has {len(header)}")
        row = dict(zip(header, values))
        pair = row[files.text_pair_column] if files.text_pair_column else None
        examples.append(LabelledText(row[files.text_column], pair, row.get(files.label_column), number))
    if not examples:
        raise InputError(f"{path} has no lines below its header")
    return examples


def check_known_labels(
    path: str, examples: list[LabelledText], labels: tuple[str, ...], needs_label: bool = True
) -> None:
    """Checks that each example has one of the labels.

    Args:
        path: Where the examples come from; named in errors.
        examples: What was read of it.
        labels: The labels.
        needs_label: Whether each example must have one. If not, those of `UNKNOWN_LABELS` stand for none.

    Raises:
        InputError: A label is not in the list.
    """
    accepted = {*labels, None} if needs_label else {*labels, None, *UNKNOWN_LABELS}
    for example in examples:
        if example.label not in accepted:
            raise InputError(
                f"{path}, line {example.line}: label {example.label!r} is not in the list {', '.join(labels)}; "
                "correct the line, or name all labels with --labels"
            )


def encode_examples(
    tokenizer: KoreanWordPieceTokenizer, examples: list[LabelledText], max_seq_length: int
) -> dict[str, np.ndarray]:
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
