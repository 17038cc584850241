"""Texts of several languages: which file is in which, their names and numbers, and how often each is drawn.

A table of texts and their translations is in two.
"""

import collections.abc
import dataclasses
import math

import numpy as np

from albert_tf.base.errors import InputError, listed, quote
from albert_tf.reading.blocks import MAX_CHARACTERS_PER_LINE, BadCorpusError
from albert_tf.reading.documents import Chunk, CorpusReader, chunks_of, find_corpus_files
from albert_tf.reading.formats import BadLineError, CorpusFile
from albert_tf.reading.rows import RowFile

# In a record: the numbers of the languages of the segments 0 and 1.
LANGUAGES_FEATURE = "languages"
# Between the two languages of a table of pairs.
JOIN = "+"


def languages_of(source: str) -> tuple[str, ...]:
    """Returns the languages of one source of text: `korean` has one, `korean+english`, a table of pairs, two."""
    return tuple(source.split(JOIN))


def all_languages(sources: collections.abc.Iterable[str]) -> tuple[str, ...]:
    """Returns the languages of all sources, each once, in the order in which they are numbered."""
    return tuple(dict.fromkeys(name for source in sources for name in languages_of(source)))


def numbers_of_languages(sources: collections.abc.Sequence[str]) -> np.ndarray:
    """Returns the numbers of the languages of segments 0 and 1, int32 [sources, 2, 2]: by source, and by label.

    Label 1 of a pair means that the second language comes first; elsewhere all is in one language.
    """
    numbers = {name: number for number, name in enumerate(all_languages(sources))}
    pairs = [[numbers[name] for name in (languages_of(source) * 2)[:2]] for source in sources]
    return np.array([[pair, pair[::-1]] for pair in pairs], np.int32)


def check_sources(sources: list[str]) -> None:
    """Raises InputError if `languages` doesn't name languages, or pairs of two of them."""
    for source in sources:
        names = languages_of(source)
        if len(names) > 2 or len(set(names)) < len(names) or not all(name.strip() == name != "" for name in names):
            raise InputError(
                f"`languages={','.join(sources)}`: {source!r} is neither a language nor two of them, as in "
                f"korean{JOIN}english; name one for each path of `input_file`"
            )


def sampling_shares(sizes: list[int], exponent: float) -> list[float]:
    """Returns how often each language is drawn: its share of the text to the power of an exponent, made to add up to 1.

    Conneau and Lample (2019), section 3.1. Sizes are in pieces. Raises InputError if the exponent is not from 0 to 1.
    """
    if not 0 <= exponent <= 1:  # nor NaN
        raise InputError(
            f"`language_exponent={exponent:g}` must be from 0 (all languages alike) to 1 (by their amount of text)"
        )
    powers = [(size / sum(sizes)) ** exponent for size in sizes]
    return [power / sum(powers) for power in powers]


# What a table's name ends in that no text's does.
_TABLE_ENDINGS = (".tsv", ".csv")


@dataclasses.dataclass
class SourceReader(CorpusReader):
    """Reads files that are each in one language, or tables of pairs in two, joined by +, which name its columns."""

    sources: list[str] = dataclasses.field(default_factory=list)

    def chunks(self, file_index: int) -> collections.abc.Iterator[Chunk]:
        names = languages_of(self.sources[file_index])
        if len(names) == 1:
            return super().chunks(file_index)
        return chunks_of(PairFile(self.paths[file_index], names, self.on_bad_text), file_index)

    def source_of(self, file_index: int) -> str:
        return self.sources[file_index]


