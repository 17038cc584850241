"""Reads one shard for inspection, whoever wrote it, in memory that doesn't grow with it."""

import collections.abc
import dataclasses
import os

import numpy as np
import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.pretraining_data import records
from albert_tf.pretraining_data.manifest import MANIFEST_FILE, masking_options, packing_of, read_manifest
from albert_tf.pretraining_data.masking import MaskingOptions, MaskingTokens, mask_batch
from albert_tf.tokenization import KoreanWordPieceTokenizer, load_tokenizer
from albert_tf.tokenization.tokenizer import TOKENIZER_FILE, VOCABULARY_FILE
from albert_tf.tokenization.vocabulary import Vocabulary

_EXAMPLES_PER_BATCH = 256
_ID_FEATURES = ("input_ids", "masked_lm_ids")


@dataclasses.dataclass(frozen=True)
class ShardBatch:
    """B examples of S positions each."""

    input_ids: np.ndarray  # int64 [B, S], what the model sees
    original_ids: np.ndarray  # the same before masking
    segment_ids: np.ndarray  # int64 [B, S]
    is_used: np.ndarray  # bool [B, S], False where padded
    is_special: np.ndarray  # bool [B, S], True at [CLS] and [SEP]
    is_chosen: np.ndarray  # bool [B, S], True where the model must predict the piece
    word_starts: np.ndarray  # bool [B, S]; a special token, and what follows one, always starts a word
    labels: np.ndarray  # int64 [B], `next_sentence_labels`
    in_mention: np.ndarray | None = None  # bool [B, S], True in mentions of entities that are masked whole


