"""The second pass and the end of a build: shards are written, then their manifest, and all is moved into place.

Examples are written in the order of their keys, padded, and masked if the shard is static. The manifest comes after the
counts are checked.
"""

import collections
import collections.abc
import os

import numpy as np
import tensorflow as tf

import albert_tf
from albert_tf.base.errors import InputError
from albert_tf.base.files import sha256_of, write_json
from albert_tf.pretraining_data import find_packing, records
from albert_tf.pretraining_data.languages import LANGUAGES_FEATURE, numbers_of_languages
from albert_tf.pretraining_data.making.chunk_examples import BuilderOptions
from albert_tf.pretraining_data.making.examples import Examples
from albert_tf.pretraining_data.making.state import WorkFolder
from albert_tf.pretraining_data.manifest import (
    HELD_OUT,
    MANIFEST_FILE,
    SPLITS,
    TRAIN,
    decisive_options,
    features_of,
    find_old_shards,
    read_manifest,
    written_options,
)
from albert_tf.pretraining_data.masking import mask_batch
from albert_tf.pretraining_data.records import MENTIONS_FEATURE
from albert_tf.reading.blocks import BadCorpusError
from albert_tf.reading.documents import CorpusReader
from albert_tf.reading.rows import counted
from albert_tf.tokenization import Tokenizer, load_tokenizer
from albert_tf.tokenization.vocabulary import CLS, PAD, SEP

_EXAMPLES_PER_BATCH = 1024


class ShardWriter:
    def __init__(self, tokenizer: Tokenizer, options: BuilderOptions):
        self._options, self._packing = options, find_packing(options.packing)
        self._special_ids = [tokenizer.vocabulary.id_of(token) for token in (PAD, CLS, SEP)]
        self._vocab_size = len(tokenizer.vocabulary)
        self._languages = numbers_of_languages(options.sources) if options.sources else None
        masking = options.masking_options.with_tokens_of(tokenizer.vocabulary)
        sequence = tf.TensorSpec([None, options.max_seq_length], tf.int32)
        self._mask = tf.function(
            lambda features, seed: mask_batch(features, masking, seed),
            input_signature=[dict.fromkeys(records.SEQUENCE_FEATURES, sequence), tf.TensorSpec([2], tf.int64)],
            autograph=False,
        )

    @classmethod
    def load(cls, folder: str, options: BuilderOptions) -> "ShardWriter":
        return cls(load_tokenizer(folder), options)

    def write(self, path: str, split: str, shard: int, parts: collections.abc.Iterable[Examples]) -> dict:
        """Writes a shard under a temporary name, then renames it; its number keys the draws of its masks.

        Every key of a part must be less than those of the next. Returns counts, `sha256` of the file, and
        `piece_counts` [vocab_size] if the shard is static or held out.
        """
        is_static = is_static_split(split, self._options)
        counts_pieces = is_static or split == HELD_OUT
        counts = collections.Counter(dict.fromkeys(("examples", "tokens", "masked_tokens", "full_examples"), 0))
        piece_counts = np.zeros(self._vocab_size, np.int64)
        seed = np.random.SeedSequence([self._options.random_seed, SPLITS.index(split), shard])
        _, cls_id, sep_id = self._special_ids
        temporary = f"{path}.temporary"
        with tf.io.TFRecordWriter(temporary) as writer:
            for examples in _batches(parts):
                features = examples.padded(
                    self._options.max_seq_length,
                    *self._special_ids,
                    self._packing.segments_alternate,
                    self._packing.adds_separators,
                    self._options.marks_mentions,
                )
                of_packing = {records.LABEL_FEATURE: examples.labels, **self._packing.further_features(features)}
                if records.CHARACTERS_FEATURE in self._packing.features:
                    of_packing[records.CHARACTERS_FEATURE] = examples.num_characters
                if self._languages is not None:
                    of_packing[LANGUAGES_FEATURE] = self._languages[examples.sources, examples.labels]
                counts.update({"examples": len(examples), **self._packing.count({**features, **of_packing})})
                counts["tokens"] += int(features["input_mask"].sum())
                in_mention = features.pop(records.MENTIONS_FEATURE, None)
                if in_mention is not None:
                    of_packing[records.MENTIONS_FEATURE] = in_mention
                    counts["mentions"] += int((in_mention * features["token_boundary"]).sum())
                    counts["mention_tokens"] += int(in_mention.sum())
                counts["full_examples"] += int(features["input_mask"][:, -1].sum())
                if counts_pieces:
                    piece_counts += np.bincount(examples.ids, minlength=self._vocab_size)
                    # Inside examples, but never to be predicted.
                    piece_counts[sep_id if self._packing.masks_pieces else cls_id] = 0
                if is_static:
                    [batch_seed] = seed.spawn(1)
                    features = self._mask(features, batch_seed.generate_state(2).astype(np.int64))
                    features = {name: values.numpy() for name, values in features.items()}
                    counts["masked_tokens"] += int(features["masked_lm_weights"].sum())
                    if in_mention is not None:
                        rows = np.arange(len(in_mention))[:, None]
                        masked = in_mention[rows, features["masked_lm_positions"]] * features["masked_lm_weights"]
                        counts["masked_mention_tokens"] += int(masked.sum())
                for record in records.serialize({**features, **of_packing}):
                    writer.write(record)
        # TensorFlow's writer can't tell them.
        counts["bytes"], counts["sha256"] = tf.io.gfile.stat(temporary).length, sha256_of(temporary)
        tf.io.gfile.rename(temporary, path, overwrite=True)
        return {**counts, "piece_counts": piece_counts.tolist()} if counts_pieces else counts


