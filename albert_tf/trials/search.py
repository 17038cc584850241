"""Which settings several trainings have: the same with other seeds, or those that a study of Optuna's draws."""

import collections.abc
import dataclasses
import itertools
import math
import os
import threading
import typing

import numpy as np

from albert_tf.errors import InputError, with_extra
from albert_tf.files import read_bytes

JOURNAL_FILE = "trials.journal"

_DIGITS = 3  # of a number that is drawn, so that its folder and the table show all of it


@dataclasses.dataclass(frozen=True)
class Search:
    """The settings to try, how often, and the seed that decides what is drawn.

    Attributes:
        settings: The `optuna.distributions` by name; nothing for trainings that differ in their seeds alone. Floats are
            trained with three digits of what is drawn.
        num_trials: Where all are categorical, how often each combination of them is trained. With a range among them,
            the number of trainings, each with values of its own.
        random_seed: The seed of the first training, and of the values.
        told: Settings of all trainings that their folders are to say.
    """

    settings: dict[str, typing.Any]
    num_trials: int
    random_seed: int
    told: dict[str, typing.Any] = dataclasses.field(default_factory=dict)

    def __len__(self):
        return self.num_trials * max(1, len(self._combinations))

    def run(self, folder: str, train: collections.abc.Callable[[dict[str, typing.Any]], float | None]) -> None:
        """Trains with one draw after the other, and keeps in the folder's journal how good each is.

        Those in the journal come again first, to be looked at, and the one that was stopped goes on. The same values
        are drawn, whether the search is stopped or not.

        Args:
            folder: On a local disk; nobody else writes there.
            train: Given settings, returns how good they are, None where training diverged.

        Raises:
            InputError: Optuna is needed and isn't installed, or the journal is damaged.
        """
        if not self.settings:
            for _ in range(self.num_trials):
                train(self.told)
            return
        optuna = import_optuna()
        states = optuna.trial.TrialState
        study = _open_study(optuna, os.path.join(folder, JOURNAL_FILE))
        for trial in study.get_trials(states=(states.RUNNING,)):
            if len(trial.params) < len(self.settings):  # it was stopped while it was drawn
                study.tell(trial.number, state=states.FAIL)
        trials = study.get_trials(states=(states.RUNNING, states.COMPLETE, states.PRUNED))
        for number in range(len(self)):
            trial = trials[number] if number < len(trials) else self._draw(optuna, study, number)
            value = train({name: self._shortened(name, trial.params[name]) for name in self.settings})
            if trial.state == states.RUNNING:
                is_usable = value is not None and math.isfinite(value)
                study.tell(trial.number, value if is_usable else None, None if is_usable else states.PRUNED)

    def _draw(self, optuna, study, number):
        """Returns a new trial: of combinations the next one, or else what Optuna makes of those before."""
        if self._combinations:
            params = dict(zip(self.settings, self._combinations[number % len(self._combinations)]))
            state = optuna.trial.TrialState.RUNNING
            study.add_trial(optuna.trial.create_trial(state=state, params=params, distributions=self.settings))
        else:
            seed = np.random.SeedSequence([self.random_seed, number]).generate_state(1)[0]
            study.sampler = optuna.samplers.TPESampler(seed=int(seed))
            study.ask(self.settings)
        return study.trials[-1]

    @property
    def _combinations(self):
        """All of them; none where there is a range, or nothing to try."""
        choices = [getattr(each, "choices", None) for each in self.settings.values()]
        return list(itertools.product(*choices)) if choices and None not in choices else []

    def _shortened(self, name, value):
        distribution = self.settings[name]
        if not isinstance(value, float) or hasattr(distribution, "choices"):
            return value
        return min(max(float(f"{value:.{_DIGITS}g}"), distribution.low), distribution.high)

    def to_dict(self) -> dict[str, typing.Any]:
        """Returns JSON values by name that identify it; a search with more trainings is the same one gone on."""
        told = {name: as_text(value) for name, value in self.told.items()}
        tried = {name: _describe(distribution) for name, distribution in self.settings.items()}
        drawn = {"drawn_by": "Optuna"} if tried else {}
        return {"settings": {**told, **tried}, "random_seed": self.random_seed, **drawn}


def import_optuna():
    """Returns the library, which then tells only warnings; an InputError if it isn't installed."""
    try:
        import optuna
    except ImportError as error:
        raise InputError(
            f"`trials` needs Optuna, which is not installed; pip install {with_extra('search')}"
        ) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _open_study(optuna, path):
    if os.path.exists(path):  # what a full disk left of a last line would spoil the next one
        os.truncate(path, read_bytes(path, "the journal").rfind(b"\n") + 1)
    # A lock that is a file would outlive a killed process, and is not needed.
    journal = optuna.storages.journal.JournalFileBackend(path, threading.Lock())
    try:
        storage = optuna.storages.JournalStorage(journal)
        return optuna.create_study(storage=storage, study_name="trials", direction="maximize", load_if_exists=True)
    except (ValueError, KeyError) as error:
        raise InputError(f"{path} is damaged; delete it, and the same values are drawn again") from error


def _describe(distribution):
    """Returns a distribution as a user types it."""
    if hasattr(distribution, "choices"):
        return "|".join(map(as_text, distribution.choices))
    return f"{as_text(distribution.low)}..{as_text(distribution.high)}"


def as_text(value: typing.Any) -> str:
    """Returns a value as it is typed, and as folders are called after it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return str(value)
