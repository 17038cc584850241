"""The flags that a command registers, and other values of those that are no text."""

from absl import flags

from albert_tf.cli.command import define_flags
from albert_tf.cli.commands import find_command

SMALL_INTEGER, SMALL_NUMBER, SHARE = 2, 0.02, 0.25


def registered_flags(command: str) -> dict[str, flags.Flag]:
    """Returns the flags that a command defines, by name."""
    before = set(flags.FLAGS)
    define_flags(find_command(command.replace("_", "-")).settings)
    names = sorted(set(flags.FLAGS) - before)
    found = {name: flags.FLAGS[name] for name in names}
    for name in names:
        delattr(flags.FLAGS, name)
    return found


def other_value(flag: flags.Flag) -> object:
    """Returns a value that is not the default; None where it is not known which make sense."""
    if flag.boolean:
        return not flag.default
    if isinstance(flag, flags.EnumFlag):
        return next(value for value in flag.parser.enum_values if value != flag.default)
    bounds = [getattr(flag.parser, name, None) for name in ("lower_bound", "upper_bound")]
    if flag.flag_type() == "int":
        value = max(SMALL_INTEGER, bounds[0] or 0)
        return value + 1 if value == flag.default else value
    if flag.flag_type() == "float":
        return SHARE if bounds == [0.0, 1.0] else SMALL_NUMBER
    return None
