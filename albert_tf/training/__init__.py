"""Training, evaluating and using models in run folders; knows no objective by name, and no flag.

run = TrainingRun("run", objective, objective.make_model(), RunSettings(...), tokenizer)
run.train([Phase(...)])
run.evaluate(dataset)
"""

import albert_tf.base.quiet_tensorflow  # noqa: F401  (first)
from albert_tf.training.run import TrainingRun
from albert_tf.training.settings import Phase, RunSettings

__all__ = ["Phase", "RunSettings", "TrainingRun"]
