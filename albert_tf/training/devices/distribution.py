"""Choosing where to run: the one place that knows TPU from GPU from CPU, and one machine from several."""

import collections.abc
import contextlib
import json
import os
import socket
import threading
import typing

import tensorflow as tf

from albert_tf.errors import InputError, first_line

_Result = typing.TypeVar("_Result")


def make_strategy(
    use_tpu: bool = False,
    tpu_name: str | None = None,
    tpu_zone: str | None = None,
    gcp_project: str | None = None,
    num_cpu_replicas: int = 1,
    tpu_timeout: float = 300.0,
) -> tf.distribute.Strategy:
    """Returns the strategy to train with.

    A TPU if asked for; else the machines that the environment variable TF_CONFIG names; else all GPUs of this machine;
    else its CPU, as one replica or several. With several machines call it before TensorFlow has done anything else.

    Args:
        use_tpu: Whether to run on a TPU.
        tpu_name: Name or grpc:// address of a Cloud TPU; None or "local" for the TPU of this machine.
        tpu_zone: Zone of a named Cloud TPU.
        gcp_project: Project of a named Cloud TPU.
        num_cpu_replicas: Number of CPU replicas; more than one is for testing what several cores do.
        tpu_timeout: Seconds after which a TPU that doesn't answer is given up.

    Raises:
        InputError: The TPU can't be reached, one is named without `use_tpu`, or TF_CONFIG can't be used.
    """
    if use_tpu:
        return _make_tpu_strategy(tpu_name, tpu_zone, gcp_project, tpu_timeout)
    if tpu_name:
        raise InputError(
            f"--tpu_name={tpu_name} without --use_tpu would train on this machine's own devices; add --use_tpu, or "
            "leave --tpu_name out"
        )
    if _cluster_in_environment():
        if num_cpu_replicas > 1:
            raise InputError(
                f"--num_cpu_replicas={num_cpu_replicas}: where TF_CONFIG names several machines, each is one replica; "
                "leave the flag out"
            )
        return tf.distribute.MultiWorkerMirroredStrategy()
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        return tf.distribute.MirroredStrategy([f"/gpu:{index}" for index in range(len(gpus))])
    cpu = tf.config.list_physical_devices("CPU")[0]
    if num_cpu_replicas > len(tf.config.get_logical_device_configuration(cpu) or [cpu]):
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * num_cpu_replicas)
    devices = [f"/cpu:{index}" for index in range(num_cpu_replicas)]
    # TensorFlow's collectives, the default, allow only one number of CPU replicas in the life of a process.
    return tf.distribute.MirroredStrategy(devices, cross_device_ops=tf.distribute.ReductionToOneDevice())


def _cluster_in_environment():
    """Returns whether TF_CONFIG names machines that train together.

    Raises:
        InputError: It is not JSON, or gives machines roles that there is nothing for here.
    """
    text = os.environ.get("TF_CONFIG") or "{}"
    try:
        configuration = json.loads(text)
        roles = set(configuration.get("cluster", {}))
        task = dict(configuration.get("task", {}))
    except (json.JSONDecodeError, AttributeError, TypeError, ValueError) as error:
        raise InputError(
            f'the environment variable TF_CONFIG is not a JSON object with "cluster" and "task": {text[:200]}'
        ) from error
    if not roles:
        return False
    if not roles <= {"chief", "worker"} or task.get("type") not in roles or "index" not in task:
        raise InputError(
            "TF_CONFIG must give every machine the role worker, or one of them the role chief, and name this "
            f"machine's task, its type and index. Received: {text[:200]}"
        )
    return True


def _make_tpu_strategy(tpu_name, tpu_zone, gcp_project, timeout):
    name = tpu_name or os.environ.get("TPU_NAME") or "local"
    outcome = {}

    def connect():
        try:
            resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=name, zone=tpu_zone, project=gcp_project)
            if name != "local":
                tf.config.experimental_connect_to_cluster(resolver)
            tf.tpu.experimental.initialize_tpu_system(resolver)
            outcome["resolver"] = resolver
        except Exception as error:  # the resolver raises whatever its many back ends do
            outcome["error"] = error

    advice = "check --tpu_name, --tpu_zone and --gcp_project, or run without --use_tpu"
    _check_address_answers(name, timeout, advice)
    # In a thread of its own, because TensorFlow waits for a TPU without end.
    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(timeout)
    if not outcome:
        raise InputError(
            f"--use_tpu: the TPU {name!r} did not answer within --tpu_timeout={timeout:g} seconds; {advice}"
        )
    if "error" in outcome:
        error = outcome["error"]
        raise InputError(f"--use_tpu: can't reach the TPU {name!r} ({first_line(error)}); {advice}") from error
    return tf.distribute.TPUStrategy(outcome["resolver"])


def _check_address_answers(name, timeout, advice):
    """Knocks at the address of a TPU: where nobody listens, TensorFlow would only try again."""
    if not name.startswith("grpc://"):
        return
    host, _, port = name.removeprefix("grpc://").rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=timeout).close()
    except TimeoutError as error:
        raise InputError(
            f"--use_tpu: the TPU {name!r} did not answer within --tpu_timeout={timeout:g} seconds; {advice}"
        ) from error
    except (OSError, ValueError) as error:
        raise InputError(f"--use_tpu: can't reach the TPU {name!r} ({error}); {advice}") from error


