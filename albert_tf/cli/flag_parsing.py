"""Reading the command line, with one sentence for what is wrong with it."""

import dataclasses
import difflib
import keyword
import math
import os

from absl import flags

from albert_tf.cli.flag_groups import help_text
from albert_tf.errors import InputError
from albert_tf.shipped_files import or_shipped

FLAGS = flags.FLAGS

_HELP = {f"{dashes}{name}" for dashes in ("-", "--") for name in ("help", "helpshort", "h", "?")}


def parse_flags(arguments: list[str]) -> None:
    """Reads the flags of a command line and of its flagfiles into `FLAGS`.

    Args:
        arguments: The script, and what follows it.

    Raises:
        InputError: A flag is unknown or its value wrong, a flagfile can't be read, or something is no flag.
        SystemExit: Help was asked for, and printed; the exit code is 0.
    """
    script, *rest = arguments
    try:
        expanded = FLAGS.read_flags_from_files(rest, force_gnu=False)
        if _HELP.intersection(expanded):
            print(help_text(os.path.basename(script)))
            raise SystemExit(0)
        script, *rest = FLAGS([script, *expanded])
    except SystemExit as stop:  # absl ends with 1 after help
        raise SystemExit(0) from stop
    except flags.UnrecognizedFlagError as error:
        raise InputError(f"there is no flag --{error.flagname}{_suggest(error.flagname)}; see --help") from error
    except flags.CantOpenFlagFileError as error:
        reason = error.__context__
        raise InputError(f"can't read --flagfile={reason.filename}: {reason.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError("can't read the --flagfile: it is not UTF-8") from error
    except flags.Error as error:
        message = " ".join(str(error).split()).removeprefix("flag ")
        raise InputError(f"{message}; see --help") from error
    _check_finite()
    if rest:
        raise InputError(f"unexpected argument {rest[0]}; every setting is a flag, --name=value")


def resolved_flags():
    """Returns what the flags say, once and for all: a frozen dataclass with a field for the value of each.

    One more, `given`, has the names of those that a person gave. What a default, a run or a trial changes is a changed
    copy (`dataclasses.replace`). An `init_checkpoint` or `albert_config_file` that names nothing here is an included
    one, if there is one: so the included flagfiles serve from every folder.
    """
    names = [name for name in FLAGS if name.isidentifier() and not keyword.iskeyword(name)]
    given = frozenset(name for name in names if FLAGS[name].present)
    values = {name: FLAGS[name].value for name in names}
    for name in ("init_checkpoint", "albert_config_file"):
        if values.get(name):
            values[name] = or_shipped(values[name])
    return dataclasses.make_dataclass("Settings", [*names, "given"], frozen=True)(**values, given=given)


def _check_finite():
    """Refuses NaN and infinity, which pass every bound of a number."""
    for name in FLAGS:
        value = FLAGS[name].value
        if FLAGS[name].present and isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"--{name}={value} must be a number")


def _suggest(name):
    """Returns the known flag that is spelled most like a name, as a question; nothing if none is."""
    known = [*FLAGS, *(f"no{flag}" for flag in FLAGS if FLAGS[flag].boolean)]
    closest = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean --{closest[0]}?" if closest else ""
