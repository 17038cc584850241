"""A setting is a field of a frozen dataclass, and all that is known of it stands there.

From the fields follow the flags and their help, the check of a value wherever it comes from, the keywords of
`albert_tf.fit` and `albert_tf.pretrain`, what a resumed run must share, and what a search may vary.
"""

import collections.abc
import csv
import dataclasses
import difflib
import functools
import math
import numbers
import os
import types
import typing

from albert_tf.base.errors import InputError, describe, shorten

_KNOWN = "setting"
# Of `Setting.search`: varied by factors, and not by steps, for half of a learning rate is as far away as twice of it.
LOGARITHMIC = "logarithmic"
# Of `Setting.group`, in the order of --help; what is `RARE` is shown by --helpfull alone.
MODEL, TO_DO, TRAINING, TRIALS, DEVICE = GROUPS = (
    "Model",
    "What to do",
    "Training",
    "Several trainings, compared",
    "Device",
)
RARE = "rare"
_TRUTH = {**dict.fromkeys(("true", "t", "1"), True), **dict.fromkeys(("false", "f", "0"), False)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """The properties of a setting.

    Attributes:
        help: What it is.
        least: The lowest number that it may be; None for any.
        most: The highest one.
        above: What a number must be greater than.
        below: What it must be less than.
        choices: What it may be; empty for anything of its type. A registry may grow until they are looked at.
        group: The group of --help that shows it; "" for that of the command's own, `RARE` for none.
        same_on_resume: Whether it changes what a run computes, which is resumed with the same value only.
        place: Whether it says where something lies: a run keeps it, and it may change.
        names_model: Whether it names the folder of a model, whose content counts and not where it lies.
        search: Whether `trials` may vary it; `LOGARITHMIC`: by factors.
        is_free_in_use: Whether it may be another one where nothing is trained: how to compute and to judge, not what.
        in_python: Whether it is a keyword of `fit` and `pretrain`, too.
        is_flag: Whether it is a flag.
        aliases: Other names of its flag.
        repeats: Whether its flag is given once for each value of a list.
        name: The name of its field, less the underscore at the end of what Python keeps for itself.
        type: bool, int, float, str, or a tuple of one of these.
        is_optional: Whether it may be None.
    """

    help: str
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    choices: collections.abc.Collection[str] = ()
    group: str = ""
    same_on_resume: bool = True
    place: bool = False
    names_model: bool = False
    search: bool | str = False
    is_free_in_use: bool = False
    in_python: bool = True
    is_flag: bool = True
    aliases: tuple[str, ...] = ()
    repeats: bool = False
    name: str = ""
    type: typing.Any = str
    is_optional: bool = False

    @property
    def is_list(self) -> bool:
        """Whether its values are tuples."""
        return typing.get_origin(self.type) is tuple

    @property
    def type_of_each(self) -> type:
        """Its type, or that of the values in its tuples."""
        return typing.get_args(self.type)[0] if self.is_list else self.type

    @property
    def allowed(self) -> str:
        """The values that it may have, as it reads after "must be"."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.is_list:
            return "a list of numbers" if self.type_of_each is int else "a list of texts"
        least, most = (self.least if self.above is None else None), (self.most if self.below is None else None)
        bounds = {"above": self.above, "at least": least, "below": self.below, "at most": most}
        told = " and ".join(f"{word} {bound:.10g}" for word, bound in bounds.items() if bound is not None)
        return _CALLED[self.type] + f"{', ' if told.startswith('at') else ' '}{told}" * bool(told)

    def check(self, value: typing.Any) -> typing.Any:
        """Returns a value as one of its type, also given a whole number for a number, or a list for a tuple.

        Raises:
            InputError: It can't be the setting's.
        """
        if value is None and self.is_optional:
            return None
        value = os.fspath(value) if isinstance(value, os.PathLike) else value
        if self.is_list and isinstance(value, list | tuple) and all(_is_of(each, self.type_of_each) for each in value):
            return tuple(map(self.type_of_each, value))
        is_usable = not self.is_list and _is_of(value, self.type) and (not self.choices or value in self.choices)
        if not is_usable or (self.type in (int, float) and not self._is_in_bounds(value)):
            shown = f"{value:.10g}" if isinstance(value, float) else describe(value)
            if isinstance(value, str | int):
                shown = shorten(value) or "nothing"
            raise InputError(f"`{self.name}` must be {self.allowed}. Received: {shown}")
        return self.type(value)

    def _is_in_bounds(self, number):
        return (
            math.isfinite(number)
            and (self.least is None or number >= self.least)
            and (self.most is None or number <= self.most)
            and (self.above is None or number > self.above)
            and (self.below is None or number < self.below)
        )

    def parse(self, text: str) -> typing.Any:
        """Returns the value that a text stands for, of a list with commas between; errors as of `check`."""
        if self.is_list:
            try:
                parts = next(csv.reader([text], strict=True), [])
            except csv.Error as error:
                raise InputError(f"`{self.name}={text}` can't be split at its commas ({error})") from error
            return self.check([self._parse_one(part.strip()) for part in parts])
        # Letter case tells no choices apart.
        return self.check(
            next((each for each in self.choices if each.casefold() == text.casefold()), None) or self._parse_one(text)
        )

    def _parse_one(self, text):
        if self.type_of_each is bool:
            return _TRUTH.get(text.lower(), text)
        try:
            return self.type_of_each(text)
        except ValueError:
            return text


_CALLED = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def _is_of(value, kind):
    if kind in (int, float):
        of_kind = numbers.Integral if kind is int else numbers.Real
        return isinstance(value, of_kind) and not isinstance(value, bool)
    return isinstance(value, kind)


def setting(default: typing.Any = dataclasses.MISSING, help: str = "", **known) -> typing.Any:
    """Returns the field of a setting; further arguments as of `Setting`."""
    return dataclasses.field(default=default, metadata={_KNOWN: Setting(help=help, **known)})


def free(default: typing.Any, help: str = "", **known) -> typing.Any:
    """Returns the field of a setting that may be another one whenever a run is resumed."""
    return setting(default, help, same_on_resume=False, **known)


def place(default: typing.Any, help: str, **known) -> typing.Any:
    """Returns the field of a setting that says where something lies."""
    return free(default, help, place=True, in_python=False, **known)


class _Changed:
    """Becomes the field of the base class that has the same name, with another default or other properties."""

    def __init__(self, default, known):
        self._default, self._known = default, known

    def __set_name__(self, owner, name):
        inherited = (vars(base).get("__dataclass_fields__", {}).get(name) for base in owner.__mro__[1:])
        field = next(filter(None, inherited))
        default = field.default if self._default is dataclasses.MISSING else self._default
        known = dataclasses.replace(field.metadata[_KNOWN], **self._known)
        setattr(owner, name, dataclasses.field(default=default, metadata={_KNOWN: known}))


def changed(default: typing.Any = dataclasses.MISSING, **known) -> typing.Any:
    """Returns the field of a setting of a base class with another default, or other properties."""
    return _Changed(default, known)


@functools.cache
def settings_of(of: type) -> types.MappingProxyType[str, Setting]:
    """Returns the settings of a class, by the name of the field."""
    hints, found = typing.get_type_hints(of), {}
    for field in dataclasses.fields(of):
        if _KNOWN in field.metadata:
            kinds = [hints[field.name]]
            if typing.get_origin(kinds[0]) is types.UnionType:
                kinds = typing.get_args(kinds[0])
            (kind,) = (each for each in kinds if each is not types.NoneType)
            found[field.name] = dataclasses.replace(
                field.metadata[_KNOWN], name=field.name.removesuffix("_"), type=kind, is_optional=len(kinds) > 1
            )
    return types.MappingProxyType(found)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """The base of classes whose fields are settings; a value that can't be its setting's raises InputError."""

    given: frozenset[str] = dataclasses.field(default=frozenset(), repr=False, compare=False)  # names that a user gave

    def __post_init__(self):
        for name, known in settings_of(type(self)).items():
            object.__setattr__(self, name, known.check(getattr(self, name)))

    @classmethod
    def of(cls, values: dict[str, typing.Any], others: dict[str, str] | None = None) -> "Settings":
        """Returns the settings that a user gives in Python; `others` are names from elsewhere, with those here."""
        names = [name for name, known in settings_of(cls).items() if known.in_python]
        for name in values:
            if name in (others or {}):
                raise InputError(f"`{name}` is called {others[name]} here")
            if name not in names:
                alike = difflib.get_close_matches(name, names, 1)
                hint = f"did you mean {alike[0]}?" if alike else f"there are {', '.join(names)}"
                raise InputError(f"`{name}` is not a setting of a training; {hint}")
        return cls(**values, given=frozenset(values))

    def changed(self, **values) -> "Settings":
        return dataclasses.replace(self, **values)

    def require(self, *names: str) -> None:
        """Raises InputError if a setting has no value."""
        for name in names:
            if getattr(self, name) in (None, "", ()):
                raise InputError(f"`{name}` is missing; see --help")

    def kept(self) -> dict[str, typing.Any]:
        """Returns those that a resumed run must share, JSON values by name."""
        return {name: as_json(getattr(self, name)) for name in self.names(same_on_resume=True)}

    @classmethod
    def assumed(cls) -> dict[str, typing.Any]:
        """Returns the values, for JSON, of runs that were begun before there was a setting: the defaults."""
        defaults = {field.name: field.default for field in dataclasses.fields(cls)}
        return {
            name: as_json(defaults[name])
            for name in cls.names(same_on_resume=True)
            if defaults[name] is not dataclasses.MISSING
        }

    @classmethod
    def names(cls, **known) -> tuple[str, ...]:
        """Returns the names of the settings with these properties, such as `place=True`."""
        return tuple(
            name
            for name, each in settings_of(cls).items()
            if all(bool(getattr(each, what)) == value for what, value in known.items())
        )


def as_json(value: typing.Any) -> typing.Any:
    return list(value) if isinstance(value, tuple) else value


# Checks of values that come from Python, where no flag has told their type.


def check_whole(name: str, value: typing.Any, least: int, most: float = math.inf) -> None:
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or not least <= value <= most:
        allowed = f"from {least} on" if most == math.inf else f"from {least} to {most}"
        raise InputError(f"`{name}` must be a whole number {allowed}. Received: {value!r}")


def check_number(
    name: str, value: typing.Any, allowed: str, is_allowed: collections.abc.Callable[[float], bool]
) -> None:
    """Raises InputError if a setting is no finite number, or none that is allowed."""
    # `allowed` says which numbers are, as it reads after "must be a number".
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not is_allowed(value):
        raise InputError(f"`{name}` must be a number {allowed}. Received: {value!r}")


# The types of values that are written as JSON and read again, so that a changed or foreign file is found out.

_WORDS = {**_CALLED, type(None): "null"}


def check_types(
    values: typing.Any,
    expected: collections.abc.Mapping[str, typing.Any],
    source: str,
    required: collections.abc.Collection[str] = (),
) -> dict:
    """Returns a JSON object after checking the types of its values; names that are not expected may hold anything.

    A type is bool, int, float (which a whole number is, too), str, None, a union, `list[type]`, `dict[str, type]`, or
    a mapping of this kind for an object inside. Errors name the source, which is a file.
    """
    if not isinstance(values, dict):
        raise InputError(f"{source} must hold a JSON object. Received: {describe(values)}")
    missing = next((name for name in required if name not in values), None)
    if missing is not None:
        raise InputError(f'{source}: "{missing}" is missing; the file was changed, or another program wrote it')
    for name, kind in expected.items():
        if name not in values:
            continue
        if isinstance(kind, collections.abc.Mapping):
            check_types(values[name], kind, f'{source}, "{name}"')
        elif not _is_of_type(values[name], kind):
            raise InputError(
                f'{source}: "{name}" must be {_describe_type(kind)}. Received: {describe(values[name])}; the '
                "file was changed, or another program wrote it"
            )
    return values


def _is_of_type(value, kind):
    if kind is typing.Any:
        return True
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return any(_is_of_type(value, each) for each in arguments)
    if origin in (list, tuple):
        return isinstance(value, list) and all(_is_of_type(each, arguments[0]) for each in value)
    if origin is dict:
        return isinstance(value, dict) and all(_is_of_type(each, arguments[1]) for each in value.values())
    if kind in (None, type(None)):
        return value is None
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


def _describe_type(kind):
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(map(_describe_type, arguments))
    if origin in (list, tuple):
        return "a list"
    if origin is dict or kind is dict:
        return "an object"
    return _WORDS.get(type(None) if kind is None else kind, "a list" if kind is list else str(kind))
