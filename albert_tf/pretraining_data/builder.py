"""Documents to shuffled TFRecord shards and a manifest, in two passes over the disk.

The first pass tokenises documents, cuts them into pairs and deals these out to temporary shards at random; the second
shuffles each shard in memory, masks it if it is static, and writes it under its final name. Every draw is keyed by the
seed and the number of the document or shard, so the same input and options give the same bytes.
"""

import collections
import contextlib
import dataclasses
import hashlib
import itertools
import os
import time

import numpy as np
import tensorflow as tf

import albert_tf
from albert_tf.errors import InputError
from albert_tf.files import write_json
from albert_tf.pretraining_data import records
from albert_tf.pretraining_data.corpus import CorpusReader
from albert_tf.pretraining_data.masking import MaskingOptions, MaskingTokens, mask_batch
from albert_tf.pretraining_data.segments import SegmentPair, Sentence, make_segment_pairs
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.vocabulary import CLS, MASK, PAD, SEP, UNK

MANIFEST_FILE = "manifest.json"
MASKING_CHOICES = ("dynamic", "static")

_SENTENCES_PER_BATCH = 4096
_RECORDS_PER_MASKED_BATCH = 256


@dataclasses.dataclass(frozen=True)
class BuilderOptions:
    """How to make examples.

    Attributes:
        max_seq_length: Length of an example, [CLS] and both [SEP] included.
        masking_options: How to mask.
        masking: "dynamic" leaves training examples unmasked for the input pipeline; "static" masks them here.
        dupe_factor: How many times each training document is cut anew.
        short_seq_prob: Share of examples with a random shorter length.
        held_out_fraction: Share of documents kept out of training; their examples are always static, and made once.
        random_seed: Seed of every draw.
    """

    max_seq_length: int
    masking_options: MaskingOptions
    masking: str = "dynamic"
    dupe_factor: int = 1
    short_seq_prob: float = 0.1
    held_out_fraction: float = 0.05
    random_seed: int = 12345


def masking_tokens(tokenizer: KoreanWordPieceTokenizer) -> MaskingTokens:
    """Returns what masking must know of a tokenizer's vocabulary.

    Raises:
        InputError: A special token is missing, or [PAD] is not the first piece.
    """
    vocabulary = tokenizer.vocabulary
    vocabulary.require_for_training()
    return MaskingTokens(
        mask_id=vocabulary.id_of(MASK),
        unmaskable_ids=(vocabulary.id_of(CLS), vocabulary.id_of(SEP)),
        real_piece_ids=vocabulary.real_piece_ids,
    )


def shard_paths(output_file: str, num_shards: int) -> list[str]:
    """Returns the names of shards: the name itself for one, else name-00000-of-00004 before the extension."""
    if num_shards == 1:
        return [output_file]
    stem, extension = os.path.splitext(output_file)
    return [f"{stem}-{index:05d}-of-{num_shards:05d}{extension}" for index in range(num_shards)]


def build(
    reader: CorpusReader,
    tokenizer: KoreanWordPieceTokenizer,
    options: BuilderOptions,
    train_paths: list[str],
    held_out_paths: list[str],
    report=lambda line: None,
) -> dict:
    """Builds all shards, and manifest.json and the tokenizer beside the first of them.

    Args:
        reader: The documents.
        tokenizer: Tokenizer whose vocabulary holds every special token.
        options: How to make examples.
        train_paths: Shards for training.
        held_out_paths: Shards for evaluation; none if `options.held_out_fraction` is 0.
        report: Called with a line of text now and then while documents are read.

    Returns:
        The manifest.

    Raises:
        InputError: No document holds two sentences, none was left for training or for evaluation, a shard stayed
            empty, or a file can't be written.
    """
    counts = collections.Counter()
    tokens = masking_tokens(tokenizer)
    splits = {"train": _Split("train", train_paths, options.masking == "static", options.dupe_factor)}
    if held_out_paths:
        splits["held_out"] = _Split("held_out", held_out_paths, True, 1)
    with contextlib.ExitStack() as stack:
        for split in splits.values():
            stack.callback(split.remove_temporary_files)
            split.open()
        started = time.monotonic()
        for number, (document, digest) in enumerate(_encoded_documents(reader, tokenizer, counts)):
            is_held_out = digest < options.held_out_fraction
            split = splits["held_out" if is_held_out and held_out_paths else "train"]
            split.counts["documents"] += 1
            for dupe in range(split.dupe_factor):
                random = np.random.default_rng([options.random_seed, number, dupe])
                for pair in make_segment_pairs(document, options.max_seq_length - 3, options.short_seq_prob, random):
                    split.add(_features(pair, tokenizer, options), pair, random)
            if number % 5000 == 4999:
                report(f"{number + 1:,} documents, {(number + 1) / (time.monotonic() - started):,.0f} documents/s")
        _check_counts(reader, counts, splits, options)
        for split in splits.values():
            split.write_shards(options, tokens)
        folder = os.path.dirname(train_paths[0])
        manifest_path = os.path.join(folder, MANIFEST_FILE)
        # Old and new shards lie side by side for a moment: no manifest vouches for such a mixture.
        if tf.io.gfile.exists(manifest_path):
            tf.io.gfile.remove(manifest_path)
        for split in splits.values():
            split.rename_shards()
    tokenizer.save(folder)
    manifest = _manifest(reader, tokenizer, options, counts, splits)
    write_json(manifest_path, manifest)
    return manifest


