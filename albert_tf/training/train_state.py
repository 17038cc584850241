"""Everything that a training step reads and changes."""

import collections.abc
import dataclasses
import hashlib
import json
import types

import numpy as np
import tensorflow as tf

from albert_tf.modeling.layers import named_variables
from albert_tf.modeling.pretrained import AlbertModel
from albert_tf.objectives import Objective
from albert_tf.optimization import AdamW


class MetricSums:
    """Running sums of named metrics, some of them vectors of a length; create it inside a strategy's scope.

    They stay on the device, and averages of them are exact for any batch size and number of replicas: examples that
    only pad a batch weigh nothing. All replicas hold the same `variable`, so that a checkpoint is exact: float32 [2,
    numbers], the sums of the values and of their weights.
    """

    def __init__(self, names: tuple[str, ...], lengths: collections.abc.Mapping[str, int] = types.MappingProxyType({})):
        self.names = tuple(names)
        self._lengths = dict(lengths)
        self.variable = tf.Variable(
            tf.zeros([2, sum(self._lengths.get(name, 1) for name in self.names)]),
            trainable=False,
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
            name="metric_sums",
        )

    def update(self, values: dict[str, tuple[tf.Tensor, tf.Tensor]], is_counted: tf.Tensor | bool = True) -> None:
        """Adds what all replicas measured, unless not `is_counted`, the same on all; call it inside a replica.

        Each metric is (sum, weight), two float32 scalars over the replica's own examples, or two vectors.
        """
        sums, weights = zip(*(values[name] for name in self.names))
        context = tf.distribute.get_replica_context()
        measured = context.all_reduce("SUM", tf.stack([_joined(sums), _joined(weights)]))
        # A product would not do: 0 times infinity is not 0.
        counted = tf.where(is_counted, measured, tf.zeros_like(measured))
        context.merge_call(self._add_everywhere, args=(counted,))

    def _add_everywhere(self, strategy, measured):
        strategy.extended.update(self.variable, lambda variable, more: variable.assign_add(more), args=(measured,))

    def take(self) -> tuple[dict[str, float], dict[str, tuple[np.ndarray, np.ndarray]]]:
        """Returns averages, without those that nothing was added to, and sums and weights of vectors; starts anew."""
        values = self.variable.numpy()
        self.variable.assign(tf.zeros(self.variable.shape))
        averages, vectors, begin = {}, {}, 0
        for name in self.names:
            sums, weights = values[:, begin : begin + self._lengths.get(name, 1)]
            begin += len(sums)
            if name in self._lengths:
                vectors[name] = sums, weights
            elif weights[0]:
                averages[name] = float(sums[0] / weights[0])
        return averages, vectors


def _joined(values):
    """Returns scalars and vectors as one vector."""
    values = [tf.convert_to_tensor(value, tf.float32) for value in values]
    if all(value.shape.rank == 0 for value in values):
        return tf.stack(values)
    return tf.concat([tf.reshape(value, [-1]) for value in values], axis=0)


MAIN_MODEL = "model"


@dataclasses.dataclass(frozen=True)
class TrainState:
    """The variables and models that a training step reads and changes."""

    strategy: tf.distribute.Strategy
    objective: Objective
    models: dict[str, tf.keras.Model]  # what `Objective.make_models` returned, created in the strategy's scope
    optimizer: AdamW  # of `learnt_variables`, created there too
    global_step: tf.Variable  # int64, the number of steps done
    metric_sums: MetricSums  # what the steps since the last report measured

    @classmethod
    def create(
        cls, strategy: tf.distribute.Strategy, objective: Objective, models: dict[str, tf.keras.Model], optimizer: AdamW
    ) -> "TrainState":
        """Returns the state before the first step."""
        with strategy.scope():
            metric_sums = MetricSums(
                (*objective.loss_coefficients, *objective.metric_names, *optimizer.metric_names),
                objective.vector_metrics,
            )
        global_step = tf.Variable(0, dtype=tf.int64, trainable=False)
        return cls(strategy, objective, models, optimizer, global_step, metric_sums)

    def named_variables(self) -> dict[str, tf.Variable]:
        """Returns, by the name it has in a checkpoint, every variable that decides how the run goes on."""
        optimizer = self.optimizer
        moments = {
            "first_moments": optimizer.first_moments,
            "second_moments": optimizer.second_moments,
            "averages": optimizer.averages,
        }
        return {
            **saved_variables(self.objective, self.models),
            **{f"{group}/{name}": variable for group, named in moments.items() for name, variable in named.items()},
            "global_step": self.global_step,
            "skipped_steps": optimizer.skipped_steps,
            "last_skipped_step": optimizer.last_skipped_step,
            **(optimizer.loss_scale.named_variables() if optimizer.loss_scale else {}),
            "metric_sums": self.metric_sums.variable,
        }


def learnt_variables(objective: Objective, models: dict[str, tf.keras.Model]) -> dict[str, tf.Variable]:
    """Returns the variables that an optimizer may train, by name; those of additional models have the model's in front.

    A shared variable is listed once, under its name in the first model that has it, the main one before all others.
    Left out are variables of frozen models, unless another model learns them, and values that a model is told and never
    learns, such as the names of entities.
    """
    return {name: each for name, each in _own_variables(objective, models).items() if each.trainable}


def _own_variables(objective, models):
    """Returns the same with what is never learnt."""
    found, names = {}, sorted(set(models) - set(objective.frozen_models), key=lambda name: name != MAIN_MODEL)
    known = set()
    for model_name in names:
        prefix = "" if model_name == MAIN_MODEL else f"{model_name}/"
        for name, variable in named_variables(models[model_name]).items():
            if id(variable) not in known:
                known.add(id(variable))
                found[f"{prefix}{name}"] = variable
    return found


def saved_variables(objective: Objective, models: dict[str, tf.keras.Model]) -> dict[str, tf.Variable]:
    """Returns the variables that a checkpoint has, trainable or told, by name; the main model's begin with "model/"."""
    further = tuple(f"{name}/" for name in models if name != MAIN_MODEL)
    return {
        name if name.startswith(further) else f"{MAIN_MODEL}/{name}": variable
        for name, variable in _own_variables(objective, models).items()
    }


def begin_as_followers(objective: Objective, models: dict[str, tf.keras.Model]) -> None:
    """Gives variables that others follow the values that these have."""
    variables = learnt_variables(objective, models)
    for follower, followed in objective.followers(models).items():
        variables[followed].assign(variables[follower].numpy())


def frozen_identities(objective: Objective, models: dict[str, tf.keras.Model]) -> dict[str, str]:
    """Returns the SHA-256 of the content of each frozen model, by its name, and of the configs of ours.

    Weights alone don't tell how often a shared block is applied.
    """
    identities = {}
    for model_name in objective.frozen_models:
        digest = hashlib.sha256()
        for name, variable in sorted(named_variables(models[model_name]).items()):
            digest.update(name.encode())
            digest.update(variable.numpy().tobytes())
        identities[model_name] = digest.hexdigest()
        if isinstance(models[model_name], AlbertModel):
            config = json.dumps(models[model_name].config.to_dict(), sort_keys=True)
            identities[f"{model_name}_config"] = hashlib.sha256(config.encode()).hexdigest()
    return identities
