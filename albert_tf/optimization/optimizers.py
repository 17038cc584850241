"""AdamW, LAMB and Muon over TensorFlow variables, with every reduction across replicas explicit.

As in the original (optimization.py, lamb_optimizer.py), the bias of the moments is not corrected unless asked, weight
decay is decoupled, and LayerNorm weights and biases are left out of weight decay and of LAMB's layer adaptation. Unlike
there, the gradient norm is clipped after the gradients of all replicas have been added up, and a step whose loss or
gradient is not finite changes nothing.
"""

import contextlib
import functools
import re
import typing

import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.optimization.schedule import LearningRateSchedule
from albert_tf.optimization.updates import (
    Settings,
    StepScalars,
    VariableState,
    accumulated,
    adam_direction,
    lamb_trust_ratio,
    muon_direction,
    update_to_follow,
    updated_average,
    updated_state,
)

_FIRST_SCALE = 2.0**15
_LARGEST_SCALE = 2.0**24
_STEPS_TO_DOUBLE = 2000


class LossScale(tf.Module):
    """The factor of the loss that keeps small gradients in float16 (Micikevicius et al., 2018, section 3.2).

    It is a power of two: halved when gradients overflow, whose step is left out; doubled after 2,000 steps without.
    Create it in the strategy's scope.
    """

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


_MATRIX_OF_BLOCK = re.compile(r"(attention|feed_forward)_layers/.*kernel$")
_EXCLUDED = re.compile(r"gamma$|beta$|bias")


class Applied(typing.NamedTuple):
    is_finite: tf.Tensor  # scalar bool, whether loss and gradient were finite; if not, the step was skipped
    gradient_norm: tf.Tensor  # scalar float32, the global norm of the gradients before clipping
    trust_ratios: dict[str, tf.Tensor]  # scalar float32 by variable, LAMB's factor of the update; empty for the others


