"""What all commands share: a quiet start, flags that are read when they run, and errors without tracebacks.

Commands import it before anything else, because it keeps TensorFlow's start-up messages away from the user (unless
TF_CPP_MIN_LOG_LEVEL asks for them), which works only where tensorflow is first imported.
"""

import contextlib
import sys

from albert_tf.startup import end_in_one_line_if_interrupted, fast_import, keep_memory, without_messages_of_libraries

end_in_one_line_if_interrupted()
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

from absl import app, flags, logging

from albert_tf.cli.flag_parsing import parse_flags
from albert_tf.cli.original_flags import check_original_flags
from albert_tf.errors import InputError

FLAGS = flags.FLAGS

# The flags defined below belong to the script that asks for them, so that its --help shows them.
flags.disclaim_key_flags()


def run(main, define_flags, flag_names: dict[str, str] | None = None) -> None:
    """Runs a command; a user's mistake ends in one sentence on standard error and exit code 1.

    Args:
        main: Does the work, once the flags have been read.
        define_flags: Defines them.
        flag_names: Settings whose flag is called otherwise, and how; errors name the flag.
    """
    define_flags()
    flag_names = flag_names or {}

    def main_without_arguments(_):
        with _one_sentence(flag_names):
            check_original_flags()
            main()

    def parse(arguments):
        with _one_sentence(flag_names):
            parse_flags(arguments)

    logging.use_absl_handler()
    logging.set_verbosity(logging.WARNING)
    app.run(main_without_arguments, flags_parser=parse)


@contextlib.contextmanager
def _one_sentence(flag_names):
    """Ends the process in one sentence where a user's mistake is found."""
    try:
        yield
    except InputError as error:
        message = str(error)
        for name, flag in flag_names.items():
            message = message.replace(f"--{name}", f"--{flag}")
        print(f"error: {message}", file=sys.stderr)
        sys.exit(1)


def require(**flag_values) -> None:
    """Checks that flags were given a value.

    Raises:
        InputError: One is empty or None.
    """
    for name, value in flag_values.items():
        if value in (None, "", []):
            raise InputError(f"--{name} is missing; see --help")


def refuse_to_overwrite(paths: list[str], overwrite: bool) -> None:
    """Checks that no file is there yet, unless the user asked to overwrite.

    Raises:
        InputError: One is there.
    """
    for path in paths:
        if not overwrite and tf.io.gfile.exists(path):
            raise InputError(f"{path} is there already; choose another folder, or pass --overwrite to replace it")