class ShardReader:
    """Reads a shard with the help of the manifest and the tokenizer beside it, where there are any.

    Without a vocabulary the special tokens are known by their places: [CLS] comes first, [SEP] last, and most of the
    masked pieces became [MASK]. Where `is_masked`, `read` gives masks, drawn as in an epoch of training if the shard is
    dynamic. `vocabulary` and `mask_id` are None if unknown, and `manifest` is empty.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = os.fspath(path)
        self.is_static = records.is_static(self.path)
        folder = os.path.dirname(self.path)
        manifest_path = os.path.join(folder, MANIFEST_FILE)
        self.manifest = read_manifest(manifest_path)
        self.packing = packing_of(self.manifest, manifest_path)
        masking = masking_options(self.manifest, manifest_path)
        tokenizer = _load_tokenizer(folder, self.manifest)
        self.vocabulary = tokenizer and tokenizer.vocabulary
        self._starts_word = tokenizer and tokenizer.starts_word
        may_be_masked = self.packing.masks_pieces and None not in (self.vocabulary, masking)
        self.is_masked = self.is_static or may_be_masked

        self._spec = _spec_of(self.path, self.is_static)
        self.max_seq_length = self._spec["input_ids"].shape[0]
        masking = masking or MaskingOptions()
        if self.vocabulary is None:
            self._masking = dataclasses.replace(masking, tokens=_guess_tokens(next(self._parsed())))
        else:
            self._masking = masking.with_tokens_of(self.vocabulary)
        self.mask_id = self._masking.tokens.mask_id

    def name_of(self, piece_id: int) -> str:
        """Returns a piece, or its id where the vocabulary is unknown."""
        return self.vocabulary.pieces[piece_id] if self.vocabulary else str(piece_id)

    def read(self) -> collections.abc.Iterator[ShardBatch]:
        for number, features in enumerate(self._parsed()):
            if self.is_masked and not self.is_static:
                unmasked = {name: tf.constant(features[name], tf.int32) for name in records.SEQUENCE_FEATURES}
                masked = mask_batch(unmasked, self._masking, tf.constant([0, number]))
                features |= {name: values.numpy() for name, values in masked.items()}
            original_ids, is_chosen = _undo_masks(features)
            is_used = features["input_mask"] == 1
            is_special = is_used & np.isin(original_ids, self._masking.tokens.unmaskable_ids)
            yield ShardBatch(
                input_ids=features["input_ids"],
                original_ids=original_ids,
                segment_ids=features["segment_ids"],
                is_used=is_used,
                is_special=is_special,
                is_chosen=is_chosen,
                word_starts=self._word_starts(features, original_ids, is_special),
                labels=features[records.LABEL_FEATURE][:, 0],
                in_mention=features[records.MENTIONS_FEATURE] == 1 if records.MENTIONS_FEATURE in features else None,
            )

    def _parsed(self):
        count = 0
        try:
            for serialized in tf.data.TFRecordDataset(self.path).batch(_EXAMPLES_PER_BATCH):
                parsed = tf.io.parse_example(serialized, self._spec)
                features = {name: values.numpy() for name, values in parsed.items()}
                self._check_ids(features, count)
                yield features
                count += len(serialized)
        except tf.errors.DataLossError as error:
            raise InputError(
                f"{self.path} is damaged somewhere after record {count:,}; run create_pretraining_data.py again"
            ) from error
        except tf.errors.InvalidArgumentError as error:
            raise InputError(
                f"{self.path}: a record after number {count:,} has other features or lengths than the first; "
                "run create_pretraining_data.py again"
            ) from error

    def _check_ids(self, features, count):
        ids = np.concatenate([features[name] for name in _ID_FEATURES if name in features], axis=1)
        if self.vocabulary and not 0 <= ids.min() <= ids.max() < len(self.vocabulary):
            raise InputError(
                f"{self.path}: a record after number {count:,} holds the id {ids.max()}, but {self.vocabulary.source} "
                f"has {len(self.vocabulary):,} pieces; put back the vocabulary that the shard was made with"
            )

    def _word_starts(self, features, original_ids, is_special):
        if "token_boundary" in features:
            starts = features["token_boundary"] == 1
        elif self.vocabulary:
            starts = self._starts_word[original_ids]
        else:
            starts = np.ones_like(is_special)
        return starts | is_special | np.pad(is_special[:, :-1], [(0, 0), (1, 0)])


def _load_tokenizer(folder, manifest):
    """Returns the tokenizer in a folder, None if there is none; shards of the original may have a vocab.txt alone."""
    if tf.io.gfile.exists(os.path.join(folder, TOKENIZER_FILE)):
        tokenizer = load_tokenizer(folder)
    elif tf.io.gfile.exists(os.path.join(folder, VOCABULARY_FILE)):
        tokenizer = KoreanWordPieceTokenizer(Vocabulary.from_file(os.path.join(folder, VOCABULARY_FILE)))
    else:
        return None
    made_with = {name: value for name, value in manifest.get("tokenizer", {}).items() if name.endswith("_sha256")}
    if not made_with.items() <= tokenizer.to_dict().items():
        raise InputError(
            f"{tokenizer.vocabulary.source} is not the vocabulary that the shards beside it were made with; put theirs "
            "back, or run create_pretraining_data.py again"
        )
    return tokenizer


def _spec_of(path, is_static):
    (first,) = tf.data.TFRecordDataset(path).take(1).as_numpy_iterator()
    features = tf.train.Example.FromString(first).features.feature
    max_seq_length = len(features["input_ids"].int64_list.value)
    num_predictions = len(features["masked_lm_positions"].int64_list.value) if is_static else None
    spec = records.feature_spec(max_seq_length, num_predictions, {records.MENTIONS_FEATURE: None})
    # Older shards of the original lack token_boundary.
    return {name: feature for name, feature in spec.items() if name in features}


def _guess_tokens(features):
    masked = features["input_ids"][_undo_masks(features)[1]]
    length = features["input_mask"][0].sum()
    return MaskingTokens(
        mask_id=int(np.bincount(masked).argmax()) if len(masked) else None,
        unmaskable_ids=tuple(features["input_ids"][0, [0, length - 1]].tolist()),
        real_piece_ids=np.zeros(0, np.int32),
    )


def _undo_masks(features):
    """Returns the ids before masking, and where they were chosen."""
    original_ids = features["input_ids"].copy()
    is_chosen = np.zeros(original_ids.shape, bool)
    if "masked_lm_weights" in features:
        rows, columns = np.nonzero(features["masked_lm_weights"])
        positions = features["masked_lm_positions"][rows, columns]
        original_ids[rows, positions] = features["masked_lm_ids"][rows, columns]
        is_chosen[rows, positions] = True
    return original_ids, is_chosen
