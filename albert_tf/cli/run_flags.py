"""What a command takes from the run folder instead of asking again: flags that are not given, model and tokenizer."""

import dataclasses
import os

from absl import flags

from albert_tf.checkpoint_files import checkpoint_folder, find_beside_checkpoint
from albert_tf.errors import InputError
from albert_tf.training.run_folder.guard import (
    FOUND_AT,
    SETTINGS_FILE,
    check_same_settings,
    is_of_earlier_version,
    read_settings,
    refuse_earlier_version,
)
from albert_tf.training.run_folder.identity import checkpoint_identity
from albert_tf.training.settings import result_settings

FLAGS = flags.FLAGS

# How to compute and to judge, not what: a run that was trained in bfloat16 may be evaluated in float32.
_FREE_WITHOUT_TRAINING = ("use_bfloat16", "metrics")

_TEXT = flags.ArgumentParser()

# What a flag is given so that the run's value holds, or else a default that follows from the data.
AUTO = "auto"


@dataclasses.dataclass(frozen=True)
class KnownRun:
    """A run that a command goes on with, or whose model it uses.

    Attributes:
        folder: Its folder.
        settings: What it was begun with.
        flag: The flag that names the folder.
    """

    folder: str
    settings: dict
    flag: str = "output_dir"

    def find(self, name: str) -> str | None:
        """Returns the path of a file in its folder, None if there is none."""
        return find_beside_checkpoint(self.folder, name)


def take_from_run(command: str, names: dict[str, str], places: list[str]) -> KnownRun | None:
    """Gives flags that the user left out the values of the run that the command goes on with or uses.

    That is the run in --output_dir. Where there is none and nothing is to be trained, it is the one that
    --init_checkpoint comes from.

    Args:
        command: Which script this is.
        names: Settings of the run, and the flag of each.
        places: Flags that say where its data are; the run's are taken unless the first of them is given.

    Returns:
        The run, None if there is none.

    Raises:
        InputError: A flag contradicts the run, or the folder's run is of another command, or of an earlier version,
            which can't be trained on.
    """
    run = _find_run(command)
    if run is None:
        return None
    is_other = run.flag != "output_dir" or is_of_earlier_version(run.settings)
    for name, flag_name in names.items():
        if name not in run.settings or (is_other and name == "init_checkpoint"):
            continue
        flag, value = FLAGS[flag_name], run.settings[name]
        if flag.value == AUTO:
            flag.unparse()
        if not flag.present:
            _set(flag, value["path"] if name == "init_checkpoint" and value else value, name, run.folder)
        elif FLAGS.do_train or name not in _FREE_WITHOUT_TRAINING:
            given = checkpoint_identity(flag.value) if name == "init_checkpoint" else flag.value
            then, now = _none_if_empty(value), _none_if_empty(given)
            check_same_settings(run.folder, {flag_name: then}, {flag_name: now}, run.flag)
    found_at = run.settings.get(FOUND_AT, {})
    if not FLAGS[places[0]].present:
        for name in places:
            if not FLAGS[name].present and name in found_at:
                _set(FLAGS[name], found_at[name], name, run.folder)
    return run


def settings_flags(**names: str) -> dict[str, str]:
    """Returns the settings that all training shares, and the flag of each.

    Args:
        **names: Flags that are called otherwise than their setting.
    """
    flags_of_settings = {name: names.get(name, name) for name in (*result_settings(), "use_bfloat16")}
    return {name: flag for name, flag in flags_of_settings.items() if flag in FLAGS}


def _set(flag, value, name, folder):
    """Gives a flag the value of a setting."""
    try:
        if isinstance(value, list):
            value = [_TEXT.parse(each) for each in value]
        flag.value = None if value is None else flag.parser.parse(value)
    except (TypeError, ValueError) as error:
        raise InputError(
            f'{os.path.join(folder, SETTINGS_FILE)}: "{name}" is nothing that --{flag.name} takes ({error}); the file '
            "was changed, or is of another program"
        ) from error


def _find_run(command):
    settings = read_settings(FLAGS.output_dir)
    if settings is not None:
        if settings.get("command", command) != command:
            raise InputError(
                f"--output_dir={FLAGS.output_dir} holds another run, of {settings['command']}.py; choose another folder"
            )
        if FLAGS.do_train:
            refuse_earlier_version(FLAGS.output_dir, settings)
        return KnownRun(FLAGS.output_dir, settings)
    if FLAGS.do_train or not FLAGS.init_checkpoint:
        return None
    folder = checkpoint_folder(FLAGS.init_checkpoint) or "."
    settings = read_settings(folder)
    if settings is None or settings.get("command") != command:
        return None
    return KnownRun(folder, settings, "init_checkpoint")


def _none_if_empty(value):
    return None if value in ("", []) else value
