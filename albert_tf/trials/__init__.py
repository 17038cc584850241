"""Several trainings of one command, each with other settings, compared on held-out data."""

import albert_tf.quiet_tensorflow  # noqa: F401  (first)
from albert_tf.trials.search import Search
from albert_tf.trials.trials import Trial, run_trials

__all__ = ["Search", "Trial", "run_trials"]
