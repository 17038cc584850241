"""The update of one matrix by Muon: functions of tensors alone."""

import math

import tensorflow as tf

from albert_tf.compilation.fusion import fused
from albert_tf.optimization.adam_update import Settings, StepScalars

# Of the quintic that pushes all singular values towards 1 (Jordan et al., 2024, "Muon: An optimizer for hidden layers
# in neural networks"); chosen there for speed: the values end between 0.7 and 1.2.
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_ITERATIONS = 5
# Gives the update the root mean square that Adam's has, so that both share a learning rate and weight decay
# (Liu et al., 2025, "Muon is scalable for LLM training", section 2.2).
_ROOT_MEAN_SQUARE = 0.2
_MOMENTUM = 0.95


def orthogonalized(matrix: tf.Tensor, compute_dtype: str = "float32") -> tf.Tensor:
    """Returns a float32 matrix with all singular values near 1, by the iteration of Newton and Schulz.

    Products are in `compute_dtype`, for which bfloat16 is exact enough.
    """
    rows, columns = matrix.shape
    x = matrix if rows <= columns else tf.transpose(matrix)
    x = tf.cast(x / (tf.norm(x) + 1e-7), compute_dtype)
    a, b, c = (tf.cast(value, compute_dtype) for value in _COEFFICIENTS)
    for _ in range(_ITERATIONS):
        square = tf.matmul(x, x, transpose_b=True)
        x = a * x + tf.matmul(b * square + c * tf.matmul(square, square), x)
    x = tf.cast(x, matrix.dtype)
    return x if rows <= columns else tf.transpose(x)


@fused
def accumulated(first_moment: tf.Tensor, gradient: tf.Tensor, scalars: StepScalars) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the moment after the step, and the direction of Nesterov's momentum, float32 [rows, columns] each.

    The moment is the decayed sum of the gradients; `gradient` is that before clipping.
    """
    gradient = gradient * scalars.clip_factor
    moment = _MOMENTUM * first_moment + gradient
    return moment, gradient + _MOMENTUM * moment


def muon_direction(settings: Settings, weights: tf.Tensor, direction: tf.Tensor, compute_dtype: str) -> tf.Tensor:
    """Returns the orthogonalized direction plus weight decay; the update subtracts the learning rate times this."""
    scale = _ROOT_MEAN_SQUARE * math.sqrt(max(weights.shape))
    return scale * orthogonalized(direction, compute_dtype) + settings.weight_decay * weights
