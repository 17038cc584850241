"""The very steps that `training.train_step` runs, lowered for the TPU compiler."""

import collections.abc
import types
import typing

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.finetuning import TASKS
from albert_tf.objectives import OBJECTIVES, Objective, make_objective
from albert_tf.objectives.objective import BatchSpec, with_batch_size
from albert_tf.optimization import LearningRateSchedule, make_optimizer
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.tpu.compile_step import lower
from albert_tf.tpu.replica_strategy import ReplicaStrategy
from albert_tf.training.train_state import MAIN_MODEL, TrainState, learnt_variables
from albert_tf.training.train_step import make_replica_step


def planned_names() -> list[str]:
    """Returns the names of everything that can be planned: objectives of pre-training, and tasks."""
    return sorted([*OBJECTIVES, *TASKS])


def planned_objective(
    name: str,
    config: AlbertConfig,
    max_predictions_per_seq: int | None = None,
    settings: collections.abc.Mapping[str, typing.Any] = types.MappingProxyType({}),
) -> Objective:
    """Returns the objective of one of `planned_names`; by default predictions are 15% of a length."""
    if name in TASKS:
        if settings:
            raise InputError(f"`{next(iter(settings))}` has no meaning for `task={name}`; leave it out")
        return TASKS[name](config)
    return make_objective(name, config, settings=settings, masking=MaskingOptions(max_predictions_per_seq))


def lower_step(
    objective: Objective,
    batch_size: int,
    max_seq_length: int,
    optimizer: str = "lamb",
    dtype: str = "mixed_bfloat16",
    remat: str = "none",
    attention: str = "auto",
    gradient_accumulation_steps: int = 1,
    num_replicas: int = 1,
    runs_pallas_kernels: bool = True,
    strategy: tf.distribute.Strategy | None = None,
) -> str:
    """Returns one replica's training step, with gradient all-reduce, as StableHLO text, for a TPU or `strategy`."""
    strategy = strategy or ReplicaStrategy(num_replicas, runs_pallas_kernels)
    with strategy.scope():
        models = objective.make_models(remat=remat, attention=attention, dtype=dtype)
        variables = learnt_variables(objective, models)
        compute_dtype = models[MAIN_MODEL].compute_dtype
        schedule = LearningRateSchedule(1e-3, 1000, 10)
        made_optimizer = make_optimizer(
            optimizer, variables, schedule, compute_dtype=compute_dtype, followers=objective.followers(models)
        )
    state = TrainState.create(strategy, objective, models, made_optimizer)
    replica_step = make_replica_step(state, 0, gradient_accumulation_steps)
    batch = zeros(with_batch_size(objective.batch_spec(max_seq_length), batch_size))

    def step(number, *values):
        strategy.run(replica_step, args=(dict(zip(batch, values)), number))

    return lower(step, [tf.constant(0), *batch.values()])


def uncounted_flops(objective: Objective, batch_size: int, max_seq_length: int) -> int:
    """Returns how many operations of a step the compiler leaves out, because it counts the body of a loop once."""
    return objective.uncounted_flops(with_batch_size(objective.batch_spec(max_seq_length), batch_size))


def zeros(batch_spec: BatchSpec) -> dict[str, tf.Tensor]:
    return {name: tf.zeros(spec.shape, spec.dtype) for name, spec in batch_spec.items()}
