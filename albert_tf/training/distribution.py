"""Choosing where to run: the one place that knows TPU from GPU from CPU."""

import json
import os

import tensorflow as tf

from albert_tf.errors import InputError


def make_strategy(
    use_tpu: bool = False,
    tpu_name: str | None = None,
    tpu_zone: str | None = None,
    gcp_project: str | None = None,
    num_cpu_replicas: int = 1,
) -> tf.distribute.Strategy:
    """Returns the strategy to train with.

    A TPU if asked for; else all GPUs of this machine; else its CPU, as one replica or several.

    Args:
        use_tpu: Whether to run on a TPU.
        tpu_name: Name or grpc:// address of a Cloud TPU; None or "local" for the TPU of this machine.
        tpu_zone: Zone of a named Cloud TPU.
        gcp_project: Project of a named Cloud TPU.
        num_cpu_replicas: Number of CPU replicas; more than one is for testing what several cores do.

    Raises:
        InputError: The TPU can't be reached, or the environment variable TF_CONFIG names several machines.
    """
    if use_tpu:
        return _make_tpu_strategy(tpu_name, tpu_zone, gcp_project)
    if "cluster" in json.loads(os.environ.get("TF_CONFIG") or "{}"):
        raise InputError("TF_CONFIG names a cluster; several machines can't train together yet, so unset it")
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        return tf.distribute.MirroredStrategy([f"/gpu:{index}" for index in range(len(gpus))])
    cpu = tf.config.list_physical_devices("CPU")[0]
    if num_cpu_replicas > len(tf.config.get_logical_device_configuration(cpu) or [cpu]):
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * num_cpu_replicas)
    devices = [f"/cpu:{index}" for index in range(num_cpu_replicas)]
    # TensorFlow's collectives, the default, allow only one number of CPU replicas in the life of a process.
    return tf.distribute.MirroredStrategy(devices, cross_device_ops=tf.distribute.ReductionToOneDevice())


def _make_tpu_strategy(tpu_name, tpu_zone, gcp_project):
    name = tpu_name or os.environ.get("TPU_NAME") or "local"
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=name, zone=tpu_zone, project=gcp_project)
        if name != "local":
            tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except Exception as error:  # the resolver raises whatever its many back ends do
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(
            f"--use_tpu: can't reach the TPU {name!r} ({reason}); check --tpu_name, --tpu_zone and --gcp_project, "
            "or run without --use_tpu"
        ) from error
    return tf.distribute.TPUStrategy(resolver)


def per_replica_batch_size(strategy: tf.distribute.Strategy, global_batch_size: int, flag: str) -> int:
    """Returns each replica's share of a batch.

    Raises:
        InputError: The batch can't be divided evenly.
    """
    replicas = strategy.num_replicas_in_sync
    if global_batch_size % replicas:
        raise InputError(f"--{flag}={global_batch_size} must be a multiple of the number of replicas, {replicas}")
    return global_batch_size // replicas
