"""Documents from files: as a stream, and in chunks of about a million characters that worker processes share out.

At most one chunk is in memory, however large a file, document or line is; for JSON lines and tables, one document.
Running text is split into sentences by a regular expression or by kiwipiepy's morphological analysis.
"""

import collections
import collections.abc
import dataclasses
import functools
import hashlib
import importlib.util
import io
import itertools
import re

from albert_tf.base.console import format_seconds, tell
from albert_tf.base.errors import InputError, with_extra
from albert_tf.base.files import match_files, reading
from albert_tf.reading.blocks import FileStart
from albert_tf.reading.formats import CORPUS_ENDINGS, CorpusFile
from albert_tf.reading.tables import TRAIN_SPLIT, is_saved, saved_splits

ON_BAD_TEXT_CHOICES = ("fail", "skip", "replace")

CHARACTERS_PER_CHUNK = 1 << 20

# A text file with this many lines should have a blank one.
_LINES_OF_UNDIVIDED_FILE = 1000


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Whole documents of one file, together about `CHARACTERS_PER_CHUNK` characters.

    Chunks depend only on the file's content: one ends with the document that fills it, or inside a document that fills
    one by itself, after a line. The last one of a file may hold no document.
    """

    file_index: int  # place of the file in the list of files
    index: int  # place of the chunk in its file, from 0
    documents: list[list[str]]  # the lines of each document, without the spaces at their ends, none empty
    continues: bool  # whether the first document continues one that filled the previous chunk
    num_bytes: int  # size of the text that was read for it, decompressed
    # "bad_lines" or rows, that were skipped or mended; "long_lines", that were cut, having more than
    # `MAX_CHARACTERS_PER_LINE` characters; "long_documents", that were cut, counted where their second part is;
    # "undivided_files", 1 at the end of a text file with many lines and no blank one.
    counts: collections.Counter[str]
    file_position: int  # how many bytes of the file, as it is stored, were read so far
    file_start: FileStart  # what of the file this chunk and those before come from, all of it in the last one


def read_chunks(
    path: str, file_index: int = 0, text_field: str = "text", on_bad_text: str = "fail"
) -> collections.abc.Iterator[Chunk]:
    """Yields the chunks of one file; arguments and errors as of `CorpusReader`."""
    return chunks_of(CorpusFile(path, text_field, on_bad_text), file_index)


def chunks_of(file: CorpusFile, file_index: int) -> collections.abc.Iterator[Chunk]:
    """Yields the chunks of a `CorpusFile`."""
    index, documents, num_characters, continues = 0, [], 0, False
    num_documents = num_lines = 0

    def chunk():
        counts, file.counts = file.counts, collections.Counter()
        places = file.position, file.stored.start
        return Chunk(file_index, index, documents, continues, counts.pop("bytes", 0), counts, *places)

    for document, part in _document_parts(file.batches()):
        if not documents:
            continues = part > 0
        file.counts["long_documents"] += part == 1
        documents.append(document)
        num_documents += part == 0
        num_lines += len(document)
        num_characters += sum(map(len, document))
        if num_characters >= CHARACTERS_PER_CHUNK:
            yield chunk()
            index, documents, num_characters, continues = index + 1, [], 0, False
    is_undivided = file.is_text and num_documents == 1 and num_lines >= _LINES_OF_UNDIVIDED_FILE
    file.counts["undivided_files"] = int(is_undivided)
    yield chunk()


def _document_parts(batches):
    """Yields (lines, part): a document as part 0, or one that is too long for a chunk as parts 0, 1 and so on."""
    document, num_characters, part = [], 0, 0
    for line in itertools.chain(itertools.chain.from_iterable(batches), [""]):
        if line and num_characters < CHARACTERS_PER_CHUNK:
            document.append(line)
            num_characters += len(line)
        elif line:
            yield document, part
            document, num_characters, part = [line], len(line), part + 1
        elif document:
            yield document, part
            document, num_characters, part = [], 0, 0


def describe_reading(num_bytes: int, share: float, seconds: float) -> str:
    """Returns how far reading a corpus has come; `num_bytes` counts decompressed text."""
    return (
        f"{num_bytes / 1e6:,.0f} MB, {share:.0%} of the corpus, {num_bytes / 1e6 / seconds:.1f} MB/s, "
        f"ETA {format_seconds(seconds / max(share, 1e-9) - seconds)}"
    )


def find_corpus_files(patterns: list[str], flag: str) -> list[str]:
    """Returns the files that paths, globs or folders name, sorted, each once; of a folder, those of `CORPUS_ENDINGS`.

    A folder that `datasets` has saved stands for the files of the Dataset, or of the split train of a DatasetDict; the
    other splits, which are there to evaluate on, are named in a line that is printed.

    Raises:
        InputError: A pattern names no file, or a folder can't be read; names the flag.
    """
    patterns = [path for pattern in patterns for path in _saved_files(pattern, flag)]
    return match_files(patterns, flag, CORPUS_ENDINGS)


def _saved_files(pattern, flag):
    folder = pattern.rstrip("/")
    if not is_saved(folder):
        return [pattern]
    splits = saved_splits(folder)
    if TRAIN_SPLIT not in splits:
        raise InputError(
            f"`{flag}`: {folder} has no split {TRAIN_SPLIT} to read, but it has {', '.join(splits)}; name the "
            "folder of one of them"
        )
    others = [name for name in splits if name != TRAIN_SPLIT]
    if others:
        unread = f"and {', '.join(others)} not; name the folders of the splits to read others"
        tell(f"{folder}: of its splits, {TRAIN_SPLIT} is read, {unread}")
    return splits[TRAIN_SPLIT]


@dataclasses.dataclass
class CorpusReader:
    """Reads sentences and documents from files and counts what it skips.

    Attributes:
        paths: Files, local or any that `tf.io.gfile` opens. A name that ends in ".gz" is decompressed; ".jsonl",
            ".ndjson" and ".json" (".gz" too) are JSON lines, ".parquet" is Parquet, ".arrow" a file that `datasets`
            has saved, all else text.
        on_bad_text: What to do with a line that is not UTF-8: "fail", "skip" it, or "replace" the bad bytes by U+FFFD
            (which the tokenizer's normalisation removes). A line of JSON or a row that holds no document can't be
            mended: "replace" skips it.
        text_field: The field of a JSON object, or column of a table, that holds the text. Of several,
            `title,text`, each text begins on a line of its own.
        num_bad_lines: How many such lines were skipped or mended since `lines` last began.
        num_bytes: Size of the text that was read since then, decompressed.
        share_read: Share of the files, as they are stored, that was read since then.
    """

    paths: list[str]
    on_bad_text: str = "fail"
    text_field: str = "text"
    num_bad_lines: int = 0
    num_bytes: int = 0
    share_read: float = 0.0

    def chunks(self, file_index: int) -> collections.abc.Iterator[Chunk]:
        """Yields the chunks of `paths[file_index]`; errors as of `lines`."""
        return read_chunks(self.paths[file_index], file_index, self.text_field, self.on_bad_text)

    def source_of(self, file_index: int) -> str:
        """Returns what is known of the language of a file; an empty string for nothing."""
        return ""

    def sizes(self) -> list[int]:
        """Returns the size of each file in bytes, as it is stored; raises InputError if one can't be read."""
        sizes = []
        for path in self.paths:
            with reading(path) as file:
                file.seek(0, io.SEEK_END)
                sizes.append(file.tell())
        return sizes

    def lines(self) -> collections.abc.Iterator[str]:
        """Yields every line of every file without the spaces at its ends; an empty one after each file and document.

        Of empty lines in a row some may be left out. A line of more than `MAX_CHARACTERS_PER_LINE` characters comes in
        pieces.

        Raises:
            BadCorpusError: A line is not UTF-8 or holds no document and `on_bad_text` is "fail", or a file isn't whole.
            InputError: A file can't be read.
        """
        self.num_bad_lines = self.num_bytes = num_read = 0
        sizes = self.sizes()
        for path, size in zip(self.paths, sizes):
            file = CorpusFile(path, self.text_field, self.on_bad_text)
            for lines in itertools.chain(file.batches(), [[""]]):
                self.num_bad_lines += file.counts.pop("bad_lines", 0)
                self.num_bytes += file.counts.pop("bytes", 0)
                self.share_read = (num_read + file.position) / max(sum(sizes), 1)
                yield from lines
            num_read += size

    def sentences(self) -> collections.abc.Iterator[str]:
        """Yields every line that is not blank."""
        return (line for line in self.lines() if line)

    def documents(self) -> collections.abc.Iterator[list[str]]:
        """Yields each document as its list of sentences; a document never spans two files."""
        for is_sentence, lines in itertools.groupby(self.lines(), key=bool):
            if is_sentence:
                yield list(lines)


# The documents of a chunk of text and their digests.


@dataclasses.dataclass(frozen=True)
class Documents:
    chunk_id: tuple[int, int]  # file number and chunk number within the file; with the seed they key every random draw
    texts: list[list[str]]  # the lines of each document
    # SHA-256 of each document; the parts of a document that was too long for a chunk have the digest of the first, so
    # that they stay together.
    digests: list[bytes]
    part_digests: list[bytes]  # the same, but different for every part of a document that was too long for a chunk
    continues: bool = False  # whether the first document continues the last one of the previous chunk
    source: str = ""  # what `CorpusReader.source_of` says of the file

    def select(self, is_kept: list[bool]) -> "Documents":
        columns = ([*itertools.compress(each, is_kept)] for each in (self.texts, self.digests, self.part_digests))
        return Documents(self.chunk_id, *columns, self.continues and is_kept[0], self.source)


def read_documents(reader: CorpusReader, file_index: int) -> collections.abc.Iterator[tuple[Documents, Chunk]]:
    """Yields the documents of one file, chunk by chunk, with the chunk; errors as of `CorpusReader.lines`."""
    last_digest = last_part_digest = b""
    source = reader.source_of(file_index)
    for chunk in reader.chunks(file_index):
        digests = [hashlib.sha256("\n".join(lines).encode()).digest() for lines in chunk.documents]
        part_digests = list(digests)
        if chunk.continues:
            # Two parts are equal only if everything before them in their documents is equal too.
            part_digests[0] = hashlib.sha256(last_part_digest + digests[0]).digest()
            digests[0] = last_digest
        if digests:
            last_digest, last_part_digest = digests[-1], part_digests[-1]
        places = (file_index, chunk.index), chunk.documents, digests, part_digests
        yield Documents(*places, chunk.continues, source), chunk


def digest_fraction(digest: bytes) -> float:
    """Returns a number in [0, 1) that depends on the document alone."""
    return int.from_bytes(digest[:8], "big") / 2**64


# Running text, split into sentences.

SENTENCE_SPLITTERS = ("none", "rule", "kiwi")


def make_sentence_splitter(name: str) -> collections.abc.Callable[[list[str]], list[str]]:
    """Returns a function from lines to sentences; no sentence spans two lines.

    "none" takes lines for sentences. "rule" splits where a space follows a full stop or the like, or an ending with
    ㅋㅋ. "kiwi" also splits where no mark tells, hundreds of times slower, by a model that the first call loads; raises
    InputError if kiwipiepy is missing.
    """
    if name == "kiwi" and importlib.util.find_spec("kiwipiepy") is None:
        raise InputError(
            f"`sentence_splitter=kiwi` needs kiwipiepy, which is not installed; pip install {with_extra('vocab')}, or "
            "pass `sentence_splitter=rule`"
        )
    if name == "none":
        return list
    split = {"rule": _split_by_rule, "kiwi": _split_by_kiwi}[name]
    return lambda lines: [sentence for line in lines for sentence in split(line)]


_MARK = ".!?…。！？"
# Two of these end a sentence if they follow a syllable in which verb endings end.
_LAUGHTER = "ㅋㅎㅠㅜ^"
_ENDING = "가걸군까나냐네니다데라래아야어요음임자죠지함됨"

_END_OF_SENTENCE = re.compile(
    rf"""
    # The first of a run of marks; a search for one class of characters is the fastest.
    [{_MARK}{_LAUGHTER}](?<![{_MARK}{_LAUGHTER}][{_MARK}{_LAUGHTER}])
    (?:
        (?<=[!?…。！？])
      | (?<=\.)
        (?<!\d\.)  # 1. and 2024. 3. 1.
        (?<!\b[A-Za-z]\.)  # J. and U.S. and e.g.
        (?<!\b(?:Mr|Ms|Dr|St|Jr|Sr|vs|No|no|Co|cf|al|pp)\.)
        (?<!\b(?:Mrs|etc|Inc|Ltd|Vol|vol|Fig|fig|Ver|ver)\.)
        (?<!\b(?:Prof|Corp)\.)
      | (?<=[{_ENDING}][{_LAUGHTER}])[{_LAUGHTER}]
      | (?<=[{_ENDING}][ ][{_LAUGHTER}])[{_LAUGHTER}]
      | (?<=[{_LAUGHTER}])(?=[{_LAUGHTER}]*[{_MARK}])
    )
    [{_MARK}{_LAUGHTER}]*["'”’»)\]}}〉》」』】*]*(?:\[\d+\])*
    # A quotation continues with a particle or with 하다, even after a space.
    (?!\s+이?라(?:고|는|며|면서|던|든|니|서)\b)
    (?!(?<=["”'’»」』])\s+(?:하(?:고|는|며|던|면|면서|자|길|기|였\w*)|했\w*|이?란|[과와은는을를로고며의])\b)
    (?P<space>\s+)
    """,
    re.VERBOSE,
)


def _split_by_rule(line):
    line = line.strip()
    sentences, begin = [], 0
    for match in _END_OF_SENTENCE.finditer(line):
        sentences.append(line[begin : match.start("space")])
        begin = match.end()
    return [*sentences, line[begin:]] if line else []


def _split_by_kiwi(line):
    sentences = _load_kiwi().split_into_sents(line, return_sub_sents=False)
    # Only the borders are taken from kiwi; the characters between its sentences are kept.
    borders = [0, *(sentence.start for sentence in sentences[1:]), len(line)]
    texts = (line[begin:end].strip() for begin, end in itertools.pairwise(borders))
    return [text for text in texts if text]


@functools.cache
def _load_kiwi():
    from kiwipiepy import Kiwi

    return Kiwi(num_workers=1)
