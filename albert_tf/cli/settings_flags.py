"""Flags made of settings, and settings read off a command line."""

import difflib
import os

from absl import flags

from albert_tf.base.errors import InputError
from albert_tf.base.settings import GROUPS, RARE, Setting, Settings, settings_of
from albert_tf.base.shipped_files import or_shipped
from albert_tf.cli.original_flags import ORIGINAL_FLAGS, define_original_flags

FLAGS = flags.FLAGS

_HELP = {f"{dashes}{name}" for dashes in ("-", "--") for name in ("help", "helpshort", "h", "?")}
_OWN = "Flags of this command"
_DEFINE = {bool: flags.DEFINE_bool, float: flags.DEFINE_float, int: flags.DEFINE_integer, str: flags.DEFINE_string}


class _Parser(flags.ArgumentParser):
    """The parser of a flag, which takes and refuses what its setting does, with the same errors."""

    def __init__(self, known: Setting, usual: flags.ArgumentParser):
        self._known, self._usual, self.syntactic_help = known, usual, usual.syntactic_help

    def parse(self, argument):
        return self._known.parse(argument) if isinstance(argument, str) else self._known.check(argument)

    def flag_type(self):
        return self._usual.flag_type()

    def __getattr__(self, name):
        return getattr(self._usual, name)


def define_flags(settings: type[Settings]) -> None:
    """Defines the flags of a command, one for each setting, and those of the original's that it takes."""
    known = {name: each for name, each in settings_of(settings).items() if each.is_flag}
    defaults = {each.name: settings.__dataclass_fields__[field].default for field, each in known.items()}
    for each in known.values():
        name = each.name
        default = list(defaults[name]) if isinstance(defaults[name], tuple) else defaults[name]
        bounds = {"lower_bound": each.least, "upper_bound": each.most} if each.type in (int, float) else {}
        if each.type is float:
            bounds = {name: bound if bound is None else float(bound) for name, bound in bounds.items()}
        if each.repeats:
            flags.DEFINE_multi_string(name, default, each.help)
        elif each.is_list:
            flags.DEFINE_list(name, default, each.help)
        elif each.choices:
            flags.DEFINE_enum(name, default, list(each.choices), each.help)
        else:
            _DEFINE[each.type](name, default, each.help, **bounds)
        if not each.repeats:
            FLAGS[name].parser = _Parser(each, FLAGS[name].parser)
        for alias in each.aliases:
            flags.DEFINE_alias(alias, name)
    define_original_flags(*ORIGINAL_FLAGS.get(getattr(settings, "command", None), ()))


def settings_from_flags(settings: type[Settings]) -> Settings:
    # An `init_checkpoint` or `albert_config_file` that names nothing here is an included one, if there is one: so the
    # included flagfiles serve from every folder.
    found = {name: FLAGS[each.name] for name, each in settings_of(settings).items() if each.is_flag}
    values = {name: flag.value for name, flag in found.items()}
    for name in ("init_checkpoint", "albert_config_file"):
        if values.get(name):
            values[name] = or_shipped(values[name])
    return settings(**values, given=frozenset(name for name, flag in found.items() if flag.present))


def parse_flags(arguments: list[str], settings: type[Settings]) -> None:
    """Reads the flags of a command line and of its flagfiles into `FLAGS`."""
    # Help, if asked for, is printed, and ends with SystemExit of 0.
    script, *rest = arguments
    try:
        expanded = FLAGS.read_flags_from_files(rest, force_gnu=False)
        if _HELP.intersection(expanded):
            print(help_text(os.path.basename(script), settings))
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
    except flags.IllegalFlagValueError as error:
        if isinstance(error.__context__, InputError):  # of the setting, which says it all
            raise error.__context__ from None
        raise InputError(f"{' '.join(str(error).split()).removeprefix('flag ')}; see --help") from error
    except flags.Error as error:
        message = " ".join(str(error).split()).removeprefix("flag ")
        raise InputError(f"{message}; see --help") from error
    if rest:
        raise InputError(f"unexpected argument {rest[0]}; every setting is a flag, --name=value")


def help_text(script: str, settings: type[Settings]) -> str:
    """Returns the text of --help: the flags that a person sets, in groups. --helpfull shows all of them."""
    groups = {title: flags.FlagValues() for title in (_OWN, *GROUPS)}
    for known in settings_of(settings).values():
        if known.is_flag and known.group != RARE:
            groups[known.group or _OWN][known.name] = FLAGS[known.name]
    shown = [
        f"{title}:\n{group.get_help('  ', include_special_flags=False)}"
        for title, group in groups.items()
        if len(group)
    ]
    return "\n\n".join([f"Usage: {script} --flag=value ...", *shown, "--helpfull shows every flag."])


def _suggest(name):
    """Returns a question that names the known flag most like `name`; an empty string if none is."""
    known = [*FLAGS, *(f"no{flag}" for flag in FLAGS if FLAGS[flag].boolean)]
    closest = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean --{closest[0]}?" if closest else ""
