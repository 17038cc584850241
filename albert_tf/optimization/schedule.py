"""The learning rate as a function of the step."""

import dataclasses

import tensorflow as tf

from albert_tf.base.errors import InputError

SCHEDULE_CHOICES = ("continuous", "original")


@dataclasses.dataclass(frozen=True)
class LearningRateSchedule:
    """Linear warm-up, then polynomial decay to zero.

    "continuous" reaches the peak in the last warm-up step and decays from there; its first step already learns.
    "original" is that of google-research/albert (optimization.py): its first step has rate 0, and the decay counts from
    step 0, so the rate drops by warm-up/total at the end of the warm-up (google-research/albert#49).

    Attributes:
        peak: Highest learning rate.
        num_train_steps: Step at which the rate would reach zero.
        num_warmup_steps: Length of the warm-up.
        power: Exponent of the decay; 1 is linear.
        kind: "continuous" or "original".

    Raises:
        InputError: The warm-up is not shorter than the training, or a value is out of range.
    """

    peak: float
    num_train_steps: int
    num_warmup_steps: int = 0
    power: float = 1.0
    kind: str = "continuous"

    def __post_init__(self):
        if not 0 <= self.num_warmup_steps < self.num_train_steps:
            raise InputError(
                "the number of warm-up steps must be at least 0 and less than the number of training steps. "
                f"Received: {self.num_warmup_steps} and {self.num_train_steps}"
            )
        if not self.peak > 0:
            raise InputError(f"the learning rate must be greater than 0. Received: {self.peak}")
        if not self.power >= 0:
            raise InputError(f"the power of the learning rate's decay must be at least 0. Received: {self.power}")
        if self.kind not in SCHEDULE_CHOICES:
            raise InputError(f"the schedule must be one of {', '.join(SCHEDULE_CHOICES)}. Received: {self.kind}")

    def __call__(self, step: tf.Tensor) -> tf.Tensor:
        """Returns the float32 rate of a step; the first step is 0."""
        step = tf.cast(step, tf.float32)
        total, warmup = float(self.num_train_steps), float(self.num_warmup_steps)
        if self.kind == "original":
            warming = step / max(warmup, 1.0)
            remaining = 1.0 - step / total
        else:
            warming = (step + 1.0) / max(warmup, 1.0)
            remaining = 1.0 - (step - warmup) / (total - warmup)
        decayed = tf.maximum(remaining, 0.0) ** self.power
        return self.peak * tf.where(step < warmup, warming, decayed)
