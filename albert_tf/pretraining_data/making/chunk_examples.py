"""One chunk of text to examples: sentences are split and tokenised, and documents cut into segments."""

import collections
import dataclasses
import itertools
import os
import random
import unicodedata

import numpy as np
import tensorflow as tf

from albert_tf.base.files import write_text
from albert_tf.base.sequences import build_trie, find_sequences
from albert_tf.pretraining_data import DEFAULT_PACKING, find_packing
from albert_tf.pretraining_data.entities import NameList, read_names
from albert_tf.pretraining_data.languages import languages_of
from albert_tf.pretraining_data.making.examples import Examples
from albert_tf.pretraining_data.manifest import HELD_OUT, SPLITS, TRAIN, written_masking_options
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.pretraining_data.packing import AFTER_MENTION, BEGINS_MENTION, IN_MENTION, Text, ranges
from albert_tf.pretraining_data.records import CHARACTERS_FEATURE
from albert_tf.reading.documents import Documents, digest_fraction, make_sentence_splitter
from albert_tf.tokenization import Tokenizer, load_tokenizer
from albert_tf.tokenization.vocabulary import CLS, SEP, UNK

# Marks where the text of a corpus mentions entities, so that masking takes each mention as one unit.
#
# A unit ends where a mention does, also within a word: of 이순신은, with the name 이순신, the josa is one by itself.

_NAMES_FILE = "names.txt"


def save_names(names: NameList | None, folder: str) -> None:
    if names is not None:
        write_text(os.path.join(folder, _NAMES_FILE), "".join(f"{name}\n" for name in names.names))


def load_names(folder: str, tokenizer: Tokenizer) -> NameList | None:
    path = os.path.join(folder, _NAMES_FILE)
    return read_names(path, tokenizer) if tf.io.gfile.exists(path) else None


class MentionMarks:
    def __init__(self, names: NameList, tokenizer: Tokenizer):
        self._trie, self._sizes = build_trie(names.pieces, tokenizer.starts_word)
        self._between = tokenizer.vocabulary.id_of(SEP)

    def mark(self, ids: np.ndarray, borders: np.ndarray) -> np.ndarray:
        """Returns `Text.mentions`, int8 [P]; the borders are of sentences, int64."""
        # As one row, in which no name goes on across what stands between sentences.
        places = np.arange(len(ids)) + np.repeat(np.arange(len(borders) - 1), np.diff(borders))
        row = np.full(len(ids) + len(borders), self._between, np.int32)
        row[places] = ids
        _, lengths = find_sequences(self._trie, self._sizes, tf.constant(row[None]))
        lengths = lengths.numpy()[0, places]
        begins = np.flatnonzero(lengths)
        ends = begins + lengths[begins]
        marks = np.zeros(len(ids) + 1, np.int8)
        marks[ends] = AFTER_MENTION
        marks[ranges(begins, ends - begins)] = IN_MENTION
        marks[begins] = BEGINS_MENTION
        return marks[:-1]


_SENTENCES_PER_BATCH = 8192


@dataclasses.dataclass(frozen=True)
class BuilderOptions:
    """How to make examples.

    Attributes:
        max_seq_length: Length of an example, [CLS] and [SEP] included.
        masking_options: How to mask.
        masking: "dynamic" leaves training examples unmasked for the input pipeline; "static" masks them here.
        packing: How sentences become examples, one of `PACKINGS`.
        objective: What is learnt from them where nobody says otherwise; None for the packing's default.
        sentence_splitter: How lines are split into sentences: "none", "rule" or "kiwi".
        deduplicate: Leave out documents whose text has been read before.
        dupe_factor: How many times each training document is cut anew.
        short_seq_prob: Share of examples with a random shorter length.
        sources: The languages that are read, each once: names, or for tables of pairs two of them, joined by +; empty
            where nothing says what language a text is in.
        names_sha256: Hash of the names that masking takes whole. Empty for none.
        num_names: How many of them the vocabulary can spell.
        held_out_fraction: Share of documents kept out of training; their examples are made once, and masked here if
            the packing masks at all.
        random_seed: Seed of every draw.
    """

    max_seq_length: int
    masking_options: MaskingOptions
    masking: str = "dynamic"
    packing: str = DEFAULT_PACKING
    objective: str | None = None
    sentence_splitter: str = "none"
    deduplicate: bool = False
    dupe_factor: int = 1
    short_seq_prob: float = 0.1
    sources: tuple[str, ...] = ()
    names_sha256: str = ""
    num_names: int = 0
    held_out_fraction: float = 0.05
    random_seed: int = 12345

    @property
    def marks_mentions(self) -> bool:
        """Whether records tell where pieces lie in mentions of entities."""
        return bool(self.names_sha256)

    def to_dict(self) -> dict:
        """Returns the options by name, as manifests and unfinished builds hold them."""
        return {**dataclasses.asdict(self), "masking_options": written_masking_options(self.masking_options)}