class PairFile(CorpusFile):
    """A table of texts and their translations, each batch a pair; a bad row is skipped, never mended."""

    remedies = "`on_bad_text=skip` to leave such rows out"
    bad_so_far, are_bad = math.inf, "rows are bad"

    def __init__(self, path: str, columns: tuple[str, ...], on_bad_text: str):
        super().__init__(path, "", on_bad_text)
        self._columns, self.is_text = columns, False

    def read(self):
        """Raises BadCorpusError for a missing column, too."""
        self.read_whole()
        try:
            table = RowFile(self._path)
            if table.columns is not None:
                how = f"name the languages after the columns, with `languages`, such as korean{JOIN}english"
                table.check_columns(list(self._columns), table.columns, how)
            for row in table:
                self.position = row.position
                pair = self.parsed(self._parse_pair, (row, table.place(row.number)), table.unit, row.number)
                self.counts["bytes"] += sum(len(text.encode()) for text in pair)
                yield pair
        except BadCorpusError:
            raise
        except InputError as error:  # the file has just been read as a whole
            raise BadCorpusError(str(error)) from error

    def _parse_pair(self, content, errors):
        row, place = content
        if row.error:
            raise BadLineError(row.error.removeprefix(f"{place}: "))
        texts = []
        for name in self._columns:
            value = row.values.get(name) if isinstance(row.values, dict) else None
            text = " ".join(value.split()) if isinstance(value, str) else ""
            if not text:
                what = "is empty" if isinstance(value, str) else "is no text"
                raise BadLineError(f'"{name}" {what}; a pair needs a text in both languages')
            if len(text) > MAX_CHARACTERS_PER_LINE:
                raise BadLineError(f'"{name}" has more than {MAX_CHARACTERS_PER_LINE:,} characters; split it')
            texts.append(text)
        return [*texts, ""]


def find_sources(patterns: list[str], languages: list[str], takes_pairs: bool) -> tuple[list[str], list[str]]:
    """Returns the files that `input_file` names, and the language or languages of each.

    Without `languages`, the file is a table of pairs, whose header names them. Raises InputError if there are more or
    fewer than paths or globs, a file has two, or a table has other columns.
    """
    if not languages:
        paths = find_corpus_files(patterns, "input_file")
        return paths, [JOIN.join(_columns_of(paths[0]))] * len(paths)
    check_sources(languages)
    if len(patterns) != len(languages):
        raise InputError(
            f"`languages` names {len(languages)} ({', '.join(languages)}) and `input_file` {len(patterns)} paths or "
            "globs; name one language for each of them"
        )
    if not takes_pairs and (pairs := [source for source in languages if JOIN in source]):
        raise InputError(
            f"`languages={','.join(languages)}`: {pairs[0]} is a table of pairs, which only `objective=translation` "
            "takes; leave it out, or choose that"
        )
    found = {}
    for pattern, source in zip(patterns, languages):
        for path in find_corpus_files([pattern], "input_file"):
            if found.setdefault(path, source) != source:
                raise InputError(f"`languages`: {path} is declared as both {found[path]} and {source}; choose one")
    return list(found), list(found.values())


def refuse_tables(paths: list[str]) -> None:
    """Raises InputError if one of the files to be read as text has the name of a table."""
    for path in paths:
        if _is_table(path):
            raise InputError(
                f"{path} is a table, for `objective=translation`; other objectives need text, JSON lines or Parquet"
            )


def refuse_pairs(paths: list[str], languages: list[str]) -> None:
    """Raises InputError if a vocabulary is to be made of a table of pairs, whose languages would be one text."""
    found = [f"{path} is a table" for path in paths if _is_table(path)]
    found += [f"{source} is a table of pairs" for source in languages if JOIN in source]
    if found:
        raise InputError(
            f"{found[0]}, but only text is read here; write each language into a file, or a column (`text_field`)"
        )


def _is_table(path):
    return path.lower().removesuffix(".gz").endswith(_TABLE_ENDINGS)


def _columns_of(path):
    """Returns the two columns of a table; of JSON lines those of the first object."""
    table = RowFile(path)
    columns = table.columns
    if columns is None:
        first = next(iter(table), None)
        columns = tuple(first.values) if first and isinstance(first.values, dict) else ()
    if len(columns) != 2:
        raise InputError(
            f"{path} has the columns {listed(columns) or '(none)'}, but a pair has two; name these with "
            f"`languages`, such as korean{JOIN}english"
        )
    if any(len(name.split()) > 1 for name in columns):
        raise InputError(
            f"{path} begins with {' and '.join(map(quote, columns))}, which look like texts, not the names of two "
            f"languages; write a first line such as korean, tab, english, or name the columns with `languages`"
        )
    check_sources([JOIN.join(columns)])
    return columns
