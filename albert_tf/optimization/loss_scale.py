"""Scales the loss, so that small gradients are not lost in float16 (Micikevicius et al., 2018, section 3.2).

The scale is halved when gradients overflow, and that step is left out; it is doubled after some thousand steps without.
"""

import tensorflow as tf

_FIRST_SCALE = 2.0**15
_LARGEST_SCALE = 2.0**24
_STEPS_TO_DOUBLE = 2000


class LossScale(tf.Module):
    """The factor of the loss, a power of two; create it in the strategy's scope."""

    def __init__(self):
        super().__init__()
        self.scale = variable_of_all(_FIRST_SCALE, tf.float32, "loss_scale")
        # Steps in a row with finite gradients at this scale.
        self.steps_at_scale = variable_of_all(0, tf.int64, "steps_at_scale")
        # Steps that were left out because the scale was too large for their gradients.
        self.overflows = variable_of_all(0, tf.int64, "overflows")

    def named_variables(self) -> dict[str, tf.Variable]:
        return {
            "loss_scale": self.scale,
            "steps_at_loss_scale": self.steps_at_scale,
            "loss_scale_overflows": self.overflows,
        }

    def scaled(self, loss: tf.Tensor) -> tf.Tensor:
        return loss * tf.cast(self.scale.read_value(), loss.dtype)

    def unscaled(self, gradients: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        factor = 1.0 / self.scale.read_value()
        return {name: gradient * factor for name, gradient in gradients.items()}

    def is_overflow(self, loss: tf.Tensor, norm: tf.Tensor) -> tf.Tensor:
        """Returns whether a smaller scale may help: the loss is finite, and the norm of the gradients is not."""
        return tf.math.is_finite(loss) & ~tf.math.is_finite(norm) & (self.scale.read_value() > 1.0)

    def next_values(self, is_finite: tf.Tensor, is_overflow: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns `scale`, `steps_at_scale` and `overflows` after a step; call it inside a replica."""
        scale, steps = self.scale.read_value(), self.steps_at_scale.read_value() + tf.cast(is_finite, tf.int64)
        is_to_double = steps >= _STEPS_TO_DOUBLE
        grown = tf.where(is_to_double, tf.minimum(2.0 * scale, _LARGEST_SCALE), scale)
        return (
            tf.where(is_overflow, 0.5 * scale, grown),
            tf.where(is_overflow | is_to_double, tf.zeros([], tf.int64), steps),
            self.overflows.read_value() + tf.cast(is_overflow, tf.int64),
        )

    def assign(self, strategy: tf.distribute.Strategy, values: tuple[tf.Tensor, tf.Tensor, tf.Tensor]) -> None:
        """Assigns the results of `next_values`, where variables of all replicas are updated."""
        for variable, value in zip((self.scale, self.steps_at_scale, self.overflows), values):
            strategy.extended.update(variable, lambda each, new: each.assign(new), args=(value,))


def variable_of_all(value: float, dtype: tf.DType, name: str) -> tf.Variable:
    """Returns a scalar that is not trainable, and the same on all replicas."""
    return tf.Variable(
        value, dtype=dtype, trainable=False, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA, name=name
    )
