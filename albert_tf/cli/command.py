"""Commands, with TensorFlow or without: flags made of settings, read when one runs, and errors without tracebacks."""

import collections.abc
import contextlib
import difflib
import os
import re
import sys
import typing

from absl import app, flags, logging

from albert_tf.base.console import spell_settings
from albert_tf.base.errors import InputError, describe_file_error, file_errors
from albert_tf.base.folders import hold
from albert_tf.base.settings import GROUPS, RARE, Setting, Settings, settings_of
from albert_tf.base.shipped_files import or_shipped
from albert_tf.base.startup import end_in_one_line_if_interrupted, warn_in_one_line

end_in_one_line_if_interrupted()

FLAGS = flags.FLAGS

_HELP = {f"{dashes}{name}" for dashes in ("-", "--") for name in ("help", "helpshort", "h", "?")}
_OWN = "Flags of this command"
_DEFINE = {bool: flags.DEFINE_bool, float: flags.DEFINE_float, int: flags.DEFINE_integer, str: flags.DEFINE_string}


def command(
    settings: type[Settings], output_flag: str | None = None
) -> collections.abc.Callable[[collections.abc.Callable[[typing.Any], None]], collections.abc.Callable[[], None]]:
    """Makes a command of a function of settings; `output_flag` names the folder that it writes, which is held.

    A user's mistake ends in one sentence on standard error and exit code 1.
    """

    def make(main):
        def start():
            run(main, settings, output_flag)

        start.settings, start.__doc__ = settings, main.__doc__
        return start

    return make


def run(
    main: collections.abc.Callable[[typing.Any], None], settings: type[Settings], output_flag: str | None = None
) -> None:
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
    for name in ORIGINAL_FLAGS.get(getattr(settings, "command", None), ()):
        default, reason = _DEFAULT_ONLY.get(name) or (_WITHOUT_EFFECT[name], "no effect")
        _DEFINE.get(type(default), flags.DEFINE_string)(name, default, f"Of the original's commands: {reason}.")


def settings_from_flags(settings: type[Settings]) -> Settings:
    """Returns the settings that the flags give.

    An `init_checkpoint` or `albert_config_file` that names nothing here is an included one, if there is one: so the
    included flagfiles serve from every folder.
    """
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
    except flags.Error as error:
        if isinstance(error.__context__, InputError):  # of the setting, which says it all
            raise error.__context__ from None
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


# Flags of google-research/albert that its commands may hold, and that have nothing to do here.
# Some have no effect. The others are taken with their default alone: any other value asks for what can't be done.

# Name to default.
_WITHOUT_EFFECT = {
    "cached_dir": None,
    "eval_file": None,
    "input_file_mode": "r",
    "master": None,
    "num_keep_checkpoint": 5,
    "num_tpu_cores": 8,
    "predict_feature_file": None,
    "predict_feature_left_file": None,
    "predict_file": None,
    "threshold_to_export": float("nan"),
    "train_feature_file": None,
    "train_file": None,
    "use_einsum": True,
}
# Name to default, and why there is nothing else.
_DEFAULT_ONLY = {
    "albert_hub_module_handle": (None, "a TensorFlow Hub module can't be loaded; use --init_checkpoint"),
    "dropout_prob": (0.1, "the dropout of the head is classifier_dropout_prob in --albert_config_file"),
    "export_dir": (None, "a trained model can't be exported by this command"),
    "init_from_group0": (False, "weights can't be copied from one group to the others"),
    "masked_lm_budget": (0, "every masked piece is predicted"),
    "start_warmup_step": (0, "the warm-up begins with the first step"),
    "warmup_proportion": (0.1, "the number of steps of the warm-up is --num_warmup_steps"),
}
_OF_TRAINING = ("master", "num_tpu_cores")
_OF_FINETUNING = (*_OF_TRAINING, "albert_hub_module_handle", "export_dir", "threshold_to_export")
# Which of them a command takes.
ORIGINAL_FLAGS = {
    "create_pretraining_data": ("input_file_mode",),
    "run_pretraining": (*_OF_TRAINING, "init_from_group0", "masked_lm_budget", "start_warmup_step"),
    "run_classifier": (*_OF_FINETUNING, "cached_dir"),
    "run_ner": _OF_FINETUNING,
    "run_race": (
        *_OF_FINETUNING,
        *("train_file", "eval_file", "predict_file", "num_keep_checkpoint", "dropout_prob"),
    ),
    "run_squad": (
        *_OF_FINETUNING,
        *("dropout_prob", "predict_feature_file", "predict_feature_left_file", "train_feature_file", "use_einsum"),
        "warmup_proportion",
    ),
}


def check_original_flags() -> None:
    """Checks that no flag of the original's asks for what can't be done."""
    for name, (default, explanation) in _DEFAULT_ONLY.items():
        value = flags.FLAGS[name].value if name in flags.FLAGS else default
        if value not in (default, ""):
            raise InputError(f"--{name}={value} is not supported: {explanation}; leave the flag out")
