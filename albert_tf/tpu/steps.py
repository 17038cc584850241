"""The very steps that `training.train_step` runs, lowered for the TPU compiler."""

import functools

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.modeling import (
    AlbertForPreTraining,
    AlbertForQuestionAnswering,
    AlbertForSequenceClassification,
)
from albert_tf.modeling.kernels import tied_cross_entropy
from albert_tf.modeling.layers import named_variables
from albert_tf.optimization import LearningRateSchedule, make_optimizer
from albert_tf.tasks.classification import ClassificationTask
from albert_tf.tasks.question_answering import QuestionAnsweringTask
from albert_tf.tpu.compile_step import lower
from albert_tf.tpu.replica_strategy import ReplicaStrategy
from albert_tf.training.pretraining import PretrainingTask
from albert_tf.training.train_step import TrainState, make_replica_step

_NUM_LABELS = 2
# The model and the task of each.
_TASKS = {
    "pretrain": (AlbertForPreTraining, PretrainingTask),
    "classify": (functools.partial(AlbertForSequenceClassification, num_labels=_NUM_LABELS), ClassificationTask),
    "squad": (AlbertForQuestionAnswering, QuestionAnsweringTask),
}
TASKS = tuple(_TASKS)


def lower_step(
    config: AlbertConfig,
    task: str,
    batch_size: int,
    max_seq_length: int,
    max_predictions_per_seq: int = 0,
    optimizer: str = "lamb",
    dtype: str = "mixed_bfloat16",
    remat: str = "none",
    attention: str = "auto",
    gradient_accumulation_steps: int = 1,
    num_replicas: int = 1,
    runs_pallas_kernels: bool = True,
) -> str:
    """Returns one training step of one replica, with optimizer and gradient all-reduce, as StableHLO text.

    Args:
        config: The model.
        task: One of `TASKS`.
        batch_size: Of one replica.
        max_seq_length: Pieces of an example.
        max_predictions_per_seq: Masked pieces of an example, for "pretrain".
        optimizer: "lamb" or "adamw".
        dtype: Keras dtype policy.
        remat: As for `AlbertEncoder`.
        attention: As for `AlbertEncoder`.
        gradient_accumulation_steps: Parts that the batch is computed in.
        num_replicas: How many replicas add their gradients up.
        runs_pallas_kernels: Whether the TPU does; see `ReplicaStrategy`.
    """
    strategy = ReplicaStrategy(num_replicas, runs_pallas_kernels)
    make_model, make_task = _TASKS[task]
    with strategy.scope():
        model = make_model(config, remat=remat, attention=attention, dtype=dtype)
        made_optimizer = make_optimizer(optimizer, named_variables(model), LearningRateSchedule(1e-3, 1000, 10))
    state = TrainState.create(strategy, make_task(), model, made_optimizer)
    replica_step = make_replica_step(state, 0, gradient_accumulation_steps)
    batch = make_batch(task, batch_size, max_seq_length, max_predictions_per_seq)

    def step(number, *values):
        strategy.run(replica_step, args=(dict(zip(batch, values)), number))

    return lower(step, [tf.constant(0), *batch.values()])


def uncounted_operations(config: AlbertConfig, task: str, batch_size: int, max_predictions_per_seq: int) -> int:
    """Returns how many operations of a step the compiler leaves out, because it counts the body of a loop once."""
    if task != "pretrain":
        return 0
    return tied_cross_entropy.uncounted_operations(
        batch_size * max_predictions_per_seq, config.embedding_size, config.vocab_size
    )


def make_batch(task: str, batch_size: int, max_seq_length: int, max_predictions_per_seq: int) -> dict[str, tf.Tensor]:
    """Returns a batch of zeros, with the features that the input pipeline gives."""
    integers = {name: [max_seq_length] for name in ("input_ids", "input_mask", "segment_ids")}
    floats = {"example_weights": []}
    if task == "pretrain":
        integers.update({name: [max_predictions_per_seq] for name in ("masked_lm_positions", "masked_lm_ids")})
        integers["sentence_order_labels"] = []
        floats["masked_lm_weights"] = [max_predictions_per_seq]
    elif task == "classify":
        integers["label_ids"] = []
    else:
        integers.update({name: [] for name in ("start_positions", "end_positions")})
    return {
        **{name: tf.zeros([batch_size, *shape], tf.int32) for name, shape in integers.items()},
        **{name: tf.zeros([batch_size, *shape]) for name, shape in floats.items()},
    }