def strategy_of(variables: dict[str, tf.Variable]) -> tf.distribute.Strategy:
    """Returns the strategy that variables were created under; without one, a strategy of the one device they are on."""
    variable = next(iter(variables.values()))
    if isinstance(variable, tf.distribute.DistributedValues):
        return variable.distribute_strategy
    return tf.distribute.OneDeviceStrategy(variable.device)


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Returns whether this process writes checkpoints and results: of several machines only one does."""
    if not has_several_workers(strategy):
        return True
    resolver = strategy.cluster_resolver
    roles = resolver.cluster_spec().as_dict()
    return resolver.task_type == ("chief" if "chief" in roles else "worker") and resolver.task_id == 0


def has_several_workers(strategy: tf.distribute.Strategy) -> bool:
    """Returns whether processes on several machines run this same program together."""
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)


class Agreement:
    """Lets the processes that run this program decide together; all of them must ask at the same points.

    Args:
        strategy: What they run with.
    """

    def __init__(self, strategy: tf.distribute.Strategy):
        self._is_alone, self._is_chief = not has_several_workers(strategy), is_chief(strategy)

        @tf.function
        def add(value):
            return strategy.reduce("SUM", strategy.run(tf.identity, args=(value,)), axis=None)

        self._add = add

    def any(self, is_true: bool) -> bool:
        """Returns whether something is true in any of the processes."""
        return is_true if self._is_alone else int(self._add(tf.constant(int(is_true), tf.int64))) > 0

    def of_chief(self, value: int) -> int:
        """Returns the value that the chief has, less than 2**63.

        Raises:
            InputError: Another process is gone.
        """
        if self._is_alone:
            return value
        with _telling_who_is_gone():
            return int(self._add(tf.constant(value if self._is_chief else 0, tf.int64)))

    def run(self, action: collections.abc.Callable[[], _Result]) -> _Result:
        """Returns what a function returns that all of them call; where it fails in one, all end.

        Raises:
            InputError: It raised one, here or elsewhere, or another process is gone.
        """
        result, error = None, None
        try:
            result = action()
        except InputError as failure:
            error = failure
        with _telling_who_is_gone():
            fails = self.any(error is not None)
        if fails:
            raise error or InputError("another worker can't go on; see what it says")
        return result


@contextlib.contextmanager
def _telling_who_is_gone():
    try:
        yield
    except (tf.errors.UnavailableError, tf.errors.AbortedError) as error:
        raise InputError(
            f"another worker of this run is gone ({first_line(error)}); see what it says, and start all of them again "
            "with the same command"
        ) from error


def per_replica_batch_size(
    strategy: tf.distribute.Strategy, global_batch_size: int, flag: str, gradient_accumulation_steps: int = 1
) -> int:
    """Returns each replica's share of a batch, of which it computes a micro-batch at a time.

    Raises:
        InputError: The batch can't be divided evenly.
    """
    replicas = strategy.num_replicas_in_sync
    if global_batch_size % replicas:
        raise InputError(f"--{flag}={global_batch_size} must be a multiple of the number of replicas, {replicas}")
    if global_batch_size % (replicas * gradient_accumulation_steps):
        raise InputError(
            f"--{flag}={global_batch_size} must be a multiple of {replicas * gradient_accumulation_steps}, the number "
            f"of replicas ({replicas}) times --gradient_accumulation_steps={gradient_accumulation_steps}"
        )
    return global_batch_size // replicas


def distribute_batches(
    strategy: tf.distribute.Strategy, dataset: tf.data.Dataset
) -> tf.distribute.DistributedDataset | tf.data.Dataset:
    """Returns a data set of global batches with each batch split over all replicas.

    Where there are several hosts, each of them reads all batches and keeps its share, so that the batches do not depend
    on the number of hosts. Where one CPU is all there is, nothing has to be split or brought to a device; without
    tf.data's tuning the end of a program need not wait for it there (see `read_batches`).
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


def distribute_host_batches(
    strategy: tf.distribute.Strategy, make_dataset: collections.abc.Callable[[int, int], tf.data.Dataset]
) -> tf.distribute.DistributedDataset | tf.data.Dataset:
    """Returns a data set to which each host contributes its own part of a batch.

    Args:
        strategy: Where to run.
        make_dataset: Given a host's index and the number of hosts, returns that host's part of each batch.
    """

    if _is_one_cpu(strategy):
        return distribute_batches(strategy, make_dataset(0, 1))

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
    """Returns what a function of an iterator over a data set returns, and does not wait until the iterator is gone.

    tf.data tunes itself in a thread that sleeps for up to a minute, the longer the data set has been read, and whoever
    frees the iterator waits for it: what is to wake that thread comes a moment before the flag that it looks at
    (`Model::OptimizeLoop` and `CancellationManager::StartCancel` of TensorFlow 2.21). A run that was told to stop might
    come too late to save. So another thread frees the iterator; the program ends no sooner than that thread, for a
    daemon that comes back from TensorFlow while Python ends would abort the process.

    Args:
        batches: What to iterate over.
        use: Given the iterator, which it must not keep. If it raises, nothing else can free the iterator than who
            handles the exception.
    """
    iterators = [iter(batches)]
    result = use(iterators[0])
    threading.Thread(target=iterators.clear).start()
    return result
