"""TFRecord shards to batches, in an order that follows from the seed alone."""

import collections.abc
import dataclasses

import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.pretraining_data import records
from albert_tf.pretraining_data.masking import MaskingOptions, MaskingTokens, mask_batch

_SHUFFLE_BUFFER = 10_000
_FILES_READ_AT_ONCE = 8


@dataclasses.dataclass(frozen=True)
class InputOptions:
    """What the reader must know of the shards.

    Attributes:
        max_seq_length: Length S of the examples.
        max_predictions_per_seq: Masked pieces P of an example.
        is_static: Whether the records hold masks.
        masking_options: How to mask dynamic records; None for static ones.
        masking_tokens: What masking must know of the vocabulary; None for static records.
    """

    max_seq_length: int
    max_predictions_per_seq: int
    is_static: bool
    masking_options: MaskingOptions | None = None
    masking_tokens: MaskingTokens | None = None


def train_dataset(
    paths: list[str], options: InputOptions, global_batch_size: int, seed: int, start_step: int = 0
) -> tf.data.Dataset:
    """Returns endless batches of shuffled examples.

    Batch n is the same for the same files and seed, wherever one starts. Each epoch has an order of its own, and each
    batch of dynamic records masks of its own.

    Args:
        paths: The shards.
        options: What the reader must know of them.
        global_batch_size: Batch size B over all replicas.
        seed: Seed of order and masks.
        start_step: Number of batches to leave out: where a resumed run goes on.

    Returns:
        Dataset of dictionaries as `eval_dataset` has them.
    """

    def epoch(number):
        # Inside a dataset's function this sets the seed of that function alone. Without it the program's global seed
        # would change the order, and a global seed of 0 would fail below: tf.data takes no tensor with it.
        tf.random.set_seed(1)
        order = tf.random.experimental.stateless_shuffle(tf.constant(paths), tf.stack([number, seed]))
        files = tf.data.Dataset.from_tensor_slices(order)
        examples = files.interleave(tf.data.TFRecordDataset, cycle_length=_FILES_READ_AT_ONCE, block_length=16)
        return examples.shuffle(_SHUFFLE_BUFFER, seed=seed + number)

    batches = tf.data.Dataset.counter().flat_map(epoch).batch(global_batch_size, drop_remainder=True)
    numbered = batches.enumerate().skip(start_step)

    def prepare(number, serialized):
        return _parse(serialized, options, tf.stack([tf.cast(seed, tf.int64), number]))

    return numbered.map(prepare, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True).prefetch(tf.data.AUTOTUNE)


def eval_dataset(paths: list[str], options: InputOptions, global_batch_size: int) -> tf.data.Dataset:
    """Returns every example once, in order; examples that fill up the last batch weigh zero.

    Args:
        paths: The shards.
        options: What the reader must know of them.
        global_batch_size: Batch size B over all replicas.

    Returns:
        Dataset of dictionaries: int32 `input_ids`, `input_mask`, `segment_ids` [B, S], `masked_lm_positions`,
        `masked_lm_ids` [B, P], `sentence_order_labels` [B]; float32 `masked_lm_weights` [B, P], `example_weights` [B].
    """
    batches = tf.data.TFRecordDataset(paths).batch(global_batch_size).enumerate()

    def prepare(number, serialized):
        features = _parse(serialized, options, tf.stack([tf.constant(0, tf.int64), number]))
        return pad_batch(features, global_batch_size)

    return batches.map(prepare, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True).prefetch(tf.data.AUTOTUNE)


def pad_batch(features: dict[str, tf.Tensor], batch_size: int) -> dict[str, tf.Tensor]:
    """Fills a short last batch up with zeros, also in `example_weights` and `masked_lm_weights`."""

    def pad(values):
        missing = batch_size - tf.shape(values)[0]
        padded = tf.pad(values, [[0, missing]] + [[0, 0]] * (values.shape.rank - 1))
        return tf.ensure_shape(padded, [batch_size, *values.shape[1:]])

    return {name: pad(values) for name, values in features.items()}


def _parse(serialized, options, mask_seed):
    spec = records.feature_spec(options.max_seq_length, options.max_predictions_per_seq if options.is_static else None)
    if options.is_static:
        del spec["token_boundary"]  # the original's older shards lack it, and only masking needs it
    parsed = tf.io.parse_example(serialized, spec)
    features = {
        name: tf.cast(values, tf.int32) if values.dtype == tf.int64 else values for name, values in parsed.items()
    }
    if not options.is_static:
        features = mask_batch(features, options.masking_options, options.masking_tokens, mask_seed)
        del features["token_boundary"]
    features["sentence_order_labels"] = tf.squeeze(features.pop(records.LABEL_FEATURE), axis=1)
    features["example_weights"] = tf.ones_like(features["sentence_order_labels"], tf.float32)
    return features


def check_readable(paths: collections.abc.Sequence[str], options: InputOptions) -> None:
    """Parses the first record of each shard.

    Raises:
        InputError: A shard can't be read, or doesn't have the lengths and masks that the options say.
    """
    for path in paths:
        if records.is_static(path) != options.is_static:
            raise InputError(
                f"{path} is {'not ' * options.is_static}masked, unlike {paths[0]}; read one kind at a time"
            )
        try:
            next(iter(eval_dataset([path], options, 1)))
        except tf.errors.InvalidArgumentError as error:
            raise InputError(
                f"{path} doesn't hold examples of --max_seq_length={options.max_seq_length} and "
                f"--max_predictions_per_seq={options.max_predictions_per_seq}; give both flags the values that the "
                "shards were made with"
            ) from error
