"""Texts with their entities tagged, from files of words or of characters.

Of tags B- begins an entity, I- goes on with it, and O is outside of all (IOB2).
"""

import collections
import collections.abc
import dataclasses
import functools
import itertools
import re
import typing

from albert_tf.base.errors import InputError, listed, quote, shorten
from albert_tf.finetuning.datasets import DEV_NAMES
from albert_tf.finetuning.metrics import Counts, count_found, f1_of_counts, totals
from albert_tf.reading.rows import BadRows, RowFile, counted, read_once, tell_once

OUTSIDE = "O"
_OUTSIDE = (OUTSIDE, "-", "_", "")


class Entity(typing.NamedTuple):
    """A run of units with one type."""

    begin: int
    end: int  # Behind the last one.
    type: str


def normalize_tag(tag: str) -> str:
    """Returns `TYPE-B` and `TYPE_B` (Naver), `-` and the usual as `B-TYPE`, `I-TYPE` or `O`; else raises ValueError."""
    if tag in _OUTSIDE:
        return OUTSIDE
    for separator in "-_":
        for prefix, found, kind in (tag.partition(separator), tag.rpartition(separator)[::-1]):
            if found and kind and prefix in ("B", "I"):
                return f"{prefix}-{kind}"
    raise ValueError(tag)


def entities_of(tags: list[str]) -> list[Entity]:
    """Returns the entities of a sequence; as conlleval does, an I- that goes on with nothing begins one."""
    found, begin, kind = [], 0, None
    for unit, tag in enumerate([*tags, OUTSIDE]):
        prefix, _, now = tag.partition("-")
        if kind is not None and (tag == OUTSIDE or prefix == "B" or now != kind):
            found.append(Entity(begin, unit, kind))
            kind = None
        if tag != OUTSIDE and kind is None:
            begin, kind = unit, now
    return found


def strict_entities_of(tags: list[str]) -> list[Entity]:
    """Returns the entities that begin with a B-, as seqeval does in strict mode with IOB2."""
    return [entity for entity in entities_of(tags) if tags[entity.begin].startswith("B-")]


def go_on_with(tag: str) -> str:
    """Returns the tag of a unit that one piece shares with the unit before it, whose tag is given."""
    return tag if tag == OUTSIDE else f"I-{tag.partition('-')[2]}"


def may_follow(before: str, tag: str) -> bool:
    """Returns whether a tag may come after another: I- after B- or I- of its type alone."""
    return not tag.startswith("I-") or before in (tag, f"B-{tag[2:]}")


def leave_out(tags: collections.abc.Sequence[str], units: collections.abc.Collection[int]) -> list[str]:
    """Returns the tags of all units but some, which make and break no entity."""
    # An entity that began with one of them begins with the next unit that is left of it.
    left, begun = [], None
    for unit, tag in enumerate(tags):
        if unit not in units:
            left.append(begun if begun and tag == go_on_with(begun) else tag)
            begun = None
        elif tag.startswith("B-"):
            begun = tag
    return left


def put_between(tags: collections.abc.Sequence[str | None]) -> list[str]:
    """Returns tags with one in place of each None: `I-` where the units around it are of one entity, else `O`."""
    found, missing = [], 0
    for tag in tags:
        if tag is None:
            missing += 1
            continue
        goes_on = bool(found) and tag.startswith("I-") and tag == go_on_with(found[-1])
        found += [tag if goes_on else OUTSIDE] * missing + [tag]
        missing = 0
    return found + [OUTSIDE] * missing


# Scores of entities by seqeval's and KLUE's definitions.
#
# seqeval itself is published as source alone, whose build fails on many machines; tests hold its numbers.

Sequences = list[list[str]]


def entity_counts(truth: Sequences, found: Sequences, entities=entities_of) -> Counts:
    """Returns (found and right, found, true) entities by type; `entities` makes them of the tags of a sentence."""
    sets = (map(entities, map(list, sequences)) for sequences in (truth, found))
    return dict(sorted(count_found(*sets, lambda entity: entity.type).items()))


def entity_f1(truth: Sequences, found: Sequences) -> float:
    """Returns the F1 of entities, right where type and borders are (conlleval; seqeval's default)."""
    return f1_of_counts(*totals(entity_counts(truth, found)))


def entity_precision(truth: Sequences, found: Sequences) -> float:
    """Returns the share of the entities found that are right."""
    right, count, _ = totals(entity_counts(truth, found))
    return right / count if count else 0.0


def entity_recall(truth: Sequences, found: Sequences) -> float:
    """Returns the share of the true entities that are found."""
    return entity_precision(found, truth)


def entity_macro_f1(truth: Sequences, found: Sequences) -> float:
    """Returns the mean over the types of the F1 of entities (KLUE-NER: strict IOB2)."""
    counts = entity_counts(truth, found, strict_entities_of)
    return sum(f1_of_counts(*each) for each in counts.values()) / max(1, len(counts))


