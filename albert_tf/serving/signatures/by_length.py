"""Batches of texts of all lengths computed in groups of about one length each, so that little is padding."""

import collections.abc

import tensorflow as tf

Tensors = dict[str, tf.Tensor]

# Larger groups hardly make better use of a CPU, and pad more.
_GROUP_SIZE = 8


def compute_by_length(function: collections.abc.Callable[[Tensors], Tensors], batch: Tensors) -> Tensors:
    """Returns a function's outputs for a batch, computed a group at a time: short texts first.

    The batch is the encoder's inputs, int32 [N, S] each, and other features of each text, [N, up to S, ...]. Of a
    group's part of it, int32 [B, T], the function returns tensors [B, ...], of which [N, ...] is returned, or, with a
    row for each token, [B, T, ...], of which it is [N, S, ...], 0 where it computed none.
    """
    traced = tf.function(function, autograph=False).get_concrete_function(
        {name: tf.TensorSpec([None, None, *values.shape[2:]], values.dtype, name) for name, values in batch.items()}
    )
    specs = traced.structured_outputs
    lengths = tf.reduce_sum(batch["input_mask"], axis=1)
    order = tf.argsort(lengths, stable=True)
    count, length = tf.unstack(tf.shape(batch["input_mask"]))
    num_groups = tf.maximum(1, -(-count // _GROUP_SIZE))  # one of none where there is no text

    def compute_group(number, arrays):
        rows = order[number * _GROUP_SIZE : (number + 1) * _GROUP_SIZE]
        longest = tf.where(count > 0, tf.reduce_max(tf.gather(lengths, rows)), length)
        outputs = traced(**{name: tf.gather(values, rows)[:, :longest] for name, values in batch.items()})
        padded = {
            name: _pad_pieces(values, length - longest) if _is_of_pieces(specs[name]) else values
            for name, values in outputs.items()
        }
        return number + 1, {name: array.write(number, padded[name]) for name, array in arrays.items()}

    # A single group goes through the loop, too: a graph with the model in it twice takes twice as long to load.
    arrays = {name: tf.TensorArray(spec.dtype, num_groups, infer_shape=False) for name, spec in specs.items()}
    _, arrays = tf.while_loop(lambda number, _: number < num_groups, compute_group, (0, arrays), parallel_iterations=1)
    places = tf.argsort(order)
    found = {name: tf.gather(array.concat(), places) for name, array in arrays.items()}
    return {name: tf.ensure_shape(values, specs[name].shape) for name, values in found.items()}


def _is_of_pieces(spec):
    return spec.shape.rank > 1 and spec.shape[1] is None


def _pad_pieces(values, count):
    return tf.pad(values, [[0, 0], [0, count], *[[0, 0]] * (values.shape.rank - 2)])
