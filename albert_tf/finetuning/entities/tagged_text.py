"""Texts with their entities tagged, from files of words or of characters."""

import dataclasses
import re

from albert_tf.errors import InputError
from albert_tf.files import read_text
from albert_tf.finetuning.entities.tags import normalize_tag
from albert_tf.finetuning.tables import BadRows


@dataclasses.dataclass(frozen=True)
class TaggedText:
    """A sentence.

    Attributes:
        text: As it was written; words of a file with a word a line are put together with spaces.
        units: Spans (begin, end) in characters of what is tagged: words, or characters other than spaces.
        tags: A tag for each unit, `B-TYPE`, `I-TYPE` or `O`; None where nobody knows them.
        line: Line in the file, for messages.
    """

    text: str
    units: tuple[tuple[int, int], ...]
    tags: tuple[str, ...] | None
    line: int


@dataclasses.dataclass(frozen=True)
class EntityFiles:
    """The files of a data set.

    Attributes:
        train: Names that the training file may have.
        dev: Names that the file for evaluation may have.
        test: Names that the file to predict may have.
        form: How they are written; see `read_tagged`.
        metrics: Names of `entities.metrics.METRICS`; the first decides which checkpoint is best.
    """

    form: str
    train: tuple[str, ...] = ("train.tsv", "train.txt", "train.conll")
    dev: tuple[str, ...] = ("dev.tsv", "dev.txt", "dev.conll", "valid.txt")
    test: tuple[str, ...] = ("test.tsv", "test.txt", "test.conll", "dev.tsv", "dev.txt", "dev.conll", "valid.txt")
    metrics: tuple[str, ...] = ("entity_f1", "entity_precision", "entity_recall")


DATASETS = {
    "naver_ner": EntityFiles("words"),
    "klue_ner": EntityFiles(
        "characters",
        train=("klue-ner-v1.1_train.tsv", "train.tsv"),
        dev=("klue-ner-v1.1_dev.tsv", "dev.tsv"),
        test=("klue-ner-v1.1_test.tsv", "test.tsv", "klue-ner-v1.1_dev.tsv", "dev.tsv"),
        metrics=("entity_macro_f1", "character_macro_f1", "entity_f1"),
    ),
    "conll": EntityFiles("conll"),
}


def units_of(text: str, are_words: bool) -> tuple[tuple[int, int], ...]:
    """Returns the spans of a text's words, or of its characters other than spaces."""
    return tuple(match.span() for match in re.finditer(r"\S+" if are_words else r"\S", text))


def read_tagged(path: str, form: str, needs_tags: bool, on_bad_row: str = "fail") -> list[TaggedText]:
    """Returns the sentences of a file.

    Args:
        path: The file.
        form: "words": a sentence a line, its words, a tab, and a tag for each (Naver); "characters": a character, a
            tab and its tag a line (KLUE); "conll": a word first and its tag last in a line. In the latter two an empty
            line ends a sentence, and `##` begins a comment. Tags may be missing, in all lines of a sentence.
        needs_tags: Whether each sentence must have tags.
        on_bad_row: Whether to stop at a line that can't be used, or to leave its sentence out; see `BadRows`.

    Raises:
        InputError: The file can't be read, or a line of it can't be used.
    """
    bad_rows = BadRows(on_bad_row)
    lines = [line.rstrip("\r") for line in read_text(path, "the tagged text").split("\n")]
    found = []
    for sentence in _READERS[form](lines):
        try:
            found.append(sentence() if callable(sentence) else sentence)
        except _BadLineError as error:
            bad_rows.refuse(f"{path}, line {error.line}: {error}")
    if needs_tags:
        for text in found:
            if text.tags is None:
                raise InputError(f"{path}, line {text.line}: no tags; give each word or character one")
    bad_rows.warn()
    if not found:
        raise InputError(f"{path} has no sentence that can be used")
    return found


def types_of(path: str, form: str, on_bad_row: str = "fail") -> list[str]:
    """Returns the types of the entities in a file, sorted; arguments as for `read_tagged`.

    Raises:
        InputError: As `read_tagged`, or it holds no entity.
    """
    texts = read_tagged(path, form, needs_tags=True, on_bad_row=on_bad_row)
    types = sorted({tag.partition("-")[2] for text in texts for tag in text.tags} - {""})
    if not types:
        raise InputError(f"{path} has no entity; every tag in it is O")
    return types


class _BadLineError(Exception):
    def __init__(self, line, message):
        super().__init__(message)
        self.line = line


def _tags(values, line):
    try:
        return tuple(map(normalize_tag, values))
    except ValueError as error:
        raise _BadLineError(line, f"{str(error)!r} is no tag such as B-PER, PER-B, I-PER or O") from error


def _read_words(lines):
    """Yields a function for each line, which returns its sentence."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield lambda number=number, line=line: _sentence_of_words(number, line)


def _sentence_of_words(number, line):
    text, separator, tags = line.partition("\t")
    units = units_of(text, are_words=True)
    if not separator:
        return TaggedText(text, units, None, number)
    values = tags.split()
    if len(values) != len(units):
        raise _BadLineError(number, f"{len(units)} words, but {len(values)} tags")
    return TaggedText(text, units, _tags(values, number), number)


def _blocks(lines):
    """Yields the (number, line)s of each sentence of a file with a unit a line."""
    block = []
    for number, line in enumerate([*lines, ""], start=1):
        if line.startswith("##"):
            continue
        if line.strip("\t"):
            block.append((number, line))
        elif block:
            yield block
            block = []


def _read_characters(lines):
    for block in _blocks(lines):
        yield lambda block=block: _sentence_of_characters(block)


def _sentence_of_characters(block):
    has_tags = any("\t" in line for _, line in block)
    characters, tags = [], []
    for number, line in block:
        character, separator, tag = line.partition("\t")
        if len(character) != 1 or (has_tags and not separator):
            raise _BadLineError(number, "not one character, a tab and its tag")
        characters.append(character)
        if not character.isspace():
            tags.extend(_tags([tag.strip()], number))
    text = "".join(characters)
    return TaggedText(text, units_of(text, are_words=False), tuple(tags) if has_tags else None, block[0][0])


def _read_conll(lines):
    for block in _blocks(map(str.strip, lines)):  # a line of spaces ends a sentence, too
        if not block[0][1].startswith("-DOCSTART-"):
            yield lambda block=block: _sentence_of_columns(block)


def _sentence_of_columns(block):
    for number, line in block:
        words, _, tags = line.partition("\t")
        if len(words.split()) == len(tags.split()) > 1:
            raise _BadLineError(
                number, "a whole sentence and its tags, not one word; --task_name=naver_ner reads such files"
            )
    rows = [(number, line.split()) for number, line in block]
    has_tags = any(len(values) > 1 for _, values in rows)
    for number, values in rows:
        if has_tags and len(values) < 2:
            raise _BadLineError(number, "not a word and its tag")
    text = " ".join(values[0] for _, values in rows)
    tags = tuple(tag for number, values in rows for tag in _tags(values[-1:], number)) if has_tags else None
    return TaggedText(text, units_of(text, are_words=True), tags, block[0][0])


_READERS = {"words": _read_words, "characters": _read_characters, "conll": _read_conll}
