"""Global batches, split over replicas and hosts."""

import collections.abc
import enum
import threading
import typing

import tensorflow as tf

from albert_tf.base.compilation import is_compiled_whole
from albert_tf.base.errors import InputError
from albert_tf.base.startup import num_usable_cores
from albert_tf.modeling.kernels.elementwise import part_of_batch
from albert_tf.objectives.objective import Batch
from albert_tf.training.devices import WholeStepStrategy

_Result = typing.TypeVar("_Result")


class BatchLengths(enum.Enum):
    """How many lengths batches may have."""

    ANY = enum.auto()  # each may be as short as its longest example
    FEW = enum.auto()  # each length is compiled once, so they should be few: powers of two
    ONE = enum.auto()  # all batches of a phase have one shape


def suitable_lengths(strategy: tf.distribute.Strategy) -> BatchLengths:
    """Returns how many lengths suit a strategy: a TPU compiles a step for one."""
    if isinstance(strategy, tf.distribute.TPUStrategy):
        return BatchLengths.ONE
    return BatchLengths.FEW if isinstance(strategy, WholeStepStrategy) else BatchLengths.ANY


def has_any_length(strategy: tf.distribute.Strategy) -> bool:
    """Returns whether a function of batches should be traced for any length: few lengths are compiled one by one."""
    return suitable_lengths(strategy) is BatchLengths.ANY


def per_replica_batch_size(
    strategy: tf.distribute.Strategy, global_batch_size: int, flag: str, gradient_accumulation_steps: int = 1
) -> int:
    """Returns each replica's share of a batch, of which it computes a micro-batch at a time."""
    replicas = strategy.num_replicas_in_sync
    if global_batch_size % replicas:
        raise InputError(f"`{flag}={global_batch_size}` must be a multiple of the number of replicas, {replicas}")
    if global_batch_size % (replicas * gradient_accumulation_steps):
        raise InputError(
            f"`{flag}={global_batch_size}` must be a multiple of {replicas * gradient_accumulation_steps}, the number "
            f"of replicas ({replicas}) times `gradient_accumulation_steps={gradient_accumulation_steps}`"
        )
    return global_batch_size // replicas


def distribute_batches(
    strategy: tf.distribute.Strategy, dataset: tf.data.Dataset
) -> tf.distribute.DistributedDataset | tf.data.Dataset:
    """Returns a data set of global batches with each batch split over all replicas.

    Each of several hosts reads all batches and keeps its share, so that the batches do not depend on the number of
    hosts. On one CPU nothing has to be split or moved, and tf.data's tuning is turned off, which the end of a program
    would wait for.
    """
    options = tf.data.Options()
    if _is_one_cpu(strategy):
        options.autotune.enabled = False
        return dataset.with_options(options)
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return strategy.experimental_distribute_dataset(dataset.with_options(options))


def _is_one_cpu(strategy):
    devices = [tf.DeviceSpec.from_string(device).device_type for device in strategy.extended.worker_devices]
    return devices == ["CPU"] and strategy.num_replicas_in_sync == 1


# A batch on the cores of a CPU.
#
# Between two products an operation takes too little time to be shared among threads, which wait for each other. So on a
# CPU each core computes a part of the batch, the whole way through the model.
#
# The gradients of each part are held until all are added up, and operations can be shared as well: so more parts than
# these would cost memory for little.
#
# python -m benchmarks.train_step --cores=1,2 --only=albert_tf,products    (what each core adds)

MOST_PARTS = 4


def compute_in_parts(
    function: collections.abc.Callable[[Batch], _Result], batch: Batch, compares_examples: bool = False
) -> list[_Result]:
    """Returns the results of a function of a replica's batch for each of its parts, in order.

    These are as many equal parts as the cores of one CPU can compute at once; a single one on other devices, in what
    XLA compiles as a whole, and where the function compares examples. Dropout is that of the whole batch.
    """
    count = 1 if compares_examples else _count_parts(batch)
    if count == 1:
        return [function(batch)]

    @tf.function(autograph=False)  # so that it is traced once
    def compute(index, part):
        with part_of_batch(index):
            return function(part)

    cut = {name: tf.split(values, count) for name, values in batch.items()}
    return [compute(tf.constant(index), {name: cut[name][index] for name in cut}) for index in range(count)]


def _count_parts(batch):
    if is_compiled_whole() or not (tf.distribute.has_strategy() and _is_one_cpu(tf.distribute.get_strategy())):
        return 1
    size = next(iter(batch.values())).shape[0]
    if not size:
        return 1
    return max(count for count in range(1, min(MOST_PARTS, num_usable_cores()) + 1) if size % count == 0)


def distribute_host_batches(
    strategy: tf.distribute.Strategy, make_dataset: collections.abc.Callable[[int, int], tf.data.Dataset]
) -> tf.distribute.DistributedDataset | tf.data.Dataset:
    """Returns a data set of each host's own part of a batch, made by its index and the number of hosts."""

    if _is_one_cpu(strategy):
        return distribute_batches(strategy, make_dataset(0, 1))

    @tf.autograph.experimental.do_not_convert  # takes long, and nothing here needs it
    def make_replica_batches(context):
        dataset = make_dataset(context.input_pipeline_id, context.num_input_pipelines)
        replicas = context.num_replicas_in_sync // context.num_input_pipelines

        def split(batch):
            return {name: tf.reshape(values, [replicas, -1, *values.shape[1:]]) for name, values in batch.items()}

        return dataset.map(split).unbatch().prefetch(tf.data.AUTOTUNE)

    return strategy.distribute_datasets_from_function(make_replica_batches)


def read_batches(
    batches: tf.distribute.DistributedDataset | tf.data.Dataset,
    use: collections.abc.Callable[[collections.abc.Iterator], _Result],
) -> _Result:
    """Runs a function of an iterator over a data set, and does not wait until the iterator is gone.

    tf.data tunes itself in a thread that sleeps for up to a minute, and whoever frees the iterator waits for it: the
    signal to wake comes a moment before the flag that the thread looks at (`Model::OptimizeLoop` and
    `CancellationManager::StartCancel` of TensorFlow 2.21). A run that was told to stop might come too late to save. So
    another thread frees the iterator, which the function must not keep. It is no daemon: one that comes back from
    TensorFlow while Python ends would abort the process. If the function raises, the iterator is freed by whoever
    handles the exception.
    """
    iterators = [iter(batches)]
    result = use(iterators[0])
    threading.Thread(target=iterators.clear).start()
    return result
