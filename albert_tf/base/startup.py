"""The process of a script: its first moments, while TensorFlow is imported, its cores, and its end.

The first moments are time, memory, messages, and Ctrl-C then and later. Nothing here holds before it is imported; so
what takes a while to import is imported where it is needed.
"""

import collections.abc
import contextlib
import gc
import os
import platform
import sys

from albert_tf.base.errors import InputError

# What Keras and TensorFlow Lite import where it is installed, for uses that no command has: Keras as an estimator of
# scikit-learn, galleries of pictures, editors of files in Jupyter, data frames as inputs, models of JAX to convert.
_LIBRARIES_WITHOUT_USE = ("IPython", "jax", "matplotlib", "pandas", "sklearn")


def keep_memory() -> None:
    """Lets TensorFlow keep the memory of tensors for the next ones, unless TF_CPU_ALLOCATOR_USE_BFC says otherwise.

    By default it asks the system anew for every large tensor, which maps and clears its pages: up to a third of the
    time of a step on a CPU. Call it before TensorFlow is imported.
    """
    os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")


def use_onednn() -> None:
    """Lets oneDNN compute TensorFlow's products on every x86-64 processor, unless TF_ENABLE_ONEDNN_OPTS says otherwise.

    By default it does so only where there are AVX-512's instructions for neural networks. Without them Eigen takes an
    eighth to a fifth longer for a training step. For a few short texts at a time, on the other hand, oneDNN takes a
    fifth longer: so this is for what trains or reads whole files. Call it before TensorFlow is imported.

    python -m benchmarks.train_step --only=albert_tf,products    (docs/performance.md says how to hide AVX-512 from it)
    """
    if platform.machine() in ("x86_64", "AMD64"):
        os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")


def import_tensorflow() -> None:
    """Imports TensorFlow without its messages, and so that it keeps memory; raises InputError if it isn't installed."""
    keep_memory()
    with without_messages_of_libraries():
        try:
            import tensorflow  # noqa: F401
        except ModuleNotFoundError as error:
            if error.name != "tensorflow":
                raise
            raise InputError(
                f"{sys.executable} has no TensorFlow; use the environment that has it (after make demo: source "
                ".venv/bin/activate), or install it: pip install -e ."
            ) from None


@contextlib.contextmanager
def fast_import():
    """Lets TensorFlow be imported without libraries that it only looks for, and without collecting garbage on the way.

    Where they are installed, they take longer than TensorFlow. They can be imported afterwards, but not by Keras.
    """
    left_out = [name for name in _LIBRARIES_WITHOUT_USE if name not in sys.modules]
    collects_garbage = gc.isenabled()
    sys.modules.update(dict.fromkeys(left_out))  # with None there, an import raises ImportError
    gc.disable()
    try:
        yield
    finally:
        for name in left_out:
            del sys.modules[name]
        gc.freeze()
        if collects_garbage:
            gc.enable()


@contextlib.contextmanager
def without_messages_of_libraries():
    """Holds back what C++ code writes to standard error; shows it after all if there is an exception.

    Does nothing if TF_CPP_MIN_LOG_LEVEL asks for messages, or TensorFlow has been imported already. Should the import
    crash, Python tells where, and TF_CPP_MIN_LOG_LEVEL=0 shows the rest.
    """
    if os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3") != "3" or "tensorflow" in sys.modules:
        yield
        return
    import faulthandler

    with held_back_messages() as (held_back, standard_error):
        tells_of_crash = not faulthandler.is_enabled()
        if tells_of_crash:
            faulthandler.enable(standard_error)
        try:
            yield
        except KeyboardInterrupt:
            raise
        except BaseException:
            os.write(standard_error, os.pread(held_back, os.fstat(held_back).st_size, 0))
            raise
        finally:
            if tells_of_crash:
                faulthandler.disable()


@contextlib.contextmanager
def held_back_messages():
    """Holds back standard error; yields descriptors of the file that it goes to, and of itself."""
    import tempfile

    sys.stderr.flush()
    standard_error = os.dup(2)
    with tempfile.TemporaryFile() as held_back:
        os.dup2(held_back.fileno(), 2)
        try:
            yield held_back.fileno(), standard_error
        finally:
            os.dup2(standard_error, 2)
            os.close(standard_error)


def without_warnings_of_tracing() -> None:
    """Silences warnings of functions that are traced often: TensorFlow counts those of all models together."""
    import logging

    logging.getLogger("tensorflow").addFilter(_is_not_of_tracing)  # once, however often this is called


def _is_not_of_tracing(record):
    return "triggered tf.function retracing" not in record.getMessage()


def warn_in_one_line(shown: collections.abc.Callable[[str], str] = str) -> None:
    """Lets warnings of this library be lines "warning: ...", as `shown` returns them, without their place in code."""
    import warnings

    package = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
    usual = warnings.formatwarning

    def format_warning(message, category, filename, lineno, line=None):
        if os.path.abspath(filename).startswith(package):
            return f"warning: {shown(str(message))}\n"
        return usual(message, category, filename, lineno, line)

    warnings.formatwarning = format_warning


def end_in_one_line_if_interrupted() -> None:
    """Lets Ctrl-C and SIGTERM, which both raise KeyboardInterrupt, end the process with one line and 130 or 143."""
    import signal

    show_exception, exit_code = sys.excepthook, 128 + signal.SIGINT

    def interrupt(number, _):
        nonlocal exit_code
        exit_code = 128 + number
        raise KeyboardInterrupt

    with contextlib.suppress(ValueError):  # a notebook's thread may not
        if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, interrupt)

    def show(kind, error, traceback):
        if not issubclass(kind, KeyboardInterrupt):
            show_exception(kind, error, traceback)
            return
        import multiprocessing

        with contextlib.suppress(OSError, ValueError):  # nobody may be listening any more
            if multiprocessing.parent_process() is None:  # of several processes one speaks
                print(str(error) or "interrupted", file=sys.stderr)
            sys.stdout.flush()
            sys.stderr.flush()
        for child in multiprocessing.active_children():
            child.kill()
        os._exit(exit_code)  # threads may wait for what never comes

    sys.excepthook = show


def end_with_parent() -> None:
    """Ends this process, if `multiprocessing` started it, as soon as its parent ends; call it first in the child."""
    import multiprocessing
    import threading

    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent):
    import multiprocessing.connection

    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)


def num_usable_cores() -> int:
    """Returns how many cores this process may use; where the system doesn't tell, how many there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def computes_in_bfloat16() -> bool | None:
    """Returns whether the processor multiplies in bfloat16, at which TensorFlow is slow otherwise; None if unknown."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return not {"avx512_bf16", "amx_bf16", "bf16"}.isdisjoint(file.read().split())
    except OSError:
        return None