def character_macro_f1(truth: Sequences, found: Sequences) -> float:
    """Returns the mean over the tags, O among them, of the F1 of characters (KLUE-NER)."""
    # As in KLUE's own evaluation, [CLS] and [SEP] of each sentence count as right O. Tags that are neither true nor
    # found anywhere are left out; there they would count as 1, but its dev set has them all.
    true_tags = [tag for tags in truth for tag in (OUTSIDE, *tags, OUTSIDE)]
    found_tags = [tag for tags in found for tag in (OUTSIDE, *tags, OUTSIDE)]
    true_counts, found_counts = collections.Counter(true_tags), collections.Counter(found_tags)
    right = collections.Counter(one for one, other in zip(true_tags, found_tags) if one == other)
    tags = sorted(true_counts.keys() | found_counts.keys())  # always summed in the same order
    return sum(f1_of_counts(right[tag], found_counts[tag], true_counts[tag]) for tag in tags) / len(tags)


METRICS = {
    "entity_f1": entity_f1,
    "entity_precision": entity_precision,
    "entity_recall": entity_recall,
    "entity_macro_f1": entity_macro_f1,
    "character_macro_f1": character_macro_f1,
}


_MOST_NAMED, _UNITS_SHOWN = 10, 8


@dataclasses.dataclass(frozen=True)
class TaggedText:
    """A sentence.

    Attributes:
        text: As it was written; the words of a file with a word a line are joined with spaces.
        units: Spans (begin, end) in characters of the tagged words, or characters other than spaces.
        tags: A tag for each unit, `B-TYPE`, `I-TYPE` or `O`; None if unknown.
        line: Line in the file, for messages.
        column: Which column its words are read off, where there are several.
    """

    text: str
    units: tuple[tuple[int, int], ...]
    tags: tuple[str, ...] | None
    line: int
    path: str = dataclasses.field(default="", compare=False)
    column: int = dataclasses.field(default=0, compare=False)


def _named(*parts):
    return tuple(f"{part}.{ending}" for part in parts for ending in ("tsv", "txt", "conll"))


@dataclasses.dataclass(frozen=True)
class EntityFiles:
    """The files of a data set: the names that each may have."""

    form: str  # See `read_tagged`.
    train: tuple[str, ...] = _named("train")
    dev: tuple[str, ...] = _named(*DEV_NAMES)
    test: tuple[str, ...] = _named("test", *DEV_NAMES)
    # The first decides which checkpoint is best.
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


@read_once
def read_tagged(path: str, form: str, needs_tags: bool, on_bad_row: str = "fail") -> list[TaggedText]:
    """Returns the sentences of a file, and prints in a line how it was understood.

    Of form "words" it has a sentence a line, its words, a tab, and a tag for each (Naver); of "characters" a character,
    a tab and its tag a line (KLUE); of "conll" a word and its tag a line, with tabs between the columns, or spaces
    where there is no tab. The word is the first column, or the second behind running numbers (Naver's original files);
    the tag is the last. In the latter two an empty line ends a sentence, and `## ` before a sentence begins a comment.
    All tags of a sentence may be missing, unless `needs_tags`.
    """
    bad_rows = BadRows(on_bad_row)
    lines = [row._replace(values=row.values or "") for row in RowFile(path, is_text=True)]
    for row in lines:
        if row.error:
            raise InputError(row.error)
    sentences, described = _READERS[form]([(row.number, row.values) for row in lines])
    found = []
    for sentence in sentences:
        try:
            found.append(dataclasses.replace(sentence(), path=path))
        except _BadLineError as error:
            bad_rows.refuse(f"{path}, line {error.line}: {error}")
    if needs_tags:
        for text in found:
            if text.tags is None:
                raise InputError(f"{path}, line {text.line}: no tags; give each word or character one")
    bad_rows.warn()
    if not found:
        raise InputError(f"{path} has no sentence that can be used")
    count = counted(len(found), "sentence")
    tell_once(f"{path}: {count}, {described}{_describe_tags(found)}\n  the first: {_show(found[0])}")
    return found


def types_of(path: str | tuple[str, ...], form: str, on_bad_row: str = "fail") -> list[str]:
    """Returns the types of the entities in a file, or in several, sorted; arguments as for `read_tagged`."""
    paths = (path,) if isinstance(path, str) else path
    texts = [text for path in paths for text in read_tagged(path, form, needs_tags=True, on_bad_row=on_bad_row)]
    types = sorted({tag.partition("-")[2] for text in texts for tag in text.tags} - {""})
    if not types:
        raise InputError(f"{' and '.join(paths)} has no entity; every tag in it is O")
    return types


def _describe_tags(texts):
    tags = sorted({tag for text in texts for tag in text.tags or ()})
    return f"; {counted(len(tags), 'tag')}: {listed(tags, _MOST_NAMED)}" if tags else "; no tags"


def _show(text):
    """Returns the first units of a sentence, each with its tag."""
    units = [text.text[begin:end] for begin, end in text.units[:_UNITS_SHOWN]]
    shown = [f"{unit}/{tag}" for unit, tag in zip(units, text.tags)] if text.tags else units
    return " ".join(map(shorten, shown)) + (" ..." if len(text.units) > _UNITS_SHOWN else "")


