"""Encoded examples as batches."""

import numpy as np
import tensorflow as tf

from albert_tf.pretraining_data.input_pipeline import pad_batch


@tf.autograph.experimental.do_not_convert  # takes long, and nothing here needs it
def train_dataset(
    features: dict[str, np.ndarray], global_batch_size: int, seed: int, start_step: int = 0
) -> tf.data.Dataset:
    """Returns endless batches; each epoch is a new permutation of all examples.

    Args:
        features: By name, [N, ...].
        global_batch_size: Batch size B over all replicas.
        seed: Seed of the order.
        start_step: Number of batches to leave out: where a resumed run goes on.

    Returns:
        Dataset of dictionaries: the features, [B, ...], and `example_weights` float32 [B], all 1.
    """
    num_examples = len(next(iter(features.values())))
    tensors = {name: tf.constant(values) for name, values in features.items()}

    def epoch(number):
        order = tf.random.experimental.stateless_shuffle(tf.range(num_examples), tf.stack([number, seed]))
        return tf.data.Dataset.from_tensor_slices(order)

    def gather(rows):
        batch = {name: tf.gather(values, rows) for name, values in tensors.items()}
        return {**batch, "example_weights": tf.ones([global_batch_size])}

    rows = tf.data.Dataset.counter().flat_map(epoch).batch(global_batch_size, drop_remainder=True)
    return rows.skip(start_step).map(gather).prefetch(tf.data.AUTOTUNE)


@tf.autograph.experimental.do_not_convert
def eval_dataset(features: dict[str, np.ndarray], global_batch_size: int) -> tf.data.Dataset:
    """Returns every example once, in order; examples that fill up the last batch weigh zero.

    Arguments and result as for `train_dataset`.
    """
    weights = np.ones(len(next(iter(features.values()))), np.float32)
    batches = tf.data.Dataset.from_tensor_slices({**features, "example_weights": weights}).batch(global_batch_size)
    return batches.map(lambda batch: pad_batch(batch, global_batch_size)).prefetch(tf.data.AUTOTUNE)
