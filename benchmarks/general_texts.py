"""Korean text of many kinds: its sources, documents held out for evaluation, and mixtures to learn from."""

import collections.abc
import gzip
import itertools
import json
import os
import zlib

from albert_tf.base.files import write_json
from albert_tf.reading.documents import make_sentence_splitter

KINDS = {
    "encyclopaedia": ["kowiki_bysa"],
    "law": ["court_rulings", "statutes"],
    "speeches": ["president_speeches", "assembly_minutes"],
    "guides": ["dev_docs_permissive", "mdn_web_docs", "libreoffice_help", "gnome_help_bysa", "python_docs_ko"],
    "machine-translated": ["microsoft_docs", "adobe_docs"],
    "talk": ["spoken_utterances_bysa", "chat_mit", "tatoeba_ccby"],
    "opinions": ["nsmc_reviews", "comments_mit", "sentences_apeach_bysa", "petitions"],
    "prose": ["fiction_public_domain", "folk_tales_translated", "ud_treebanks_bysa", "press_release_leads"],
}
KIND_OF = {source: kind for kind, sources in KINDS.items() for source in sources}
_HELD_OUT_SHARE, _HELD_OUT_CHARACTERS, _TEXT_CHARACTERS = 0.03, 10_000, 600


def sources(data_dir: str) -> collections.abc.Iterator[tuple[str, str]]:
    """Yields the name and path of each source of text."""
    general = os.path.join(data_dir, "general")
    for name in sorted(os.listdir(general)):
        if name.endswith(".txt.gz"):
            yield name.removesuffix(".txt.gz"), os.path.join(general, name)
    yield "nsmc_reviews", os.path.join(data_dir, "corpus_reviews", "nsmc_reviews.txt.gz")
    yield "python_docs_ko", os.path.join(data_dir, "corpus", "python_docs_ko.txt.gz")
    yield "petitions", os.path.join(data_dir, "corpus_petitions", "petitions.jsonl.gz")


def write_mixtures(data_dir: str, folder: str, mixtures: dict[str, collections.abc.Callable[[dict], dict]]):
    """Writes NAME.txt for each mixture, a sentence a line, and held_out.json: texts of held-out documents by source.

    A mixture is a function that returns for each source which of its documents are taken, given the bytes that each
    has: those whose number, drawn from 0 to 1, is in a range (begin, end). Ranges that don't meet share no document.
    """
    split, held_out, kept = make_sentence_splitter("rule"), {}, {}
    for source, path in sources(data_dir):
        found = {True: [], False: []}
        for document in _documents(path):
            found[_draw(document, "held out") < _HELD_OUT_SHARE].append(document)
        kept[source], held_out[source] = found[False], _texts(found[True])
    sizes = {source: sum(len(line.encode()) + 1 for each in kept[source] for line in each) for source in kept}
    os.makedirs(folder, exist_ok=True)
    for name, mixture in mixtures.items():
        ranges = mixture(sizes)
        chosen = [
            (source, each)
            for source in kept
            for each in kept[source]
            if ranges[source][0] <= _draw(each) < ranges[source][1]
        ]
        chosen.sort(key=lambda pair: _draw(pair[1], "order"))
        with open(os.path.join(folder, f"{name}.txt"), "w", encoding="utf-8") as file:
            file.writelines("\n".join(split(document)) + "\n\n" for _, document in chosen)
        told = {source: f"{(end - begin) * sizes[source] / 1e6:.1f} MB" for source, (begin, end) in ranges.items()}
        print(name, told, flush=True)
    write_json(os.path.join(folder, "held_out.json"), held_out)


def _documents(path):
    """Yields documents, lists of lines."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        if path.endswith(".jsonl.gz"):
            for row in map(json.loads, file):
                yield [line for text in (row["title"], row["text"]) for line in text.split("\n") if line.strip()]
            return
        for is_blank, lines in itertools.groupby(map(str.strip, file), lambda line: not line):
            if not is_blank:
                yield list(lines)


def _texts(documents):
    """Returns the beginnings of documents, until they have enough characters together."""
    texts = []
    for document in documents:
        text = " ".join(document)
        if len(text) > _TEXT_CHARACTERS:
            text = text[:_TEXT_CHARACTERS].rpartition(" ")[0]
        if text and sum(map(len, texts)) < _HELD_OUT_CHARACTERS:
            texts.append(text)
    return texts


def _draw(document, salt=""):
    """Returns a number from 0 to 1 that depends on nothing but the document."""
    return zlib.crc32((salt + "\n".join(document)).encode()) / 2**32