def is_static_split(split: str, options: BuilderOptions) -> bool:
    return find_packing(options.packing).masks_pieces and (split == HELD_OUT or options.masking == "static")


def _batches(parts):
    """Yields batches of one size, whatever the sizes of the parts; only the last may be smaller."""
    rest = []
    for part in parts:
        batches = Examples.concatenate([*rest, part.sorted_by_key()]).split(_EXAMPLES_PER_BATCH)
        rest = [batches.pop()] if batches and len(batches[-1]) < _EXAMPLES_PER_BATCH else []
        yield from batches
    yield from rest


_INPUT_DIGESTS, _INPUT_SOURCES = "sha256_per_input_file", "source_per_input_file"

# Of the corpus, in the order of the manifest.
_CORPUS_COUNTS = (
    *("documents", "duplicate_documents", "one_sentence_documents", "long_documents", "undivided_files"),
    *("sentences", "long_lines", "split_sentences", "words", "tokens", "bad_lines"),
)


def publish(
    reader: CorpusReader,
    tokenizer: Tokenizer,
    options: BuilderOptions,
    shards: dict[str, list[str]],
    work: WorkFolder,
    counts: collections.Counter,
    shard_counts: dict[str, list[dict]],
) -> dict:
    """Moves the shards to their places, deletes earlier ones and the work folder, and returns the manifest.

    While old and new shards lie side by side, no manifest vouches for them.
    """
    folder = os.path.dirname(shards[TRAIN][0])
    manifest_path, old_manifest_path = (os.path.join(place, MANIFEST_FILE) for place in (folder, work.path))
    if tf.io.gfile.exists(manifest_path):
        tf.io.gfile.rename(manifest_path, old_manifest_path, overwrite=True)
    old_shards = find_old_shards(folder, old_manifest_path)
    for split, paths in shards.items():
        for shard, path in enumerate(paths):
            if tf.io.gfile.exists(work.shard_path(split, shard)):  # a killed build may have moved it
                tf.io.gfile.rename(work.shard_path(split, shard), path, overwrite=True)
    for path in old_shards.keys() - {path for paths in shards.values() for path in paths}:
        size, digest = old_shards[path]
        # A file of other bytes is no longer the shard that the manifest lists.
        if tf.io.gfile.exists(path) and tf.io.gfile.stat(path).length == size and digest in (None, sha256_of(path)):
            tf.io.gfile.remove(path)
    tokenizer.save(folder)
    manifest = _make_manifest(reader, tokenizer, options, work, counts, shards, shard_counts)
    write_json(manifest_path, manifest)
    work.remove()
    return manifest


