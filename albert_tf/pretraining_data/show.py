"""Shows a shard to people: examples as coloured text, how much there is, and a picture of the lengths."""

import collections.abc
import dataclasses
import os
import sys

import numpy as np
import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.base.files import replacing
from albert_tf.pretraining_data import records
from albert_tf.pretraining_data.manifest import MANIFEST_FILE, masking_options, packing_of, read_manifest
from albert_tf.pretraining_data.masking import MaskingOptions, MaskingTokens, mask_batch
from albert_tf.tokenization import KoreanWordPieceTokenizer, load_tokenizer
from albert_tf.tokenization.tokenizer import TOKENIZER_FILE, VOCABULARY_FILE
from albert_tf.tokenization.vocabulary import Vocabulary
from albert_tf.tokenization.wordpiece import CONTINUATION_PREFIX

# Reads one shard for inspection, whoever wrote it, in memory that doesn't grow with it.

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
                f"{self.path}: a record after number {count:,} has other features than the first; make it again"
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
            f"{tokenizer.vocabulary.source} is not the shards' vocabulary; put theirs back, or make the shards again"
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


_PIECE_BORDER = "·"
_NUM_BINS = 32

# What terminals know of colours (ECMA-48, SGR).
_STYLES = {"bold": "1", "dim": "2", "A": "36", "B": "35", "masked": "30;43", "replaced": "97;41", "kept": "30;42"}

# The original gives a B from elsewhere the same label as a swapped one (google-research/albert#234).
_LABEL_MEANINGS_WITHOUT_MANIFEST = ("in the order of the text", "swapped, or B comes from another document")


def show_shard(
    path: str | os.PathLike, num_examples: int, plot_path: str | None = None, use_colour: bool | None = None
) -> None:
    """Prints the first examples of a shard and counts of all of it, and draws the lengths of its examples if asked."""
    if use_colour is None:
        use_colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")

    def paint(text, style):
        return f"\033[{_STYLES[style]}m{text}\033[m" if use_colour else text

    shard = ShardReader(path)
    print(*_introduction(shard, paint), sep="\n")
    lengths, shown = [], 0
    counts = np.zeros(4, np.int64)
    for batch in shard.read():
        for row in range(min(len(batch.labels), num_examples - shown)):
            shown += 1
            print("", *_example_lines(shard, batch, row, shown, paint), sep="\n")
        lengths.append(batch.is_used.sum(axis=1))
        mentioned = np.zeros_like(batch.is_used) if batch.in_mention is None else batch.in_mention
        kinds = (batch.is_chosen, mentioned & batch.word_starts, mentioned, mentioned & batch.is_chosen)
        counts += [kind.sum() for kind in kinds]
    lengths = np.concatenate(lengths)
    print("", *_count_lines(shard, lengths, *counts), sep="\n")
    if plot_path:
        _plot_lengths(shard, lengths, plot_path)


def _count_lines(shard, lengths, num_chosen, num_mentions, num_in_mentions, num_chosen_in_mentions):
    to_predict = f"; {num_chosen / lengths.sum():.2%} of the pieces to predict" if shard.is_masked else ""
    yield f"{len(lengths):,} examples of {lengths.mean():.2f} pieces on average{to_predict}"
    if num_mentions:
        of_chosen = f" and {num_chosen_in_mentions / num_chosen:.2%} of those to predict" if num_chosen else ""
        share = num_in_mentions / lengths.sum()
        yield f"{num_mentions:,} mentions of entities: {share:.2%} of the pieces{of_chosen}"


def _plot_lengths(shard, lengths, path):
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError("`plot` needs matplotlib, which is not installed; pip install matplotlib") from error
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    axes.hist(lengths, np.linspace(0, shard.max_seq_length, min(_NUM_BINS, shard.max_seq_length) + 1))
    axes.set(xlabel="pieces, [CLS] and [SEP] included", ylabel="examples", yscale="log")
    with replacing(path) as file:
        figure.savefig(file, format="png")


def _introduction(shard, paint):
    if shard.is_static:
        masking = "static, masked when it was made"
    elif shard.is_masked:
        masking = "dynamic, not masked yet; these masks are such as an epoch of training could have"
    elif not shard.packing.masks_pieces:
        masking = "without masks, for each piece can be predicted from those before it"
    else:
        masking = "dynamic, not masked yet; without manifest.json and vocab.txt beside it no masks can be shown"
    yield f"{paint(shard.path, 'bold')}: {masking}"
    if shard.vocabulary is None:
        yield "there is no vocab.txt beside it, so pieces are shown as ids"
    if shard.is_masked:
        yield (
            f"{paint('{x}', 'masked')} became [MASK], {paint('{x→y}', 'replaced')} became the piece y, "
            f"{paint('{x=}', 'kept')} stayed; x{paint(_PIECE_BORDER, 'dim')}y are pieces of one word"
        )


def _example_lines(shard, batch, row, number, paint):
    facts = [f"{batch.is_used[row].sum()} pieces"]
    if shard.is_masked:
        facts.append(f"{batch.is_chosen[row].sum()} to predict")
    meanings = shard.packing.label_meanings if shard.manifest else _LABEL_MEANINGS_WITHOUT_MANIFEST
    if meanings:
        facts.append(f"label {batch.labels[row]}, {meanings[int(batch.labels[row] == 1)]}")
    yield f"{paint(f'example {number}', 'bold')}: {'; '.join(facts)}"
    used = np.flatnonzero(batch.is_used[row])
    segments = batch.segment_ids[row, used]
    for positions in np.split(used, np.flatnonzero(np.diff(segments)) + 1):
        name = "AB"[batch.segment_ids[row, positions[0]]]
        yield " ".join([paint(name, name), *_words(shard, batch, row, positions, paint)])


def _words(shard, batch, row, positions, paint):
    words = []
    for position in positions:
        piece = _piece(shard, batch, row, position, paint)
        if batch.word_starts[row, position]:
            words.append(piece)
        else:
            words[-1] += paint(_PIECE_BORDER, "dim") + piece
    return words


def _piece(shard, batch, row, position, paint):
    original, seen = batch.original_ids[row, position], batch.input_ids[row, position]
    name = shard.name_of(original)
    if not batch.word_starts[row, position]:
        name = name.removeprefix(CONTINUATION_PREFIX)
    if batch.is_special[row, position]:
        return paint(name, "dim")
    if not batch.is_chosen[row, position]:
        return paint(name, "AB"[batch.segment_ids[row, position]])
    if seen == shard.mask_id:
        return paint(f"{{{name}}}", "masked")
    if seen == original:
        return paint(f"{{{name}=}}", "kept")
    return paint(f"{{{name}→{shard.name_of(seen)}}}", "replaced")
