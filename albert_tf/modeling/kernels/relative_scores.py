"""The scores that disentangled attention adds for the distance of two tokens (DeBERTa; He et al. 2021, section 3.1).

Each token is multiplied with all distances that occur, and a product with constant one-hot rows puts the scores in
their places: gathers, and more so their gradients, are slow on a TPU. Shifting rows into place, as Transformer-XL does
(Dai et al. 2019, appendix B), takes 0.74 of the operations of base's step, and 1.72 of the bytes.

python -m benchmarks.tpu_step --albert_config_file=configs/deberta_base.json
"""

import typing

import numpy as np
import tensorflow as tf

from albert_tf.config import AlbertConfig


class Distances(typing.NamedTuple):
    """Projections of M embeddings of distances, and the index of that of each pair of tokens."""

    queries: tf.Tensor | None  # [N, M, head_size], to be multiplied with keys: position to content
    keys: tf.Tensor | None  # [N, M, head_size], to be multiplied with queries: content to position
    places: tf.Tensor  # int32 [S, S], the number of the embedding for each query and key

    @property
    def num_terms(self) -> int:
        """The number of products that are added to that of query and key."""
        return (self.queries is not None) + (self.keys is not None)


def relative_scores(query: tf.Tensor, key: tf.Tensor, distances: Distances) -> tf.Tensor:
    """Returns the scores to add to the products of queries and keys [B, N, S, head_size]: [B, N, S, S]."""
    scores = []
    if distances.keys is not None:
        scores.append(_scores(query, distances.keys, distances.places, "bnst"))
    if distances.queries is not None:
        scores.append(_scores(key, distances.queries, tf.transpose(distances.places), "bnts"))
    return tf.add_n(scores)


def _scores(pieces, others, places, axes):
    """Returns products of tokens [B, N, S, D] with those of others [N, M, D] that `places` [S, T] names, as `axes`."""
    # Not `tf.matmul`: of a single head, oneDNN writes beyond a product whose second factor is repeated.
    products = tf.einsum("bnsd,nmd->bnsm", pieces, others)
    picks = tf.one_hot(places, products.shape[-1] or tf.shape(products)[-1], dtype=products.dtype)
    return tf.einsum(f"bnsm,stm->{axes}", products, picks)


def places_of_pairs(
    length: int | tf.Tensor, config: AlbertConfig
) -> tuple[int | tf.Tensor, int | tf.Tensor, np.ndarray | tf.Tensor]:
    """Returns the first and the last of `rows_of_distances` among tokens of a length, and the row of each pair.

    The last are int32 [S, S], query by key, counted from the first one; constants for a known length.
    """
    rows, longest = rows_of_distances(config), config.longest_distance
    if isinstance(length, int):
        positions, clip, take = np.arange(length), np.clip, np.take
    else:
        positions, clip, take = tf.range(length), tf.clip_by_value, tf.gather
    distances = positions[:, None] - positions
    found = take(rows, clip(distances, -longest, longest) + longest)
    first, last = found[0, -1], found[-1, 0]
    return first, last, found - first


def rows_of_distances(config: AlbertConfig) -> np.ndarray:
    """Returns the table's rows for distances from -longest to longest, int32; further ones share the outermost rows.

    With k `position_buckets` the first k / 2 to either side have one each, and others share the next k / 2 by their
    logarithm (`make_log_bucket_position` of microsoft/DeBERTa).
    """
    longest = config.longest_distance
    buckets = distances = np.arange(-longest, longest + 1)
    half = config.position_buckets // 2
    if half:
        sizes = np.maximum(np.abs(distances), half)
        steps = np.ceil(_log(sizes / half) / _log((longest - 1) / half) * (half - 1))
        buckets = np.where(sizes == half, distances, np.sign(distances) * (half + steps))
    span = num_distances(config) // 2
    return np.clip(buckets + span, 0, 2 * span - 1).astype(np.int32)


def _log(ratio):
    # Logarithms are rounded to float32, as PyTorch's: that decides of distances that lie on the end of a step.
    return np.log(np.float32(ratio), dtype=np.float64).astype(np.float32)


def num_distances(config: AlbertConfig) -> int:
    """Returns the number of rows in the table of distances."""
    return 2 * (config.position_buckets or config.longest_distance)
