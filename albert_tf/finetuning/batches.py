"""Encoded examples as batches of texts of about one length.

A text of 20 tokens costs as much as one of 128 if padded to it. So where shapes may change, a batch is cut to its
longest example, or to the next power of two where each shape is compiled. A TPU compiles the step for one shape: its
batches hold the same examples, padded to the full length.
"""

import collections.abc
import dataclasses

import numpy as np
import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.finetuning.task import Features
from albert_tf.objectives.objective import Batch, BatchSpec
from albert_tf.pretraining_data.input_pipeline import pad_batch
from albert_tf.tokenization import Vocabulary
from albert_tf.tokenization.vocabulary import MASK, SPECIAL_TOKENS

# A function of a batch and of a seed of its own, int64 [2].
Augmentation = collections.abc.Callable[[Batch, tf.Tensor], Batch]

_LENGTH_STEP = 8
_SHORTEST_OF_FEW = 32
# So many batches' examples are sorted by length and then dealt out. More of them pad less, but leave less to chance.
_BATCHES_SORTED_TOGETHER = 16


class Examples:
    """Encoded examples to make batches of; features are [N, ...], and `input_mask` [N, ..., S] tells the lengths.

    An axis of unknown size in the batch spec, but for the first, is that of the tokens.
    """

    def __init__(self, features: Features, batch_spec: BatchSpec, has_few_lengths: bool = False):
        self._features = {name: features[name] for name in batch_spec if name in features}
        self._lengths = _lengths(features["input_mask"])
        self._count = len(self._lengths)
        # By the length of a batch's longest example, the length of the batch.
        longest = features["input_mask"].shape[-1]
        lengths = np.arange(1 + longest)
        if has_few_lengths:
            rounded = 2 ** np.ceil(np.log2(np.maximum(lengths, _SHORTEST_OF_FEW))).astype(lengths.dtype)
        else:
            rounded = -(-lengths // _LENGTH_STEP) * _LENGTH_STEP
        self._cut_lengths = np.minimum(rounded, longest)
        self._axes = {
            name: axis
            for name in self._features
            for axis, size in enumerate(batch_spec[name].shape)
            if axis and size is None
        }

    @property
    def order_of_evaluation(self) -> np.ndarray:
        """The row of each example that `eval_dataset` returns, [N]: short ones first."""
        return np.argsort(self._lengths, kind="stable")

    @tf.autograph.experimental.do_not_convert  # takes long, and nothing here needs it
    def train_dataset(
        self, global_batch_size: int, seed: int, start_step: int = 0, augment: Augmentation | None = None
    ) -> tf.data.Dataset:
        """Returns endless batches; each epoch is a new permutation of all examples, sorted in parts by length.

        A batch holds the features of B examples over all replicas, [B, ...], and `example_weights` float32 [B], all 1.
        A resumed run goes on at `start_step`; `augment` returns the batch to train on in place of one.
        """
        batches_together = min(_BATCHES_SORTED_TOGETHER, max(1, self._count // global_batch_size))
        lengths, shuffle = tf.constant(self._lengths), tf.random.experimental.stateless_shuffle

        def epoch(number):
            order = shuffle(tf.range(self._count), tf.stack([2 * number, seed]))
            return tf.data.Dataset.from_tensor_slices(order)

        def sort(number, rows):
            rows = tf.gather(rows, tf.argsort(tf.gather(lengths, rows), stable=True))
            batches = tf.reshape(rows, [batches_together, global_batch_size])
            return shuffle(batches, tf.stack([2 * number + 1, seed]))

        parts = tf.data.Dataset.counter().flat_map(epoch).batch(batches_together * global_batch_size, True)
        rows = parts.enumerate().map(sort).unbatch().enumerate().skip(start_step)
        gather = self._make_gather()

        def make_batch(number, rows):
            batch = gather(rows)
            # The seed is one that no order is drawn with.
            return batch if augment is None else augment(batch, tf.stack([-1 - number, seed]))

        return rows.map(make_batch).prefetch(tf.data.AUTOTUNE)

    @tf.autograph.experimental.do_not_convert
    def eval_dataset(self, global_batch_size: int) -> tf.data.Dataset:
        """Returns every example once, in the `order_of_evaluation`; what fills up the last batch weighs zero."""
        rows = tf.data.Dataset.from_tensor_slices(self.order_of_evaluation).batch(global_batch_size)
        batches = rows.map(self._make_gather())
        return batches.map(lambda batch: pad_batch(batch, global_batch_size)).prefetch(tf.data.AUTOTUNE)

    def mean_length(self, global_batch_size: int) -> int:
        """Returns how long batches are on average, for what is told of the speed."""
        longest = np.sort(self._lengths)[global_batch_size - 1 :: global_batch_size]
        longest = longest if len(longest) else self._lengths.max(keepdims=True)
        return int(self._cut_lengths[longest].mean())

    def _make_gather(self):
        tensors = {name: tf.constant(values) for name, values in self._features.items()}
        cut_lengths = tf.constant(self._cut_lengths[self._lengths])

        def gather(rows):
            length = tf.reduce_max(tf.gather(cut_lengths, rows))
            batch = {name: self._cut(name, tf.gather(values, rows), length) for name, values in tensors.items()}
            return {**batch, "example_weights": tf.ones(tf.shape(rows)[:1])}

        return gather

    def _cut(self, name, values, length):
        if name not in self._axes:
            return values
        return values[(slice(None),) * self._axes[name] + (slice(length),)]


def _lengths(mask):
    """Returns the number of pieces up to the last one that counts, at least 1: [N, ..., S] to int [N]."""
    places = np.arange(1, 1 + mask.shape[-1])
    return np.maximum(1, (places * (mask != 0)).reshape([len(mask), -1]).max(axis=1))


@dataclasses.dataclass(frozen=True)
class TokenDropout:
    """Replaces this share of pieces by [MASK], others each time, so that few are learnt by heart."""

    # Iyyer et al. 2015, section 3, leave words out. Special tokens of the vocabulary are never replaced, and must all
    # be there.

    rate: float
    vocabulary: Vocabulary

    def __post_init__(self):
        if not 0.0 <= self.rate < 1.0:
            raise InputError(f"`token_dropout` must be at least 0 and less than 1. Received: {self.rate}")
        self.vocabulary.require(*SPECIAL_TOKENS)

    def __call__(self, batch: Batch, seed: tf.Tensor) -> Batch:
        """Returns the batch with other `input_ids` [B, ...]; the seed is int64 [2]."""
        input_ids = batch["input_ids"]
        is_special = tf.reduce_any([input_ids == self.vocabulary.id_of(token) for token in SPECIAL_TOKENS], axis=0)
        is_drawn = tf.random.stateless_uniform(tf.shape(input_ids), seed) < self.rate
        mask_id = tf.constant(self.vocabulary.id_of(MASK), input_ids.dtype)
        return {**batch, "input_ids": tf.where(is_drawn & ~is_special, mask_id, input_ids)}
