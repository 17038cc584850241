"""AdamW and LAMB over TensorFlow variables, with every reduction across replicas explicit.

As in the original (optimization.py, lamb_optimizer.py), neither corrects the bias of the moments unless asked, weight
decay is decoupled, and LayerNorm weights and biases are left out of weight decay and of LAMB's layer adaptation.
Unlike there, the gradient norm is clipped after the gradients of all replicas have been added up.
"""

import re

import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.optimization.schedule import LearningRateSchedule

_EXCLUDED = re.compile(r"layer_norm|bias")


class AdamW(tf.Module):
    """Adam with decoupled weight decay.

    Create it inside the scope of the strategy that the variables were created in.

    Args:
        variables: Variables to train, by name.
        schedule: The learning rate of each step.
        weight_decay: Share of a weight that is added to its update.
        beta_1: Decay of the first moment.
        beta_2: Decay of the second moment.
        epsilon: Added to the root of the second moment.
        clip_norm: Largest global norm of the gradients; longer ones are scaled down to it.
        bias_correction: Divide the moments by 1 - beta^t.

    Raises:
        InputError: A setting is out of range.
    """

    def __init__(
        self,
        variables: dict[str, tf.Variable],
        schedule: LearningRateSchedule,
        weight_decay: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        clip_norm: float = 1.0,
        bias_correction: bool = False,
    ):
        super().__init__()
        if not weight_decay >= 0.0:
            raise InputError(f"weight_decay must be at least 0. Received: {weight_decay}")
        for name, value in (("beta_1", beta_1), ("beta_2", beta_2)):
            if not 0.0 <= value < 1.0:
                raise InputError(f"{name} must be at least 0 and less than 1. Received: {value}")
        for name, value in (("epsilon", epsilon), ("clip_norm", clip_norm)):
            if not value > 0.0:
                raise InputError(f"{name} must be greater than 0. Received: {value}")
        self.schedule = schedule
        self._variables = dict(variables)
        self._weight_decay, self._clip_norm = weight_decay, clip_norm
        self._beta_1, self._beta_2, self._epsilon = beta_1, beta_2, epsilon
        self._bias_correction = bias_correction
        self.first_moments = {name: _zeros(variable, f"{name}/adam_m") for name, variable in variables.items()}
        self.second_moments = {name: _zeros(variable, f"{name}/adam_v") for name, variable in variables.items()}

    def apply(self, gradients: dict[str, tf.Tensor], step: tf.Tensor) -> tf.Tensor:
        """Updates the variables; call it inside a replica.

        Args:
            gradients: By name of variable, added up over all replicas already; other variables stay as they are.
            step: Scalar int, 0 for the first.

        Returns:
            Scalar float32, the global norm of the gradients before clipping.
        """
        norm = tf.linalg.global_norm(list(gradients.values()))
        scale = self._clip_norm / tf.maximum(norm, self._clip_norm)
        gradients = {name: gradient * scale for name, gradient in gradients.items()}
        learning_rate = self.schedule(step)
        updates_done = tf.cast(step, tf.float32) + 1.0
        context = tf.distribute.get_replica_context()
        context.merge_call(self._update_all, args=(gradients, learning_rate, updates_done))
        return norm

    def _update_all(self, strategy, gradients, learning_rate, updates_done):
        for name, gradient in gradients.items():
            strategy.extended.update(
                self._variables[name],
                self._update,
                args=(
                    gradient,
                    self.first_moments[name],
                    self.second_moments[name],
                    learning_rate,
                    updates_done,
                    _EXCLUDED.search(name) is not None,
                ),
            )

    def _update(self, variable, gradient, first_moment, second_moment, learning_rate, updates_done, is_excluded):
        m = self._beta_1 * first_moment + (1.0 - self._beta_1) * gradient
        v = self._beta_2 * second_moment + (1.0 - self._beta_2) * tf.square(gradient)
        if self._bias_correction:
            corrected_m = m / (1.0 - self._beta_1**updates_done)
            corrected_v = v / (1.0 - self._beta_2**updates_done)
        else:
            corrected_m, corrected_v = m, v
        weights = tf.convert_to_tensor(variable)
        update = corrected_m / (tf.sqrt(corrected_v) + self._epsilon)
        if not is_excluded:
            update += self._weight_decay * weights
            update *= self._trust_ratio(weights, update)
        first_moment.assign(m)
        second_moment.assign(v)
        variable.assign(weights - learning_rate * update)

    def _trust_ratio(self, weights, update):
        """Returns the factor of a variable's update; 1 for Adam."""
        return 1.0


class Lamb(AdamW):
    """LAMB: Adam whose update is scaled to the norm of each variable (You et al., 2020, algorithm 2).

    As in the original ALBERT, the ratio is not clipped, and it is 1 where either norm is 0. Arguments as for `AdamW`.
    """

    def _trust_ratio(self, weights, update):
        weight_norm, update_norm = tf.norm(weights), tf.norm(update)
        return tf.where((weight_norm > 0) & (update_norm > 0), weight_norm / tf.maximum(update_norm, 1e-30), 1.0)


OPTIMIZERS = {"lamb": Lamb, "adamw": AdamW}


def make_optimizer(name: str, variables: dict[str, tf.Variable], schedule: LearningRateSchedule, **options) -> AdamW:
    """Returns the optimizer that a flag names; options as for `AdamW`.

    Raises:
        InputError: There is no such optimizer, or an option is out of range.
    """
    if name not in OPTIMIZERS:
        raise InputError(f"the optimizer must be one of {', '.join(sorted(OPTIMIZERS))}. Received: {name}")
    return OPTIMIZERS[name](variables, schedule, **options)


def _zeros(variable, name):
    return tf.Variable(tf.zeros(variable.shape, variable.dtype), trainable=False, name=name.replace("/", "."))
