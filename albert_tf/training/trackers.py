"""Telling others what is measured: Weights & Biases, MLflow, or whatever takes numbers by name."""

import collections.abc
import os
import pkgutil
import sys

from albert_tf.base.errors import InputError, describe, first_line

# Called with the step, what was measured on ("train" or "held_out"), and values by name. Where it has a method `begin`,
# that is called with the folder of each training before its first values; a method `end`, without arguments, behind the
# last ones.
Tracker = collections.abc.Callable[[int, str, dict[str, float]], None]

# Functions, which can't tell one training from another, by the folder of the training that they were told of first.
_told_of: list[tuple[Tracker, str]] = []


def load_tracker(name: str) -> Tracker:
    """Returns the function that "module:function" names, or an object of the class, also out of the current folder."""
    if not all(name.partition(":")):
        raise InputError(f"`trackers={name}` must be module:function, such as wandb_hook:log")
    sys.path.insert(0, os.getcwd())
    try:
        function = pkgutil.resolve_name(name)
        function = function() if isinstance(function, type) else function
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

    def begin(self, output_dir: str) -> None:
        """Tells each of them that the training in a folder begins."""
        for function in list(self._functions):
            if hasattr(function, "begin"):
                self._call(function, function.begin, "as training began", output_dir)
                continue
            before = next((folder for known, folder in _told_of if known is function), None)
            if before is None:
                _told_of.append((function, output_dir))
            elif before != output_dir:
                self._log(
                    f"warning: the tracker {_name(function)} is told of {output_dir} after {before}, and can't tell "
                    "the two apart; give an object that has the methods begin(output_dir) and end()"
                )

    def __call__(self, step: int, split: str, values: dict[str, float]) -> None:
        for function in list(self._functions):
            self._call(function, function, f"at step {step:,}", step, split, dict(values))

    def end(self) -> None:
        """Tells each of them that the training that began last has ended, or was stopped."""
        for function in list(self._functions):
            if hasattr(function, "end"):
                self._call(function, function.end, "as training ended")

    def _call(self, function, method, when, *what):
        try:
            method(*what)
        except Exception as error:  # a service may be out of reach
            self._functions.remove(function)
            self._log(f"warning: the tracker {_name(function)} failed {when}, and is left out: {first_line(error)}")


def _name(function):
    return getattr(function, "__name__", type(function).__name__)
