"""The run that a command goes on with, or whose model it uses, and the settings that it takes from there."""

import collections.abc
import dataclasses
import os
import typing

from albert_tf.base.checkpoint_files import checkpoint_folder, find_beside_checkpoint
from albert_tf.base.errors import InputError
from albert_tf.base.settings import as_json, settings_of
from albert_tf.runs.settings.training import TrainingSettings
from albert_tf.training.run_folder import guard

_HALF_PRECISION = ("use_bfloat16", "use_float16")

# What a setting is given so that the run's value holds, or else a default that follows from the data.
AUTO = "auto"


@dataclasses.dataclass(frozen=True)
class KnownRun:
    """A run; `named_by` is the setting that names its folder."""

    folder: str
    settings: dict
    named_by: str = "output_dir"

    def find(self, name: str) -> str | None:
        """Returns the path of a file in its folder, None if there is none."""
        return find_beside_checkpoint(self.folder, name)


def with_settings_of_run(
    settings: TrainingSettings, leave_out: collections.abc.Collection[str] = ()
) -> tuple[TrainingSettings, KnownRun | None]:
    """Returns settings of which those that were not given are those of the run that is gone on with or used."""
    # Also returns the run, None for none. That is the one in `output_dir`. Where there is none and nothing is to be
    # trained, it is the one that `init_checkpoint` comes from. `leave_out` are not taken from the run, which keeps
    # them.
    run = _find_run(settings)
    if run is None:
        return settings, None
    known, changes = settings_of(type(settings)), {}
    for name in settings.names(same_on_resume=True, is_flag=True):
        is_kept = name in run.settings and name not in leave_out and not _is_replaced(name, settings)
        if not is_kept or (run.named_by == "init_checkpoint" == name):
            continue
        value, given = run.settings[name], getattr(settings, name)
        if name not in settings.given or given == AUTO:
            changes[name] = _of_run(value["path"] if name in guard.CHECKPOINTS and value else value, known[name], run)
        elif settings.do_train or not known[name].is_free_in_use:
            given = guard.checkpoint_identity(given) if name == "init_checkpoint" else as_json(given)
            then, now = _none_if_empty(value), _none_if_empty(given)
            guard.check_same_settings(run.folder, {name: then}, {name: now}, run.named_by)
    if settings.main_place not in settings.given:
        found_at = run.settings.get(guard.FOUND_AT, {})
        left_out = [name for name in settings.names(place=True) if name not in settings.given and name in found_at]
        changes |= {name: _of_run(found_at[name], known[name], run) for name in left_out}
    return settings.changed(**changes, given=settings.given - changes.keys()), run


def places_of(settings: TrainingSettings) -> dict[str, typing.Any]:
    """Returns where settings say that something lies, for the folder of a run."""
    found = {name: getattr(settings, name) for name in settings.names(place=True)}
    return {name: _absolute(value) for name, value in found.items() if value}


def _absolute(value):
    if isinstance(value, tuple):
        return list(map(guard.absolute_path, value))
    return guard.absolute_path(value) if isinstance(value, str) else value


def _is_replaced(name, settings):
    """Returns whether a setting of the run is one of two that exclude each other, and the other is given."""
    others = set(_HALF_PRECISION) - {name}
    return not settings.do_train and name in _HALF_PRECISION and not others.isdisjoint(settings.given)


def _of_run(value, known, run):
    try:
        return known.check(value) if value is not None else None
    except InputError as error:
        path = os.path.join(run.folder, guard.SETTINGS_FILE)
        raise InputError(
            f'{path}, "{known.name}": {error}; the file was changed, or another program wrote it'
        ) from error


def _find_run(settings):
    output_dir, of_run = settings.output_dir, guard.read_settings(settings.output_dir)
    if of_run is not None:
        if of_run.get("command", settings.command) != settings.command:
            raise InputError(
                f"`output_dir={output_dir}` holds another run, of {of_run['command']}.py; choose another folder"
            )
        return KnownRun(output_dir, of_run)
    if settings.do_train or not settings.init_checkpoint:
        return None
    folder = checkpoint_folder(settings.init_checkpoint) or "."
    of_run = guard.read_settings(folder)
    if of_run is None or of_run.get("command") != settings.command:
        return None
    return KnownRun(folder, of_run, "init_checkpoint")


def _none_if_empty(value):
    return None if value in ("", []) else value
