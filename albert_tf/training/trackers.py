"""Telling others what is measured: Weights & Biases, MLflow, or whatever takes numbers by name."""

import collections.abc
import os
import pkgutil
import sys

from albert_tf.errors import InputError, describe, first_line

# Called with the step, what was measured on ("train" or "held_out"), and values by name.
Tracker = collections.abc.Callable[[int, str, dict[str, float]], None]


def load_tracker(name: str) -> Tracker:
    """Returns the function that "module:function" names; the module may lie in the current folder."""
    if not all(name.partition(":")):
        raise InputError(f"`trackers={name}` must be module:function, such as wandb_hook:log")
    sys.path.insert(0, os.getcwd())
    try:
        function = pkgutil.resolve_name(name)
    except Exception as error:  # whatever the module does when it is imported
        raise InputError(f"`trackers={name}`: can't import it ({first_line(error)})") from error
    finally:
        sys.path.remove(os.getcwd())
    if not callable(function):
        raise InputError(f"`trackers={name}` is not a function")
    return function


class Trackers:
    """Several trackers, called one after the other; one that fails is left out from then on, for training goes on."""

    def __init__(self, functions: collections.abc.Iterable[Tracker], log: collections.abc.Callable[[str], None]):
        functions = [functions] if callable(functions) else list(functions)
        for function in functions:
            if not callable(function):
                raise InputError(f"`trackers` must be functions. Received: {describe(function)}")
        self._functions, self._log = functions, log

    def __call__(self, step: int, split: str, values: dict[str, float]) -> None:
        """Tells each of them."""
        for function in list(self._functions):
            try:
                function(step, split, dict(values))
            except Exception as error:  # a service may be out of reach
                self._functions.remove(function)
                name = getattr(function, "__name__", repr(function))
                self._log(f"warning: the tracker {name} failed at step {step:,}, and is left out: {first_line(error)}")