def _encoded_documents(reader, tokenizer, counts):
    """Yields (sentences, digest) for each document; digest is a float in [0, 1) that depends on its text alone."""
    unknown_id = tokenizer.vocabulary.id_of(UNK)
    batch, num_sentences = [], 0
    for document in itertools.chain(reader.documents(), [None]):
        if document is not None:
            batch.append(document)
            num_sentences += len(document)
        if batch and (document is None or num_sentences >= _SENTENCES_PER_BATCH):
            encoded = _encode_sentences([sentence for document in batch for sentence in document], tokenizer)
            for texts in batch:
                sentences = [next(encoded) for _ in texts]
                sentences = [sentence for sentence in sentences if len(sentence.ids)]
                counts["documents"] += 1
                counts["one_sentence_documents"] += len(sentences) == 1
                counts["sentences"] += len(sentences)
                for sentence in sentences:
                    counts["tokens"] += len(sentence.ids)
                    counts["words"] += int(sentence.word_starts.sum())
                    counts["unknown_words"] += int((sentence.ids == unknown_id).sum())
                digest = hashlib.sha256("\n".join(texts).encode()).digest()
                yield sentences, int.from_bytes(digest[:8], "big") / 2**64
            batch, num_sentences = [], 0


def _encode_sentences(texts, tokenizer):
    words = tokenizer.encode_words(texts)
    ids = words.flat_values.numpy()
    starts = np.zeros(len(ids) + 1, bool)
    starts[words.values.row_splits.numpy()] = True
    bounds = words.merge_dims(1, 2).row_splits.numpy()
    for begin, end in itertools.pairwise(bounds):
        yield Sentence(ids[begin:end], starts[begin:end])


def _features(pair: SegmentPair, tokenizer, options):
    vocabulary, max_seq_length = tokenizer.vocabulary, options.max_seq_length
    cls, sep = [vocabulary.id_of(CLS)], [vocabulary.id_of(SEP)]
    ids = np.concatenate([cls, pair.first.ids, sep, pair.second.ids, sep])
    input_ids = np.full(max_seq_length, vocabulary.id_of(PAD))
    input_ids[: len(ids)] = ids
    positions = np.arange(max_seq_length)
    boundary = np.concatenate([[1], pair.first.word_starts, [1], pair.second.word_starts, [1]])
    return {
        "input_ids": input_ids,
        "input_mask": (positions < len(ids)).astype(int),
        "segment_ids": ((positions >= len(pair.first.ids) + 2) & (positions < len(ids))).astype(int),
        "token_boundary": np.pad(boundary.astype(int), (0, max_seq_length - len(ids))),
        records.LABEL_FEATURE: np.array([pair.is_swapped], int),
    }


