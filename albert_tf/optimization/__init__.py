"""LAMB and AdamW as the paper uses them, Muon, and the learning-rate schedule."""

import albert_tf.base.quiet_tensorflow  # noqa: F401  (first)
from albert_tf.optimization.optimizers import AdamW, Lamb, Muon, make_optimizer
from albert_tf.optimization.schedule import LearningRateSchedule

__all__ = ["AdamW", "Lamb", "LearningRateSchedule", "Muon", "make_optimizer"]
