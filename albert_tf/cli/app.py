"""Commands with TensorFlow: a quiet start, and all that `command` has.

They import it before anything else, because it keeps TensorFlow's start-up messages away from the user (unless
TF_CPP_MIN_LOG_LEVEL asks for them), which works only where tensorflow is first imported.
"""

import sys

from albert_tf.base.errors import InputError
from albert_tf.base.startup import fast_import, import_tensorflow, use_onednn
from albert_tf.cli.command import exit_stopped, run

use_onednn()
try:
    with fast_import():
        import_tensorflow()
except InputError as error:
    sys.exit(f"error: {error}")

__all__ = ["exit_stopped", "run"]
