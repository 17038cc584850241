"""What all commands share, with TensorFlow or without: flags that are read when they run, errors without tracebacks."""

import contextlib
import os
import re
import sys
import typing

from absl import app, flags, logging

from albert_tf.cli import flag_groups
from albert_tf.cli.flag_parsing import parse_flags
from albert_tf.cli.original_flags import check_original_flags
from albert_tf.errors import InputError
from albert_tf.file_errors import describe_file_error, file_errors
from albert_tf.files import gfile_for
from albert_tf.folder_lock import hold
from albert_tf.startup import end_in_one_line_if_interrupted, warn_in_one_line

end_in_one_line_if_interrupted()


def run(main, define_flags, output_flag: str | None = None) -> None:
    """Runs a command; a user's mistake ends in one sentence on standard error and exit code 1.

    Args:
        main: Does the work, once the flags have been read.
        define_flags: Defines them.
        output_flag: The flag of the folder that it writes, if any, which is held meanwhile.
    """
    flag_groups.define(define_flags)
    warn_in_one_line(with_flags)

    def main_without_arguments(_):
        with _one_sentence():
            check_original_flags()
            folder = output_flag and flags.FLAGS[output_flag].value
            with hold(folder, output_flag) if folder else contextlib.nullcontext():
                main()

    def parse(arguments):
        with _one_sentence():
            parse_flags(arguments)

    logging.use_absl_handler()
    logging.set_verbosity(logging.WARNING)
    app.run(main_without_arguments, flags_parser=parse)


@contextlib.contextmanager
def _one_sentence():
    """Ends the process in one sentence where a user's mistake is found, or a file can't be read or written."""
    try:
        yield
    except (InputError, *file_errors()) as error:
        message = str(error) if isinstance(error, InputError) else describe_file_error(error)
        if message is None:
            raise
        print(f"error: {with_flags(message)}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt as stop:  # which may say how to go on
        raise KeyboardInterrupt(with_flags(str(stop))) from None


def with_flags(sentence: str) -> str:
    """Returns a sentence of the library in which settings, in backquotes, are called as the flags of this command."""

    def flag(found):
        name, value = found.groups("")
        return f"--{name}{value}" if name in flags.FLAGS else found[0]

    return re.sub(r"`(\w+)(=[^`]*)?`", flag, sentence)


def exit_stopped(number: int) -> typing.NoReturn:
    """Ends the process as a signal does, so that nobody takes a run that was stopped for a finished one."""
    sys.exit(128 + number)


def require(**flag_values) -> None:
    """Checks that flags were given a value."""
    for name, value in flag_values.items():
        if value in (None, "", []):
            raise InputError(f"--{name} is missing; see --help")


def require_folder(**flag_values) -> None:
    """Checks that flags name folders that are there, where TensorFlow isn't needed to see that."""
    require(**flag_values)
    for name, value in flag_values.items():
        if "://" not in value and not os.path.isdir(value):
            raise InputError(f"--{name}={value}: there is no such folder; put the name right")


def refuse_to_overwrite(paths: list[str], overwrite: bool) -> None:
    """Checks that no file is there yet, unless the user asked to overwrite.

    Raises:
        InputError: One is there, or a folder or device, which nothing is written over.
    """
    for path in paths:
        if os.path.exists(path) and not os.path.isfile(path):
            raise InputError(f"{path} is there already, and is no file; choose another place")
        if not overwrite and gfile_for(path).exists(path):
            raise InputError(f"{path} is there already; choose another place, or pass --overwrite to replace it")
