"""Runs another script as `quick_to_trace` in conftest.py lets tests run: quick_script.py run_classifier.py --flags."""

import pathlib
import runpy
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def trace_quickly():
    """Leaves out what makes a step fast and takes longer than the few steps of a test."""
    import albert_tf.cli.app  # noqa: F401  (before TensorFlow, as in the script: it keeps the start quiet)

    import tensorflow as tf  # isort: skip

    from albert_tf.base import compilation

    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    compilation._xla_compiles_here = lambda: False


if __name__ == "__main__":
    sys.path[0] = str(ROOT)
    del sys.argv[0]
    trace_quickly()
    runpy.run_path(sys.argv[0], run_name="__main__")
