"""The update of one variable by Adam, LAMB or Muon: functions of tensors alone."""

import math
import typing

import tensorflow as tf

from albert_tf.base.compilation import fused


class Settings(typing.NamedTuple):
    """The arguments of `AdamW` that are the same in all steps."""

    weight_decay: float
    beta_1: float
    beta_2: float
    epsilon: float
    bias_correction: bool


class StepScalars(typing.NamedTuple):
    is_finite: tf.Tensor  # bool, whether the step is done at all
    clip_factor: tf.Tensor  # float32, what gradients are scaled by
    learning_rate: tf.Tensor  # float32
    updates_done: tf.Tensor  # float32, this one included, skipped ones not


class VariableState(typing.NamedTuple):
    """One variable and its moments, float32 of the same shape."""

    weights: tf.Tensor
    first_moment: tf.Tensor
    second_moment: tf.Tensor


@fused
def adam_direction(settings: Settings, state: VariableState, gradient: tf.Tensor, scalars: StepScalars) -> tf.Tensor:
    """Returns m / (sqrt(v) + epsilon) plus weight decay; the update subtracts the learning rate times this."""
    return _direction(settings, state, *_moments(settings, state, gradient, scalars), scalars)


def lamb_trust_ratio(weights: tf.Tensor, direction: tf.Tensor) -> tf.Tensor:
    """Returns |weights| / |direction|, scalar float32, or 1 where either is 0 (You et al., 2020, algorithm 2)."""
    weight_norm, direction_norm = (tf.linalg.global_norm([values]) for values in (weights, direction))
    ratio = weight_norm / tf.maximum(direction_norm, 1e-30)
    return tf.where((weight_norm > 0) & (direction_norm > 0), ratio, 1.0)


@fused
def updated_state(
    settings: Settings, state: VariableState, gradient: tf.Tensor, scalars: StepScalars, trust_ratio: tf.Tensor
) -> VariableState:
    """Returns the state after the step, or the same one if the step is skipped.

    The gradient is that before clipping; the scalar float32 `trust_ratio` scales the direction, and is 1 for Adam.
    """
    m, v = _moments(settings, state, gradient, scalars)
    direction = trust_ratio * _direction(settings, state, m, v, scalars)
    updated = VariableState(state.weights - scalars.learning_rate * direction, m, v)
    return VariableState(*(tf.where(scalars.is_finite, new, old) for new, old in zip(updated, state)))


@fused
def updated_average(ema_decay: float, average: tf.Tensor, weights: tf.Tensor, scalars: StepScalars) -> tf.Tensor:
    """Returns the exponential moving average after the step; `weights` are those after it."""
    # As tf.train.ExponentialMovingAverage: a short memory as long as there is little to remember.
    decay = tf.minimum(ema_decay, (1.0 + scalars.updates_done) / (10.0 + scalars.updates_done))
    return tf.where(scalars.is_finite, weights + decay * (average - weights), average)


@fused
def update_to_follow(
    weight_decay: float, before: tf.Tensor, after: tf.Tensor, scalars: StepScalars, trust_ratio: tf.Tensor
) -> tf.Tensor:
    """Returns a variable's change without its weight decay, for its follower, which decays as a whole."""
    decayed = scalars.learning_rate * trust_ratio * weight_decay * before
    return tf.where(scalars.is_finite, after - before + decayed, 0.0)


def _moments(settings, state, gradient, scalars):
    gradient = gradient * scalars.clip_factor
    m = settings.beta_1 * state.first_moment + (1.0 - settings.beta_1) * gradient
    v = settings.beta_2 * state.second_moment + (1.0 - settings.beta_2) * tf.square(gradient)
    return m, v


def _direction(settings, state, m, v, scalars):
    if settings.bias_correction:
        m = m / (1.0 - settings.beta_1**scalars.updates_done)
        v = v / (1.0 - settings.beta_2**scalars.updates_done)
    direction = m / (tf.sqrt(v) + settings.epsilon)
    return direction + settings.weight_decay * state.weights if settings.weight_decay else direction


# The update of one matrix by Muon: functions of tensors alone.

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
