"""What all commands with TensorFlow share: a quiet start, and what `command` has.

They import it before anything else, because it keeps TensorFlow's start-up messages away from the user (unless
TF_CPP_MIN_LOG_LEVEL asks for them), which works only where tensorflow is first imported.
"""

import sys

from albert_tf.cli.command import exit_stopped, refuse_to_overwrite, require, run
from albert_tf.startup import fast_import, keep_memory, without_messages_of_libraries

keep_memory()
with without_messages_of_libraries(), fast_import():
    try:
        import tensorflow as tf
    except ModuleNotFoundError as error:
        if error.name != "tensorflow":
            raise
        tf = None
if tf is None:
    sys.exit(
        f"error: {sys.executable} has no TensorFlow; use the environment that has it (after make demo: source "
        ".venv/bin/activate), or install it: pip install -e ."
    )

__all__ = ["exit_stopped", "refuse_to_overwrite", "require", "run"]