class AdamW(tf.Module):
    """Adam with decoupled weight decay. Create it in the scope of the strategy that the variables were created in.

    Args:
        variables: Variables to train, by name.
        schedule: The learning rate of each step.
        weight_decay: Share of a weight that is added to its update.
        beta_1: Decay of the first moment.
        beta_2: Decay of the second moment.
        epsilon: Added to the root of the second moment.
        clip_norm: Largest global norm of the gradients, to which larger ones are scaled down; 0 for no limit.
        bias_correction: Divide the moments by 1 - beta^t.
        ema_decay: Decay of an exponential moving average of the weights, for `averaged_weights`; 0 for none.
        compute_dtype: Of products of matrices: those of the model, and those of `Muon`, though never in float16.
        rate_factors: Factors of the learning rate for some variables, by name; for the others it is 1.
        followers: Names of variables that also move with the updates of another one, and that one's name.

    Attributes:
        second_moments: Variables by name; `Muon` has none for matrices of blocks.
        averages: Variables of the averaged weights, by name; empty without `ema_decay`.
        skipped_steps: int64 variable, how many steps were skipped because loss or gradient was not finite.
        last_skipped_step: int64 variable, the last of them; -1 for none.
        loss_scale: The `LossScale` for products in float16; None for other dtypes.

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
        ema_decay: float = 0.0,
        compute_dtype: str = "float32",
        rate_factors: dict[str, float] | None = None,
        followers: dict[str, str] | None = None,
    ):
        super().__init__()
        if not weight_decay >= 0.0:
            raise InputError(f"weight_decay must be at least 0. Received: {weight_decay}")
        for name, value in (("beta_1", beta_1), ("beta_2", beta_2), ("ema_decay", ema_decay)):
            if not 0.0 <= value < 1.0:
                raise InputError(f"{name} must be at least 0 and less than 1. Received: {value}")
        if not epsilon > 0.0:
            raise InputError(f"epsilon must be greater than 0. Received: {epsilon}")
        if not clip_norm >= 0.0:
            raise InputError(f"clip_norm must be at least 0. Received: {clip_norm}")
        self.schedule = schedule
        self.trained_variables = dict(variables)
        self._settings = Settings(weight_decay, beta_1, beta_2, epsilon, bias_correction)
        self._clip_norm, self._ema_decay = clip_norm, ema_decay
        self.loss_scale = LossScale() if compute_dtype == "float16" else None
        self._compute_dtype = "float32" if self.loss_scale else compute_dtype
        self._rate_factors = dict(rate_factors or {})
        trained = self.trained_variables.keys()
        followers = followers or {}
        self._follower_of = {followed: name for name, followed in followers.items() if {name, followed} <= trained}
        self.first_moments = {name: _zeros(variable, f"{name}/adam_m") for name, variable in variables.items()}
        self.second_moments = {
            name: _zeros(variable, f"{name}/adam_v")
            for name, variable in variables.items()
            if not self._orthogonalizes(name)
        }
        averaged = variables.items() if ema_decay else ()
        self.averages = {name: _zeros(variable, f"{name}/average") for name, variable in averaged}
        self.start_averages()
        self.skipped_steps = variable_of_all(0, tf.int64, "skipped_steps")
        self.last_skipped_step = variable_of_all(-1, tf.int64, "last_skipped_step")

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Names of the `metrics` of a step."""
        return ("gradient_norm", *(f"trust_ratio/{name}" for name in self.trained_variables if self._adapts(name)))

    def metrics(self, applied: Applied) -> dict[str, tuple[tf.Tensor, tf.Tensor]]:
        """Returns (value, weight), two float32 scalars, for each of `metric_names`; what doesn't apply weighs 0."""
        values = {"gradient_norm": applied.gradient_norm}
        values.update((f"trust_ratio/{name}", ratio) for name, ratio in applied.trust_ratios.items())
        return {
            name: (values[name], tf.ones([])) if name in values else (tf.zeros([]), tf.zeros([]))
            for name in self.metric_names
        }

    def apply(self, gradients: dict[str, tf.Tensor], step: tf.Tensor, loss: tf.Tensor) -> Applied:
        """Updates the variables; call it inside a replica. The results are the same on all replicas.

        Args:
            gradients: Of the `scaled` loss, by name of variable, added up over all replicas already; other variables
                stay as they are.
            step: Scalar int, 0 for the first.
            loss: Scalar float32, the same on all replicas.
        """
        if self.loss_scale:
            gradients = self.loss_scale.unscaled(gradients)
        norm = tf.linalg.global_norm(list(gradients.values()))
        is_finite = tf.math.is_finite(norm) & tf.math.is_finite(loss)
        # A step that is left out because of the scale is none that went wrong: the next ones have a smaller scale.
        is_overflow, next_scale, left_out = tf.constant(False), (), self.skipped_steps.read_value()
        if self.loss_scale:
            left_out += self.loss_scale.overflows.read_value()
            is_overflow = self.loss_scale.is_overflow(loss, norm)
            next_scale = self.loss_scale.next_values(is_finite, is_overflow)
        scalars = StepScalars(
            is_finite=is_finite,
            clip_factor=self._clip_norm / tf.maximum(norm, self._clip_norm) if self._clip_norm else tf.ones([]),
            learning_rate=self.schedule(step),
            updates_done=tf.cast(step, tf.float32) + 1.0 - tf.cast(left_out, tf.float32),
        )
        context = tf.distribute.get_replica_context()
        arguments = (gradients, tf.cast(step, tf.int64), scalars, ~(is_finite | is_overflow), next_scale)
        return Applied(is_finite, norm, context.merge_call(self._update_all, args=arguments))

    def scaled(self, loss: tf.Tensor) -> tf.Tensor:
        """Returns the loss to differentiate, inside a tape."""
        return self.loss_scale.scaled(loss) if self.loss_scale else loss

    def _update_all(self, strategy, gradients, step, scalars, is_skipped, next_scale):
        trust_ratios = {}
        following = self._follower_of.values()
        # What follows comes last: its average is one of where it stands after both updates.
        for name, gradient in sorted(gradients.items(), key=lambda item: item[0] in following):
            follower = self.trained_variables.get(self._follower_of.get(name))
            # One result for each device of this host, all the same.
            moments = self.first_moments[name], self.second_moments.get(name), self.averages.get(name)
            trust_ratio, *_ = strategy.extended.update(
                self.trained_variables[name],
                functools.partial(self._update, name),
                args=(follower, gradient, *moments, scalars),
                group=False,
            )
            if self._adapts(name):
                trust_ratios[name] = trust_ratio
        if self.loss_scale:
            self.loss_scale.assign(strategy, next_scale)
        skipped = (self.skipped_steps, lambda count, more: count.assign_add(tf.cast(more, tf.int64)), (is_skipped,))
        last = (
            self.last_skipped_step,
            lambda last, more, now: last.assign(tf.where(more, now, last.read_value())),
            (is_skipped, step),
        )
        for counter, update, arguments in (skipped, last):
            strategy.extended.update(counter, update, args=arguments)
        return trust_ratios

    def _update(self, name, variable, follower, gradient, first_moment, second_moment, average, scalars):
        """Updates one variable, what goes with it and its follower; returns its trust ratio."""
        if name in self._rate_factors:
            scalars = scalars._replace(learning_rate=scalars.learning_rate * self._rate_factors[name])
        settings = self._settings
        if _EXCLUDED.search(name):
            settings = settings._replace(weight_decay=0.0)
        variables = VariableState(variable, first_moment, second_moment)
        state = VariableState(*(None if each is None else tf.convert_to_tensor(each) for each in variables))
        updated, trust_ratio = self._updated(name, settings, state, gradient, scalars)
        if average is not None:
            average.assign(updated_average(self._ema_decay, tf.convert_to_tensor(average), updated.weights, scalars))
        for each, value in zip(variables, updated):
            if each is not None:
                each.assign(value)
        if follower is not None:
            follower.assign_add(
                update_to_follow(settings.weight_decay, state.weights, updated.weights, scalars, trust_ratio)
            )
        return trust_ratio

    def _updated(self, name, settings, state, gradient, scalars):
        """Returns the state of a variable after a step, and its trust ratio."""
        trust_ratio = tf.ones([])
        if self._adapts(name):
            trust_ratio = lamb_trust_ratio(state.weights, adam_direction(settings, state, gradient, scalars))
        return updated_state(settings, state, gradient, scalars, trust_ratio), trust_ratio

    def _adapts(self, name):
        """Returns whether the update of a variable is scaled to the norm of its weights."""
        return False

    def _orthogonalizes(self, name):
        """Returns whether the update of a variable has all its singular values made equal."""
        return False

    def start_averages(self) -> None:
        """Sets the averages to the weights as they are now."""
        for name, average in self.averages.items():
            average.assign(self.trained_variables[name])

    @contextlib.contextmanager
    def averaged_weights(self):
        """Puts the averages, if any are kept, in the place of the weights for as long as the context lasts."""
        weights = {name: self.trained_variables[name].numpy() for name in self.averages}
        try:
            for name, average in self.averages.items():
                self.trained_variables[name].assign(average.numpy())
            yield
        finally:
            for name, values in weights.items():
                self.trained_variables[name].assign(values)