class _Split:
    """The shards of one split while they are made, and what is counted on the way."""

    def __init__(self, name, paths, is_static, dupe_factor):
        self.name, self.paths, self.is_static, self.dupe_factor = name, paths, is_static, dupe_factor
        self.temporary_paths = [f"{path}.unshuffled" for path in paths]
        self.examples_per_shard = [0] * len(paths)
        self.counts = collections.Counter()
        self.piece_counts = collections.Counter()
        self._writers = []

    def open(self):
        for path in self.temporary_paths:
            try:
                tf.io.gfile.makedirs(os.path.dirname(path) or ".")
                self._writers.append(tf.io.TFRecordWriter(path))
            except tf.errors.OpError as error:
                raise InputError(f"can't write {path}: {error.message}") from error

    def add(self, features, pair, random):
        shard = int(random.integers(len(self.paths)))
        self._writers[shard].write(records.serialize(features))
        self.examples_per_shard[shard] += 1
        self.counts["examples"] += 1
        self.counts["swapped"] += pair.is_swapped
        self.counts["tokens"] += int(features["input_mask"].sum())
        if self.is_static:
            self.piece_counts.update([*pair.first.ids.tolist(), *pair.second.ids.tolist()])

    def write_shards(self, options, tokens):
        """Shuffles and masks, and leaves the shards under temporary names."""
        for writer in self._writers:
            writer.close()
        for index, (temporary, path) in enumerate(zip(self.temporary_paths, self.paths)):
            seed = [options.random_seed, len(self.name), index]
            serialized = list(tf.data.TFRecordDataset(temporary).as_numpy_iterator())
            order = np.random.default_rng(seed).permutation(len(serialized))
            serialized = [serialized[i] for i in order]
            if self.is_static:
                serialized = self._mask(serialized, options, tokens, seed)
            with tf.io.TFRecordWriter(f"{path}.temporary") as writer:
                for record in serialized:
                    writer.write(record)

    def rename_shards(self):
        for path in self.paths:
            tf.io.gfile.rename(f"{path}.temporary", path, overwrite=True)

    def _mask(self, serialized, options, tokens, seed):
        spec = records.feature_spec(options.max_seq_length, None)
        for batch_number, begin in enumerate(range(0, len(serialized), _RECORDS_PER_MASKED_BATCH)):
            features = tf.io.parse_example(serialized[begin : begin + _RECORDS_PER_MASKED_BATCH], spec)
            features = {name: tf.cast(values, tf.int32) for name, values in features.items()}
            # The shard's draws are its own: no two shards, splits or batches share a seed.
            batch_seed = np.random.default_rng([*seed, batch_number]).integers(2**31, size=2)
            masked = mask_batch(features, options.masking_options, tokens, tf.constant(batch_seed, tf.int32))
            self.counts["masked_tokens"] += int(tf.reduce_sum(masked["masked_lm_weights"]))
            columns = {name: values.numpy() for name, values in masked.items()}
            for row in range(len(columns["input_ids"])):
                yield records.serialize({name: values[row] for name, values in columns.items()})

    def remove_temporary_files(self):
        for writer in self._writers:
            writer.close()
        for path in (*self.temporary_paths, *(f"{path}.temporary" for path in self.paths)):
            if tf.io.gfile.exists(path):
                tf.io.gfile.remove(path)

    def summary(self):
        examples = self.counts["examples"]
        summary = {
            "files": [os.path.basename(path) for path in self.paths],
            "masking": "static" if self.is_static else "dynamic",
            "documents": self.counts["documents"],
            "examples": examples,
            "examples_per_shard": self.examples_per_shard,
            "mean_tokens_per_example": round(self.counts["tokens"] / examples, 2),
            "share_swapped": round(self.counts["swapped"] / examples, 4),
        }
        if self.is_static:
            summary["share_masked"] = round(self.counts["masked_tokens"] / self.counts["tokens"], 4)
            shares = np.array(list(self.piece_counts.values())) / self.piece_counts.total()
            # In nats a piece: the loss of a model that knows how often each piece occurs, and nothing else.
            summary["unigram_entropy"] = round(float(-(shares * np.log(shares)).sum()), 4)
        return summary


def _check_counts(reader, counts, splits, options):
    if not counts["sentences"]:
        raise InputError(f"no text in {', '.join(reader.paths)}; write one sentence a line")
    if not any(split.counts["examples"] for split in splits.values()):
        raise InputError(
            f"every document in {', '.join(reader.paths)} has only one sentence, and sentence order prediction needs "
            "two; write one sentence a line and a blank line between documents"
        )
    for name, split in splits.items():
        if not split.counts["examples"]:
            raise InputError(
                f"no document fell to the {name} split (held_out_fraction={options.held_out_fraction}); "
                "give more documents or change --held_out_fraction"
            )
        if not all(split.examples_per_shard):
            raise InputError(
                f"{split.counts['examples']} examples are too few for {len(split.paths)} shards, of which some stayed "
                "empty; lower --num_shards"
            )


def _manifest(reader, tokenizer, options, counts, splits):
    return {
        "version": albert_tf.__version__,
        "tokenizer": {**tokenizer.to_dict(), "identity": tokenizer.identity},
        "vocab_size": len(tokenizer.vocabulary),
        "max_seq_length": options.max_seq_length,
        "max_predictions_per_seq": options.masking_options.max_predictions_per_seq,
        "options": dataclasses.asdict(options),
        "input_files": [os.path.basename(path) for path in reader.paths],
        "documents": counts["documents"],
        "one_sentence_documents": counts["one_sentence_documents"],
        "sentences": counts["sentences"],
        "words": counts["words"],
        "tokens": counts["tokens"],
        "unknown_word_rate": round(counts["unknown_words"] / counts["words"], 6),
        "bad_lines": reader.num_bad_lines,
        "splits": {name: split.summary() for name, split in splits.items()},
    }
