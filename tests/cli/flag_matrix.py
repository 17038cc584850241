"""Other values of every flag that a command registers, packed into as few runs as go together."""

import dataclasses

from absl import flags

from albert_tf.cli.command import _DEFAULT_ONLY, _WITHOUT_EFFECT, define_flags
from albert_tf.cli.commands import find_command

SMALL_INTEGER, SMALL_NUMBER, SHARE, ANY_TEXT = 2, 0.02, 0.25, "text"


@dataclasses.dataclass(frozen=True)
class Case:
    """A flag with a value that is not its default.

    Attributes:
        flag: Its name.
        value: The value.
        needs: Further flags that it makes sense with; None for one that is left out.
        refused: What the sentence that refuses it begins with; None if it is taken.
        is_alone: Whether it has a run of its own.
    """

    flag: str
    value: object
    needs: dict = dataclasses.field(default_factory=dict)
    refused: str | None = None
    is_alone: bool = False

    @property
    def given(self) -> dict:
        """All that it asks of a command line."""
        return {**self.needs, self.flag: self.value}


def registered_flags(command: str) -> dict[str, flags.Flag]:
    """Returns the flags that a command defines, by name."""
    before = set(flags.FLAGS)
    define_flags(find_command(command.replace("_", "-")).settings)
    names = sorted(set(flags.FLAGS) - before)
    found = {name: flags.FLAGS[name] for name in names}
    for name in names:
        delattr(flags.FLAGS, name)
    return found


def cases_of(flag: flags.Flag, special: dict[str, list[Case]]) -> list[Case]:
    """Returns a flag with other values; none where it is not known which make sense."""
    if flag.name in special:
        return special[flag.name]
    if flag.name in _DEFAULT_ONLY:
        value = next(iter(_derived_values(flag)), ANY_TEXT)
        return [Case(flag.name, value, refused=f"--{flag.name}={value} is not supported: ")]
    values = _derived_values(flag)
    if not values and flag.name in _WITHOUT_EFFECT:
        values = [ANY_TEXT]
    return [Case(flag.name, value) for value in values]


def _derived_values(flag):
    """Returns other values of a flag that is no text: all of a choice, one of a number."""
    if flag.boolean:
        return [not flag.default]
    if isinstance(flag, flags.EnumFlag):
        return [value for value in flag.parser.enum_values if value != flag.default]
    bounds = [getattr(flag.parser, name, None) for name in ("lower_bound", "upper_bound")]
    if flag.flag_type() == "int":
        value = max(SMALL_INTEGER, bounds[0] or 0)
        return [value + 1 if value == flag.default else value]
    if flag.flag_type() == "float":
        return [SHARE if bounds == [0.0, 1.0] else SMALL_NUMBER]
    return []


def pack(cases: list[Case]) -> list[dict]:
    """Returns command lines that hold all cases, each as many as don't contradict each other; the longest first."""
    lines = []
    for case in sorted((case for case in cases if not case.is_alone), key=lambda case: -len(case.needs)):
        for line in lines:
            if all(line.get(name, value) == value for name, value in case.given.items()):
                line.update(case.given)
                break
        else:
            lines.append(dict(case.given))
    alone = [case.given for case in cases if case.is_alone]
    lines += [line for number, line in enumerate(alone) if line not in alone[:number]]
    return sorted(lines, key=len, reverse=True)