class ExampleMaker:
    def __init__(self, tokenizer: Tokenizer, options: BuilderOptions, names: NameList | None = None):
        self._tokenizer, self._options = tokenizer, options
        self._mention_marks = names and MentionMarks(names, tokenizer)
        self._split_sentences = make_sentence_splitter(options.sentence_splitter)
        self._packing = find_packing(options.packing)
        self._unknown_id, *self._special_ids = map(tokenizer.vocabulary.id_of, (UNK, CLS, SEP))

    @classmethod
    def load(cls, folder: str, options: BuilderOptions) -> "ExampleMaker":
        tokenizer = load_tokenizer(folder)
        return cls(tokenizer, options, load_names(folder, tokenizer))

    def make(self, documents: Documents) -> tuple[dict[str, Examples], collections.Counter]:
        counts = collections.Counter()
        is_of_pairs = len(languages_of(documents.source)) == 2
        packing = self._packing if is_of_pairs else self._packing.of_one_language()
        sentences = documents.texts if is_of_pairs else list(map(self._split_sentences, documents.texts))
        texts = [sentence for document in sentences for sentence in document]
        ids, word_starts, borders = self._encode(texts)
        mentions = self._mention_marks.mark(ids, borders) if self._mention_marks else None
        num_characters = None
        if CHARACTERS_FEATURE in packing.features:
            num_characters = _characters_of_pieces(texts, borders)
        text = Text([], ids, word_starts, num_characters, mentions)
        # A sentence may hold nothing but characters that normalisation removes.
        is_kept = np.append(True, np.diff(borders) > 0)
        documents_end = np.cumsum(is_kept)[np.cumsum([0, *map(len, sentences)])] - 1
        borders = borders[is_kept]
        inside = frozenset()
        if not is_of_pairs:
            borders, documents_end, inside = self._cut_long_sentences(packing, borders, documents_end, text, counts)

        num_sentences = np.diff(documents_end)
        counts["documents"] += len(sentences) - documents.continues
        counts["one_sentence_documents"] += int((num_sentences == 1).sum())
        counts["sentences"] += int(num_sentences.sum())
        counts["tokens"] += len(ids)
        counts["words"] += int(word_starts.sum())
        counts["unknown_words"] += int((ids == self._unknown_id).sum())

        fraction = self._options.held_out_fraction
        is_held_out = np.array([digest_fraction(digest) < fraction for digest in documents.digests])
        examples = {}
        for split, is_here in ((TRAIN, ~is_held_out), (HELD_OUT, is_held_out)):
            counts[f"{split}_documents"] += int(is_here.sum()) - int(documents.continues and is_here[0])
            here = np.flatnonzero(is_here & (num_sentences > 0))
            chosen = [borders[documents_end[i] : documents_end[i + 1] + 1] for i in here]
            of_split = text._replace(documents=chosen)
            examples[split] = self._cut(packing, split, documents, of_split, inside, counts)
        return examples, counts

    def _encode(self, texts):
        """Returns ids and word starts of all sentences, one after the other, and the borders between sentences."""
        ids, word_starts, borders = [np.zeros(0, np.int32)], [np.zeros(0, bool)], [np.zeros(1, np.int64)]
        for begin in range(0, len(texts), _SENTENCES_PER_BATCH):
            encoded, starts = self._tokenizer.encode_with_word_starts(texts[begin : begin + _SENTENCES_PER_BATCH])
            ids.append(encoded.flat_values.numpy())
            word_starts.append(starts)
            borders.append(borders[-1][-1] + encoded.row_splits.numpy()[1:])
        return np.concatenate(ids), np.concatenate(word_starts), np.concatenate(borders)

    def _cut_long_sentences(self, packing, borders, documents_end, text, counts):
        """Cuts sentences that fit in no example between words; returns borders, documents' ends and the new borders."""
        longest = packing.max_num_pieces(self._options.max_seq_length) - packing.separators_of_sentence
        size, side = packing.part_of_long_sentence(longest)
        places_to_cut, added = text.places_to_cut(), []
        for sentence in np.flatnonzero(np.diff(borders) > longest):
            begin, end = borders[sentence], borders[sentence + 1]
            counts["split_sentences"] += 1
            choices = [np.append(begin + np.flatnonzero(places[begin:end]), end) for places in places_to_cut]
            while end - begin > longest:
                begin = _next_border(choices, begin, size, side, longest)
                added.append(begin)
        if not added:
            return borders, documents_end, frozenset()
        documents_end = documents_end + np.searchsorted(added, borders[documents_end])
        return np.sort(np.concatenate([borders, added])), documents_end, frozenset(map(int, added))

    def _cut(self, packing, split, documents, given, inside_sentences, counts):
        options, source = self._options, documents.source
        room = packing.max_num_pieces(options.max_seq_length)
        num_tokens = sum(int(borders[-1] - borders[0]) for borders in given.documents)
        chosen, of_others = packing.select(given.documents, room)
        counts.update(of_others)
        given = given._replace(documents=chosen)
        number = options.sources.index(source) if source else 0
        parts = []
        for dupe in range(options.dupe_factor if split == TRAIN else 1):
            seed = [options.random_seed, SPLITS.index(split), *documents.chunk_id, dupe]
            generator = random.Random(" ".join(map(str, seed)))
            text = given
            if given.documents:
                text = packing.arrange(given, *self._special_ids, room, generator)
            segments = packing.make_segments(text, room, options.short_seq_prob, generator, inside_sentences)
            segments = np.fromiter(itertools.chain.from_iterable(segments), np.int64).reshape(-1, 5)
            if packing.may_end_with_separator and len(segments):
                # An example gets a [SEP] at its end anyway.
                segments[:, 1] -= text.ids[segments[:, 1] - 1] == self._special_ids[-1]
            # Raw draws stay the same from one version of NumPy to the next.
            keys = np.random.PCG64(seed).random_raw(len(segments))
            if split == TRAIN:
                keys = _keys_of_source(keys, number, len(options.sources))
            parts.append(Examples.from_segments(segments[:, :4], segments[:, 4], keys, *text[1:], source=number))
            counts[f"{split}_tokens"] += num_tokens
            if source:
                counts[f"{split}_tokens_{source}"] += num_tokens
            is_special = np.isin(text.ids, self._special_ids)
            num_used = _count_in(segments[:, 0:4:2].ravel(), segments[:, 1:4:2].ravel(), is_special)
            counts[f"{split}_unused_tokens"] += num_tokens - num_used
        return Examples.concatenate(parts)


