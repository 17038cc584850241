"""Several trainings of one command, each with other settings, compared on held-out data."""

from albert_tf.trials.search import Choices, Range, Search
from albert_tf.trials.trials import Trial, run_trials

__all__ = ["Choices", "Range", "Search", "Trial", "run_trials"]