class _BadLineError(Exception):
    def __init__(self, line, message):
        super().__init__(message)
        self.line = line


def _tags(values, line):
    try:
        return tuple(map(normalize_tag, values))
    except ValueError as error:
        raise _BadLineError(line, f"{quote(str(error))} is not a tag such as B-PER, PER-B, I-PER or O") from error


# Each reader takes (number, line)s, and returns a function for each sentence, which gives it or raises _BadLineError,
# and what the form is, in words.


def _read_words(lines):
    sentences = [functools.partial(_sentence_of_words, number, line) for number, line in lines if line.strip()]
    return sentences, "a sentence a line, its words and a tab before their tags"


def _sentence_of_words(number, line):
    text, separator, tags = line.partition("\t")
    units = units_of(text, are_words=True)
    if not separator:
        return TaggedText(text, units, None, number)
    values = tags.split()
    if len(values) != len(units):
        # A word may hold a space that does not break, where only plain ones stand between words.
        units_at_spaces = tuple(match.span() for match in re.finditer(r"[^ ]+", text))
        if len(values) != len(units_at_spaces):
            raise _BadLineError(number, f"{len(units)} words, but {len(values)} tags")
        units = units_at_spaces
    return TaggedText(text, units, _tags(values, number), number)


def _blocks(lines):
    """Yields the (number, line)s of each sentence of a file with a unit a line."""
    block = []
    for number, line in [*lines, (0, "")]:
        if not block and (line == "##" or line.startswith("## ")):
            continue
        if line.strip("\t"):
            block.append((number, line))
        elif block:
            yield block
            block = []


def _read_characters(lines):
    sentences = [functools.partial(_sentence_of_characters, block) for block in _blocks(lines)]
    return sentences, "a character, a tab and its tag a line"


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


def _read_columns(lines):
    """Reads files with a word or a character a line."""
    has_tabs = any("\t" in line.strip() for _, line in lines)
    split = _split_at_tabs if has_tabs else _split_at_spaces
    # What begins a document is left out, and a line of blanks is an empty one.
    lines = [(n, line if line.strip() else "") for n, line in lines if not line.startswith("-DOCSTART-")]
    blocks = [[(number, split(line)) for number, line in block] for block in _blocks(lines)]
    word = int(_counts_words(blocks))
    described = _describe_columns(max((len(row) for block in blocks for _, row in block), default=1), word, has_tabs)
    return [functools.partial(_sentence_of_columns, block, word, has_tabs) for block in blocks], described


def _describe_columns(count, word, has_tabs):
    has_tags = count > word + 1
    tags = f" and its tag (column {count})" if has_tags else ""
    unread = [str(column + 1) for column in range(count - has_tags) if column != word]
    not_read = f"; column {' and '.join(unread)} not read" if unread else ""
    between = "tabs" if has_tabs else "spaces"
    return f"a word (column {word + 1}){tags} a line, {between} between them{not_read}"


def _split_at_tabs(line):
    # Blanks inside a column belong to it; a trailing tab adds none.
    return [value.strip() for value in line.rstrip("\t").split("\t")]


def _split_at_spaces(line):
    return [value for value in line.split(" ") if value]


def _counts_words(blocks):
    """Whether the first column counts the words of most sentences, and another one follows that is no tag."""
    # A damaged sentence, whose numbers miss one, must not turn all numbers into words.

    def is_tag(value):
        try:
            return bool(normalize_tag(value))
        except ValueError:
            return False

    second = [row[1] for block in blocks for _, row in block if len(row) > 1]
    count = sum([row[0] for _, row in block] == [str(n) for n in range(1, len(block) + 1)] for block in blocks)
    return bool(second) and count > len(blocks) / 2 and not all(map(is_tag, second))


def _sentence_of_columns(block, word, has_tabs):
    for number, row in block:
        if has_tabs and len(row) == 1:
            raise _BadLineError(number, "no tab, as other lines have between their columns")
        if len(row) == 2 and len(row[0].split()) == len(row[1].split()) > 1:
            raise _BadLineError(
                number, "a whole sentence and its tags, not one word; `task_name=naver_ner` reads such files"
            )
    has_tags = any(len(row) > word + 1 for _, row in block)
    for number, row in block:
        if len(row) <= word + has_tags or not row[word]:
            raise _BadLineError(number, "not a word and its tag" if has_tags else "no word")
    words = [row[word] for _, row in block]
    begins = itertools.accumulate((len(each) + 1 for each in words[:-1]), initial=0)
    units = tuple((begin, begin + len(each)) for begin, each in zip(begins, words))
    tags = tuple(tag for number, row in block for tag in _tags(row[-1:], number)) if has_tags else None
    return TaggedText(" ".join(words), units, tags, block[0][0], column=word)


_READERS = {"words": _read_words, "characters": _read_characters, "conll": _read_columns}
