"""The attention of all heads: by TensorFlow's own operations, kept or recomputed, or by a kernel; and which of them.

The softmax of plain operations is written by hand, and keeps only the probabilities.

python -m benchmarks.tpu_step                                (bytes, memory and operations of each)
python -m benchmarks.train_step --only=albert_tf,products    (time on a CPU)

Disentangled attention adds scores for the distance of two tokens (DeBERTa; He et al. 2021, section 3.1). Each token is
multiplied with all distances that occur, and a product with constant one-hot rows puts the scores in their places:
gathers, and more so their gradients, are slow on a TPU. Shifting rows into place, as Transformer-XL does (Dai et al.
2019, appendix B), takes 0.74 of the operations of base's step, and 1.72 of the bytes.

python -m benchmarks.tpu_step --albert_config_file=configs/deberta_base.json
"""

import typing

import numpy as np
import tensorflow as tf

from albert_tf.base.compilation import fused, runs_cudnn_attention
from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.modeling.kernels.cudnn_attention import AttentionCase, cudnn_attention, find_obstacle
from albert_tf.modeling.kernels.elementwise import dropout
from albert_tf.modeling.kernels.flash_attention import flash_attention, uses_flash_attention
from albert_tf.modeling.kernels.positions import VisibleKeys, bias_of
from albert_tf.modeling.kernels.rematerialization import rematerialize


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


def plain_attention(
    projections: list[tf.Tensor],
    visible: VisibleKeys,
    seed: tf.Tensor | None,
    head_size: int,
    dropout_rate: float,
    distances: Distances | None = None,
) -> tf.Tensor:
    """Returns the weighted mean of the values that each head's queries see, [B, R, H].

    Projections are queries, keys and values side by side [B, S, 3 H], or queries [B, R, H] and the other two, side by
    side [B, S, 2 H] or one by one. `visible` gets no gradient; no seed means no dropout. With distances R is S.
    """
    return context_and_probabilities(projections, visible, seed, head_size, dropout_rate, distances)[0]


def context_and_probabilities(projections, visible, seed, head_size, dropout_rate, distances=None) -> list[tf.Tensor]:
    """Returns the result of `plain_attention`, and the probabilities after dropout, [B, N, R, S]."""
    return attend_by_heads(*heads_of(projections, head_size), visible, seed, dropout_rate, distances)


def attend_by_heads(
    query: tf.Tensor,
    key: tf.Tensor,
    value: tf.Tensor,
    visible: VisibleKeys,
    seed: tf.Tensor | None = None,
    dropout_rate: float = 0.0,
    distances: Distances | None = None,
) -> list[tf.Tensor]:
    """Returns the weighted mean of visible values, [B, R, H], and the probabilities after dropout, [B, N, R, S].

    Takes queries [B, N, R, head_size], keys and values [B, N, S, head_size].
    """
    num_heads, head_size = query.shape[1], query.shape[-1]
    scores, num_terms = tf.matmul(query, key, transpose_b=True), 1
    if distances is not None:
        scores += relative_scores(query, key, distances)
        num_terms += distances.num_terms
    probs = _scaled_softmax(scores, (num_terms * head_size) ** -0.5, visible)
    probs = dropout(probs, dropout_rate, seed)
    context = tf.transpose(tf.matmul(probs, value), [0, 2, 1, 3])
    return [tf.reshape(context, [*tf.unstack(tf.shape(context))[:2], num_heads * head_size]), probs]


def heads_of(projections: list[tf.Tensor], head_size: int) -> list[tf.Tensor]:
    """Returns queries, keys and values of projections as for `plain_attention`, each [B, N, S, head_size]."""
    hidden_size = sum(projection.shape[-1] for projection in projections) // 3
    return [heads for projection in projections for heads in split_heads(projection, hidden_size, head_size)]