def _make_manifest(reader, tokenizer, options, work, counts, shards, shard_counts):
    packing = find_packing(options.packing)
    return {
        "version": albert_tf.__version__,
        "tokenizer": {**tokenizer.to_dict(), "identity": tokenizer.identity},
        "vocab_size": len(tokenizer.vocabulary),
        "max_seq_length": options.max_seq_length,
        "max_predictions_per_seq": options.masking_options.max_predictions_per_seq,
        "options": written_options(options.to_dict()),
        "features": {
            **features_of(packing, options.sources),
            **({MENTIONS_FEATURE: None} if options.marks_mentions else {}),
        },
        "input_files": [os.path.basename(path) for path in reader.paths],
        **_sources_of(reader, options),
        "text_field": reader.text_field,
        "on_bad_text": reader.on_bad_text,
        _INPUT_DIGESTS: [work.input_file(index).sha256 for index in range(len(reader.paths))],
        **{name: counts[name] for name in (*_CORPUS_COUNTS, *packing.counted_of_corpus)},
        "unknown_word_rate": round(counts["unknown_words"] / counts["words"], 6),
        "splits": {
            split: _describe_split(split, paths, options, counts, shard_counts[split])
            for split, paths in shards.items()
        },
    }


def check_counts(
    reader: CorpusReader, options: BuilderOptions, counts: collections.Counter, examples_per_shard: dict[str, list[int]]
) -> None:
    """Raises BadCorpusError unless there is an example for every shard; it says what the corpus lacks."""
    if not counts["sentences"]:
        raise BadCorpusError(f"no text in {', '.join(reader.paths)}; write one sentence a line")
    if not any(map(sum, examples_per_shard.values())):
        raise BadCorpusError(f"{', '.join(reader.paths)}: {find_packing(options.packing).what_it_needs}")
    for split, numbers in examples_per_shard.items():
        if not sum(numbers):
            raise BadCorpusError(
                f"no document fell to the {split} split (held_out_fraction={options.held_out_fraction}); "
                "give more documents (a blank line ends one) or change `held_out_fraction`"
            )
        _check_languages(options.sources, split, numbers)
        if not all(numbers):
            raise BadCorpusError(f"{sum(numbers)} examples are too few for {len(numbers)} shards; lower `num_shards`")


def _check_languages(sources, split, numbers):
    """Raises BadCorpusError, which names the language, if there are too few examples of one for its shards."""
    if len(sources) < 2 or split != TRAIN:
        return
    for name, of_source in zip(sources, np.array_split(numbers, len(sources))):
        if not of_source.all():
            raise BadCorpusError(
                f"{of_source.sum()} examples of {name} are too few for its {counted(len(of_source), 'shard')}; give "
                "more of its text (a blank line ends a document), lower `held_out_fraction`"
                + (" or lower `num_shards`" if len(of_source) > 1 else "")
            )


