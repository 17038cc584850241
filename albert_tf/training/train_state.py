"""Everything that a training step reads and changes."""

import dataclasses

import tensorflow as tf

from albert_tf.modeling.layers import named_variables
from albert_tf.objectives import Objective
from albert_tf.optimization import AdamW
from albert_tf.training.metrics import MetricSums

MAIN_MODEL = "model"


@dataclasses.dataclass(frozen=True)
class TrainState:
    """What a training step reads and changes.

    Attributes:
        strategy: Where to run.
        objective: What is learnt.
        models: What `Objective.make_models` returned, created in the strategy's scope.
        optimizer: Of `learnt_variables`, created in the strategy's scope.
        global_step: int64 variable, the number of steps done.
        metric_sums: What the steps since the last report measured.
    """

    strategy: tf.distribute.Strategy
    objective: Objective
    models: dict[str, tf.keras.Model]
    optimizer: AdamW
    global_step: tf.Variable
    metric_sums: MetricSums

    @classmethod
    def create(
        cls,
        strategy: tf.distribute.Strategy,
        objective: Objective,
        models: dict[str, tf.keras.Model],
        optimizer: AdamW,
    ) -> "TrainState":
        """Returns the state before the first step."""
        with strategy.scope():
            metric_sums = MetricSums((*objective.loss_coefficients, *objective.metric_names, *optimizer.metric_names))
        global_step = tf.Variable(0, dtype=tf.int64, trainable=False)
        return cls(strategy, objective, models, optimizer, global_step, metric_sums)

    @property
    def model(self) -> tf.keras.Model:
        """The model that the run is for."""
        return self.models[MAIN_MODEL]

    def named_variables(self) -> dict[str, tf.Variable]:
        """Returns, by the name it has in a checkpoint, every variable that decides how the run goes on.

        Those of frozen models are not among them: `Objective.make_models` gives them their values.
        """
        optimizer = self.optimizer
        groups = {
            **{name: named_variables(model) for name, model in _learning(self.objective, self.models).items()},
            "first_moments": optimizer.first_moments,
            "second_moments": optimizer.second_moments,
            "averages": optimizer.averages,
        }
        return {
            **{f"{group}/{name}": variable for group, named in groups.items() for name, variable in named.items()},
            "global_step": self.global_step,
            "skipped_steps": optimizer.skipped_steps,
            "last_skipped_step": optimizer.last_skipped_step,
            "metric_sums": self.metric_sums.variable,
        }


def learnt_variables(objective: Objective, models: dict[str, tf.keras.Model]) -> dict[str, tf.Variable]:
    """Returns what an optimizer may train, by name; variables of further models have the model's name in front."""
    return {
        name if model_name == MAIN_MODEL else f"{model_name}/{name}": variable
        for model_name, model in _learning(objective, models).items()
        for name, variable in named_variables(model).items()
    }


def _learning(objective, models):
    return {name: model for name, model in models.items() if name not in objective.frozen_models}