def split_heads(projection: tf.Tensor, hidden_size: int, head_size: int) -> list[tf.Tensor]:
    """Splits one array [B, S, count H] of queries, keys or values into arrays [B, N, S, head_size]."""
    batch_size, length = tf.unstack(tf.shape(projection))[:2]
    count = projection.shape[-1] // hidden_size
    split = tf.reshape(projection, [batch_size, length, count, hidden_size // head_size, head_size])
    return tf.unstack(tf.transpose(split, [2, 0, 3, 1, 4]), count)


def _scaled_softmax(scores, scale, visible):
    """Returns softmax(scale scores + bias of the visible keys), computed in float32."""

    @tf.custom_gradient
    def apply(scores):
        probs = _softmax_forward(scores, scale, visible)
        return probs, lambda upstream: _softmax_backward(probs, upstream, scale)

    return apply(scores)


@fused
def _softmax_forward(scores, scale, visible):
    bias = bias_of(visible)[:, None]
    return tf.cast(tf.nn.softmax(tf.cast(scores, tf.float32) * scale + bias), scores.dtype)


@fused
def _softmax_backward(probs, upstream, scale):
    dtype = probs.dtype
    probs, upstream = tf.cast(probs, tf.float32), tf.cast(upstream, tf.float32)
    mean = tf.reduce_sum(probs * upstream, axis=-1, keepdims=True)
    return tf.cast(probs * (upstream - mean) * scale, dtype)


# Those of `flash_attention`, on a TPU; and that of `cudnn_attention`, on a GPU.
PLAIN, PALLAS, CUDNN = "plain", "pallas", "cudnn"


def suited_attention(attention: str, config: AlbertConfig) -> str:
    """Returns `attention`, or "plain" for a model that no kernel supports; an InputError for "flash" there."""
    if config.relative_attention == "none":
        return attention
    if attention == "flash":
        raise InputError(
            "`attention=flash` has no kernel for the distances between pieces that a model of relative_attention="
            f"{config.relative_attention} reads; use `attention=auto`"
        )
    return "plain"


def choose_kernel(attention: str, hidden_size: int, case: AttentionCase) -> str:
    """Returns which of `PLAIN`, `PALLAS` and `CUDNN` computes attention in the program that is being traced.

    "auto" takes the device's kernels where they can; an InputError if "flash" asks for them and they can't.
    """
    if attention == "plain":
        return PLAIN
    if runs_cudnn_attention():
        obstacle = find_obstacle(case)
        if obstacle and attention == "flash":
            raise InputError(f"`attention=flash` on a GPU is not possible with {obstacle}; use `attention=auto`")
        return PLAIN if obstacle else CUDNN
    shape = hidden_size, case.head_size, case.max_seq_length
    return PALLAS if uses_flash_attention(attention, *shape, case.masks_rows, case.output_attentions) else PLAIN


def attend(
    projections: list[tf.Tensor] | tuple[list[tf.Tensor], list[tf.Tensor]],
    visible: VisibleKeys,
    seed: tf.Tensor | None,
    head_size: int,
    dropout_rate: float,
    kernel: str = PLAIN,
    rematerializes: bool = False,
    output_attentions: bool = False,
    distances: Distances | None = None,
) -> list[tf.Tensor]:
    """Returns softmax(query key^T / sqrt(head_size) + bias) value of all heads, and the probabilities if asked for.

    These are the context [B, R, H] and, with plain operations only, the probabilities [B, N, R, S]. Projections are
    those of `QueryKeyValue` or `SeparateProjections`, for `PALLAS` of `QueryKeyValue.products_and_biases`. Kernels need
    a bias [B, 1, S]; it gets no gradient. The seed is int32 [2], None for no dropout. Distances, only with plain
    operations, add one or two products, and all are divided by sqrt(products * head_size).
    """
    options = {"head_size": head_size, "dropout_rate": dropout_rate}
    if kernel == PALLAS:
        return [flash_attention(*projections, visible, seed, **options)]
    if kernel == CUDNN:
        return [cudnn_attention(projections, visible, head_size)]

    def plain(projections, visible, seed, distances):
        arguments = {"projections": projections, "visible": visible, "seed": seed, "distances": distances, **options}
        return context_and_probabilities(**arguments) if output_attentions else [plain_attention(**arguments)]

    return (rematerialize(plain) if rematerializes else plain)(projections, visible, seed, distances)