class Lamb(AdamW):
    """LAMB: Adam whose update is scaled to the norm of each variable (You et al., 2020, algorithm 2).

    As in the original ALBERT, the ratio is not clipped, and it is 1 where either norm is 0. Arguments as for `AdamW`.
    """

    def _adapts(self, name):
        return _EXCLUDED.search(name) is None


class Muon(AdamW):
    """Muon for the matrices of the blocks, AdamW for embeddings, heads, biases and LayerNorm.

    A matrix moves along its momentum with all singular values made equal (Jordan et al., 2024, "Muon: An optimizer for
    hidden layers in neural networks"), so that rare examples count, too. The update is scaled to the size of Adam's
    (Liu et al., 2025), so arguments mean the same as for `AdamW`; the momentum of matrices is 0.95, whatever `beta_1`
    is.
    """

    def _updated(self, name, settings, state, gradient, scalars):
        if not self._orthogonalizes(name):
            return super()._updated(name, settings, state, gradient, scalars)
        moment, direction = accumulated(state.first_moment, gradient, scalars)
        update = scalars.learning_rate * muon_direction(settings, state.weights, direction, self._compute_dtype)
        weights = tf.where(scalars.is_finite, state.weights - update, state.weights)
        moment = tf.where(scalars.is_finite, moment, state.first_moment)
        return VariableState(weights, moment, None), tf.ones([])

    def _orthogonalizes(self, name):
        return _MATRIX_OF_BLOCK.search(name) is not None


OPTIMIZERS = {"lamb": Lamb, "adamw": AdamW, "muon": Muon}


def make_optimizer(name: str, variables: dict[str, tf.Variable], schedule: LearningRateSchedule, **options) -> AdamW:
    """Returns an optimizer of `OPTIMIZERS` by name, an InputError if there is none; options as for `AdamW`."""
    if name not in OPTIMIZERS:
        raise InputError(f"the optimizer must be one of {', '.join(sorted(OPTIMIZERS))}. Received: {name}")
    return OPTIMIZERS[name](variables, schedule, **options)


def _zeros(variable, name):
    return tf.Variable(tf.zeros(variable.shape, variable.dtype), trainable=False, name=name.replace("/", "."))