def describe_finished(
    path: str,
    reader: CorpusReader,
    tokenizer: Tokenizer,
    options: BuilderOptions,
    train_paths: list[str],
    held_out_paths: list[str],
    is_anew: bool = False,
) -> str | None:
    """Returns a sentence if the shards that this input and these options give are there already, else None.

    Raises InputError if only the text is another, or a shard isn't the one in the manifest, unless `is_anew`.
    """
    manifest = read_manifest(path)
    listed = {split: found.get("files") for split, found in manifest.get("splits", {}).items()}
    shards = {TRAIN: train_paths, HELD_OUT: held_out_paths}
    if (
        listed != {split: list(map(os.path.basename, paths)) for split, paths in shards.items() if paths}
        or manifest.get("input_files") != [os.path.basename(path) for path in reader.paths]
        or manifest.get(_INPUT_SOURCES) != _sources_of(reader, options).get(_INPUT_SOURCES)
        or manifest.get("text_field", reader.text_field) != reader.text_field
        or (manifest.get("bad_lines") and manifest.get("on_bad_text", reader.on_bad_text) != reader.on_bad_text)
        or decisive_options(manifest.get("options")) != decisive_options(options.to_dict())
        or manifest.get("tokenizer", {}).get("identity") != tokenizer.identity
    ):
        return None
    if (changed := _find_changed(manifest, path, reader, shards)) and not is_anew:
        raise InputError(f"{changed}; put it back, or pass `overwrite` to make all shards anew")
    return None if changed else f"{path} says that this data is finished"


def _sources_of(reader, options):
    """Returns the manifest's entry for the languages of the files; empty where none are named."""
    return {_INPUT_SOURCES: list(map(reader.source_of, range(len(reader.paths))))} if options.sources else {}


def _find_changed(manifest, manifest_path, reader, shards):
    for split, paths in shards.items():
        for path, size in zip(paths, manifest["splits"].get(split, {}).get("bytes_per_shard", [])):
            if not tf.io.gfile.exists(path) or tf.io.gfile.stat(path).length != size:
                return f"{path} is not the shard that {manifest_path} lists"
    for path, digest in zip(reader.paths, manifest.get(_INPUT_DIGESTS, [])):
        if sha256_of(path) != digest:
            return f"{path} is not the text that {manifest_path} was made from"
    return None


def _describe_split(split, paths, options, counts, shard_counts):
    def total(name):
        return sum(shard[name] for shard in shard_counts)

    packing, is_static = find_packing(options.packing), is_static_split(split, options)
    description = {
        "files": [os.path.basename(path) for path in paths],
        "masking": ("static" if is_static else "dynamic") if packing.masks_pieces else "none",
        "documents": counts[f"{split}_documents"],
        "tokens": counts[f"{split}_tokens"],
        "examples": total("examples"),
        "examples_per_shard": [shard["examples"] for shard in shard_counts],
        "bytes_per_shard": [shard["bytes"] for shard in shard_counts],
        "sha256_per_shard": [shard["sha256"] for shard in shard_counts],
        "mean_tokens_per_example": round(total("tokens") / total("examples"), 2),
        "share_full": round(total("full_examples") / total("examples"), 4),
        # Of the pieces of its documents: cut off, or of a document of one sentence.
        "share_unused_tokens": round(counts[f"{split}_unused_tokens"] / counts[f"{split}_tokens"], 4),
    }
    if options.sources:
        description["tokens_per_source"] = {name: counts[f"{split}_tokens_{name}"] for name in options.sources}
    totals = {name: total(name) for name, value in shard_counts[0].items() if isinstance(value, int)}
    description |= packing.describe(totals)
    if is_static:
        description["share_masked"] = round(total("masked_tokens") / total("tokens"), 4)
    if options.marks_mentions:
        description["mentions"] = total("mentions")
        description["share_in_mentions"] = round(total("mention_tokens") / total("tokens"), 4)
    if options.marks_mentions and is_static and total("masked_tokens"):
        share = total("masked_mention_tokens") / total("masked_tokens")
        description["share_of_masked_in_mentions"] = round(share, 4)
    if "piece_counts" in shard_counts[0]:
        piece_counts = np.sum([shard["piece_counts"] for shard in shard_counts], axis=0)
        shares = piece_counts[piece_counts > 0] / piece_counts.sum()
        # In nats a piece: the loss of a model that knows how often each piece occurs, and nothing else.
        description["unigram_entropy"] = round(float(-(shares * np.log(shares)).sum()), 4)
    return description
