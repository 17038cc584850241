"""The quiet start of commands with TensorFlow, which import this before anything else.

It keeps TensorFlow's start-up messages away from the user (unless TF_CPP_MIN_LOG_LEVEL asks for them), which works only
where tensorflow is first imported. Flags are made of settings in command.py.
"""

import sys

from albert_tf.base.errors import InputError
from albert_tf.base.startup import fast_import, import_tensorflow, use_onednn
from albert_tf.cli.command import command

use_onednn()
try:
    with fast_import():
        import_tensorflow()
except InputError as error:
    sys.exit(f"error: {error}")

__all__ = ["command"]
