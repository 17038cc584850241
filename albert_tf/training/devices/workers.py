"""Several processes that run the same program on several machines, and decide together."""

import collections.abc
import contextlib
import typing

import tensorflow as tf

from albert_tf.errors import InputError, first_line

_Result = typing.TypeVar("_Result")


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Returns whether this process writes checkpoints and results: of several machines only one does."""
    return not has_several_workers(strategy) or _leads(strategy.cluster_resolver)


def is_chief_by_environment() -> bool:
    """Returns the same before there is a strategy, by what TF_CONFIG says of this process."""
    return _leads(tf.distribute.cluster_resolver.TFConfigClusterResolver())


def is_alone_by_environment() -> bool:
    """Returns whether TF_CONFIG names no other process."""
    roles = tf.distribute.cluster_resolver.TFConfigClusterResolver().cluster_spec().as_dict()
    return sum(map(len, roles.values())) <= 1


def _leads(resolver):
    roles = resolver.cluster_spec().as_dict()
    is_first = resolver.task_type == ("chief" if "chief" in roles else "worker") and resolver.task_id == 0
    return is_first or not roles


def has_several_workers(strategy: tf.distribute.Strategy) -> bool:
    """Returns whether processes on several machines run this same program together."""
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)


class Agreement:
    """Lets the processes that run this program decide together; all of them must ask at the same points."""

    def __init__(self, strategy: tf.distribute.Strategy):
        self._is_alone, self._is_chief = not has_several_workers(strategy), is_chief(strategy)

        @tf.function(autograph=False)
        def add(value):
            return strategy.reduce("SUM", strategy.run(tf.identity, args=(value,)), axis=None)

        self._add = add

    def any(self, is_true: bool) -> bool:
        """Returns whether something is true in any of the processes."""
        return is_true if self._is_alone else int(self._add(tf.constant(int(is_true), tf.int64))) > 0

    def of_chief(self, value: int) -> int:
        """Returns the value that the chief has, less than 2**63; an InputError if another process is gone."""
        if self._is_alone:
            return value
        with _telling_who_is_gone():
            return int(self._add(tf.constant(value if self._is_chief else 0, tf.int64)))

    def run(self, action: collections.abc.Callable[[], _Result]) -> _Result:
        """Runs a function in all workers and returns its result; where it fails in one, or one is gone, all end."""
        result, error = None, None
        try:
            result = action()
        except InputError as failure:
            error = failure
        with _telling_who_is_gone():
            fails = self.any(error is not None)
        if fails:
            raise error or InputError("another worker can't continue; see its messages")
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