def _next_border(choices, begin, size, side, longest):
    """Returns where to cut a long sentence that is left from `begin` on: inside of a word where none begins in reach.

    Each of `choices` is the int64 places to cut at, and the sentence's end; the best come first.
    """
    tries = [(places, size, side) for places in choices]
    if len(choices) > 1:  # rather a smaller part than a mention in two
        tries.insert(1, (choices[0], longest, "right"))
    for places, size_here, side_here in tries:
        border = places[np.searchsorted(places, begin + size_here, side_here) - (side_here == "right")]
        if begin < border <= begin + longest:
            return border
    return begin + size


def _keys_of_source(keys, number, num_sources):
    """Returns keys in the range of a source, so that no shard holds two: shards are equal ranges of keys."""
    if num_sources < 2:
        return keys
    begin, width = -(-(number << 64) // num_sources), (1 << 64) // num_sources
    return np.uint64(begin) + keys % np.uint64(width)


def _characters_of_pieces(texts, borders):
    """Returns how many characters each piece stands for, int32; over a text they add up to its length."""
    sizes = np.diff(borders)
    number = np.arange(borders[-1]) - np.repeat(borders[:-1], sizes)
    # Composed, as where texts are scored: a syllable is one character however the file spells it.
    lengths = np.array([len(unicodedata.normalize("NFC", text)) for text in texts], np.int64)
    length, size = np.repeat(lengths, sizes), np.repeat(sizes, sizes)
    return (length * (number + 1) // size - length * number // size).astype(np.int32)


def _count_in(begins, ends, is_left_out):
    """Returns how many places lie in ranges, each once where ranges overlap, but for those that are left out."""
    order = np.argsort(begins, kind="stable")
    begins, ends = begins[order], ends[order]
    counted_before = np.append(0, np.maximum.accumulate(ends))[:-1]
    begins = np.minimum(np.maximum(begins, counted_before), ends)
    left_out = np.flatnonzero(is_left_out)
    return int((ends - begins).sum() - (np.searchsorted(left_out, ends) - np.searchsorted(left_out, begins)).sum())
