"""The second pass: examples in the order of their keys, padded, masked if the shard is static, and written."""

import collections
import collections.abc

import numpy as np
import tensorflow as tf

from albert_tf.base.files import sha256_of
from albert_tf.pretraining_data import find_packing, records
from albert_tf.pretraining_data.languages import LANGUAGES_FEATURE, numbers_of_languages
from albert_tf.pretraining_data.making.chunk_examples import BuilderOptions
from albert_tf.pretraining_data.making.examples import Examples
from albert_tf.pretraining_data.manifest import HELD_OUT, SPLITS
from albert_tf.pretraining_data.masking import mask_batch
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
