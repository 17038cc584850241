"""What a command takes from the run folder instead of asking again: settings that are not given."""

import collections.abc
import dataclasses
import os

from absl import flags

from albert_tf.checkpoint_files import checkpoint_folder, find_beside_checkpoint
from albert_tf.errors import InputError
from albert_tf.training.run_folder.guard import (
    CHECKPOINTS,
    FOUND_AT,
    SETTINGS_FILE,
    check_same_settings,
    read_settings,
)
from albert_tf.training.run_folder.identity import checkpoint_identity
from albert_tf.training.settings import result_settings

FLAGS = flags.FLAGS

# How to compute and to judge, not what: a run that was trained in bfloat16 may be evaluated in float32.
_FREE_WITHOUT_TRAINING = ("use_bfloat16", "use_float16", "metrics")

_HALF_PRECISION = ("use_bfloat16", "use_float16")

_TEXT = flags.ArgumentParser()

# What a flag is given so that the run's value holds, or else a default that follows from the data.
AUTO = "auto"


@dataclasses.dataclass(frozen=True)
class KnownRun:
    """A run that a command goes on with, or whose model it uses; `flag` is the one that names its folder."""

    folder: str
    settings: dict
    flag: str = "output_dir"

    def find(self, name: str) -> str | None:
        """Returns the path of a file in its folder, None if there is none."""
        return find_beside_checkpoint(self.folder, name)


def with_settings_of_run(settings, command: str, names: collections.abc.Iterable[str], places: list[str]):
    """Returns settings of which those that were not given are those of the run that the command goes on with or uses.

    That is the run in --output_dir. Where there is none and nothing is to be trained, it is the one that
    --init_checkpoint comes from.

    Args:
        settings: What `resolved_flags` returned.
        command: Which script this is.
        names: Those that a run keeps.
        places: Those that say where its data are; the run's are taken unless the first of them is given.

    Returns:
        The settings, and the `KnownRun`, None if there is none.

    Raises:
        InputError: A flag contradicts the run, or the folder's run is of another command.
    """
    run = _find_run(settings, command)
    if run is None:
        return settings, None
    is_other = run.flag != "output_dir"
    names = [name for name in names if not _is_replaced(name, settings)]
    changes = {}
    for name in names:
        if name not in run.settings or (is_other and name == "init_checkpoint"):
            continue
        value, given = run.settings[name], getattr(settings, name)
        if name not in settings.given or given == AUTO:
            changes[name] = _parse(value["path"] if name in CHECKPOINTS and value else value, name, run.folder)
        elif settings.do_train or name not in _FREE_WITHOUT_TRAINING:
            given = checkpoint_identity(given) if name == "init_checkpoint" else given
            then, now = _none_if_empty(value), _none_if_empty(given)
            check_same_settings(run.folder, {name: then}, {name: now}, run.flag)
    if places[0] not in settings.given:
        found_at = run.settings.get(FOUND_AT, {})
        left_out = [name for name in places if name not in settings.given and name in found_at]
        changes |= {name: _parse(found_at[name], name, run.folder) for name in left_out}
    return dataclasses.replace(settings, **changes, given=settings.given - changes.keys()), run


def _is_replaced(name, settings):
    """Returns whether a setting of the run is one of two that exclude each other, and the other is given."""
    others = set(_HALF_PRECISION) - {name}
    return not settings.do_train and name in _HALF_PRECISION and not others.isdisjoint(settings.given)


def settings_flags() -> list[str]:
    """Returns the flags of the settings that all training shares and that change what it computes."""
    return [name for name in (*result_settings(), "use_bfloat16", "use_float16") if name in FLAGS]


def _parse(value, name, folder):
    """Returns the value of a setting as its flag has it."""
    try:
        if isinstance(value, list):
            value = [_TEXT.parse(each) for each in value]
        return None if value is None else FLAGS[name].parser.parse(value)
    except (TypeError, ValueError) as error:
        raise InputError(
            f'{os.path.join(folder, SETTINGS_FILE)}: "{name}" is not a value that --{name} accepts ({error}); '
            "the file was changed, or another program wrote it"
        ) from error


def _find_run(settings, command):
    output_dir, of_run = settings.output_dir, read_settings(settings.output_dir)
    if of_run is not None:
        if of_run.get("command", command) != command:
            raise InputError(
                f"--output_dir={output_dir} holds another run, of {of_run['command']}.py; choose another folder"
            )
        return KnownRun(output_dir, of_run)
    if settings.do_train or not settings.init_checkpoint:
        return None
    folder = checkpoint_folder(settings.init_checkpoint) or "."
    of_run = read_settings(folder)
    if of_run is None or of_run.get("command") != command:
        return None
    return KnownRun(folder, of_run, "init_checkpoint")


def _none_if_empty(value):
    return None if value in ("", []) else value
