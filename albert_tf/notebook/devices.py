"""The best device that there is."""

import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.training.devices.description import describe_device, has_tpu, unused_device_warnings
from albert_tf.training.devices.strategy import make_strategy

_TPU_TIMEOUT = 120.0


def find_strategy() -> tf.distribute.Strategy:
    """Returns the strategy of the TPU of this machine, or else of its GPUs, or else of its CPU; says which, and why."""
    strategy = None
    if has_tpu():
        try:
            strategy = make_strategy(use_tpu=True, tpu_timeout=_TPU_TIMEOUT)
        except InputError as error:
            print(f"there is a TPU, but it can't be used: {error}")
    if strategy is None:
        strategy = make_strategy()
        for line in unused_device_warnings(strategy):
            if "TPU" not in line:  # of which it has just been said why
                print(line)
    print(describe_device(strategy))
    return strategy
