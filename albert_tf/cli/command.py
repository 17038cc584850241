"""All commands, with TensorFlow or without: flags that are read when they run, errors without tracebacks."""

import collections.abc
import contextlib
import os
import re
import sys
import typing

from absl import app, flags, logging

from albert_tf.base.console import spell_settings
from albert_tf.base.errors import InputError, describe_file_error, file_errors
from albert_tf.base.folders import hold
from albert_tf.base.settings import Settings
from albert_tf.base.startup import end_in_one_line_if_interrupted, warn_in_one_line
from albert_tf.cli.original_flags import check_original_flags
from albert_tf.cli.settings_flags import define_flags, parse_flags, settings_from_flags

end_in_one_line_if_interrupted()


def run(
    main: collections.abc.Callable[[typing.Any], None], settings: type[Settings], output_flag: str | None = None
) -> None:
    """Runs a command; a user's mistake ends in one sentence on standard error and exit code 1."""
    # The folder that it writes, which `output_flag` names, is held meanwhile.
    define_flags(settings)
    warn_in_one_line(with_flags)
    spell_settings(with_flags)

    def main_without_arguments(_):
        with _one_sentence():
            check_original_flags()
            given = settings_from_flags(settings)
            folder = output_flag and getattr(given, output_flag)
            with hold(folder, output_flag) if folder else contextlib.nullcontext():
                main(given)

    def parse(arguments):
        with _one_sentence():
            parse_flags(arguments, settings)

    logging.use_absl_handler()
    logging.set_verbosity(logging.WARNING)
    app.run(main_without_arguments, flags_parser=parse)


@contextlib.contextmanager
def _one_sentence():
    """Ends the process with one sentence on a user's mistake, or on a file that can't be read or written."""
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
    """Returns a sentence with this command's flags in place of settings in backquotes."""

    def flag(found):
        name, value = found.groups("")
        return f"--{name}{value}" if name in flags.FLAGS else found[0]

    return re.sub(r"`(\w+)(=[^`]*)?`", flag, sentence)


def exit_stopped(number: int) -> typing.NoReturn:
    """Ends the process as a signal does, so that nobody takes a run that was stopped for a finished one."""
    sys.exit(128 + number)


def require_folder(settings: Settings, name: str) -> None:
    """Checks that a setting names a folder that is there, or one elsewhere, which only TensorFlow can see."""
    settings.require(name)
    folder = getattr(settings, name)
    if "://" not in folder and not os.path.isdir(folder):
        raise InputError(f"`{name}={folder}`: there is no such folder; put the name right")
