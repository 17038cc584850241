"""The one loop over several trainings, and what they come to: which settings do best, and how much chance decides."""

import collections.abc
import contextlib
import dataclasses
import itertools
import math
import os
import statistics
import threading
import typing

import numpy as np

from albert_tf.base.checkpoint_files import EVAL_RESULTS_FILE, TRIALS_FILE
from albert_tf.base.errors import InputError, with_extra
from albert_tf.base.files import gfile_for, read_bytes, read_json, write_json
from albert_tf.base.folders import hold
from albert_tf.base.settings import check_types
from albert_tf.training.stability import DivergedError

# Which settings several trainings have: the same with other seeds, or those that a study of Optuna's draws.

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
        tried = {name: _describe_settings(distribution) for name, distribution in self.settings.items()}
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


def _describe_settings(distribution):
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


# What the folders of trials say for these settings.
_SHORT_NAMES = {"learning_rate": "rate", "random_seed": "seed"}

Outcome = tuple[str, float, dict[str, float]]


@dataclasses.dataclass(frozen=True)
class Trial:
    """One training: its folder, its results by metric, and its `settings`, those that are searched."""

    learning_rate: float
    random_seed: int
    folder: str
    results: dict[str, float]
    settings: dict[str, typing.Any] = dataclasses.field(default_factory=dict)


def run_trials(
    output_dir: str,
    search: Search,
    run_once: collections.abc.Callable[[dict[str, typing.Any], str], Outcome],
    tell: collections.abc.Callable[[str], None] = print,
    is_chief: bool = True,
) -> None:
    """Trains with one variant after the other, each in a folder of its own, and writes their results.

    Trainings that are there already are only looked at, so that the same call goes on where it was stopped. Where one
    diverges, all that differ from it in the seed alone are left out.

    Args:
        output_dir: The folder that theirs are made in, with trials.json, eval_results.json and the journal of a search.
        search: The variants.
        run_once: Given what a training changes and its folder, returns the metric that decides, the peak learning rate,
            and the results by metric. An error of its own ends the search, and the same call goes on.
        tell: Prints a line.
        is_chief: Whether this process writes; of several that train together all go through the same seeds.

    Raises:
        InputError: The folder holds another search, another command writes to it, or it can't be written to.
        DivergedError: No variant is left.
    """
    with hold(output_dir) if is_chief else contextlib.nullcontext():
        _claim(output_dir, search, is_chief)
        outcome = _run_all(output_dir, search, run_once, tell)
        if is_chief:
            _write(output_dir, search, *outcome, tell)


def _run_all(output_dir, search, run_once, tell):
    """Returns the trials, the metric that decides and the settings that are left out."""
    trials, left_out, errors, metrics, seen = [], [], [], [], []

    def train(settings):
        number_of_seed = seen.count(settings)
        seen.append(settings)
        if settings in left_out:
            return None
        variant = {**settings, "random_seed": search.random_seed + number_of_seed}
        changes = (f"{_SHORT_NAMES.get(name, name)}_{as_text(value)}" for name, value in variant.items())
        folder = os.path.join(output_dir, "_".join(changes))
        tell(f"\ntrial {len(seen)} of {len(search)}: {folder}")
        try:
            metric, learning_rate, results = run_once(variant, folder)
        except DivergedError as error:
            left_out.append(settings)
            errors.append(error)
            trials[:] = [trial for trial in trials if trial.settings != settings]
            if search.settings:
                tell(f"warning: {_describe(settings)} is left out: {error}")
            return None
        metrics.append(metric)
        trials.append(Trial(learning_rate, variant["random_seed"], folder, results, settings))
        return _sign(metric) * results[metric]

    search.run(output_dir, train)
    if not trials:
        raise errors[-1]
    return trials, metrics[-1], left_out


def _write(output_dir, search, trials, metric, left_out, tell):
    """Writes and tells what the trials come to."""
    found = {
        "search": search.to_dict(),
        "metric": metric,
        "best": os.path.basename(best_trial(trials, metric).folder),
        "trials": [vars(trial) for trial in trials],
        "left_out": left_out,
    }
    write_json(os.path.join(output_dir, TRIALS_FILE), found)
    write_json(os.path.join(output_dir, EVAL_RESULTS_FILE), summarize(trials, metric))
    tell("\n".join(["", *describe(trials, metric, left_out)]))


def _claim(output_dir, search, is_chief):
    """Notes in the folder what is searched there, before the first training."""
    path, now, earlier = os.path.join(output_dir, TRIALS_FILE), search.to_dict(), {}
    if gfile_for(path).exists(path):
        expected = {"search": {"settings": dict[str, str], "random_seed": int, "drawn_by": str}}
        earlier = check_types(read_json(path, "the trials"), expected, path, ("search",))
        then = earlier["search"]
        if then != now:
            raise InputError(
                f"`output_dir={output_dir}` holds trials of {_describe_search(then)}, but the settings now "
                f"describe those of {_describe_search(now)}; choose another folder"
            )
    if is_chief and not earlier:
        write_json(path, {"search": now, "best": None, "trials": []})


def _describe_search(search):
    searched = ",".join(f"{name}:{values}" for name, values in search.get("settings", {}).items())
    drawn = f", drawn by {search['drawn_by']}" if "drawn_by" in search else ""
    return f"{searched or 'seeds alone'} from `random_seed={search.get('random_seed')}`{drawn}"


def _describe(changed):
    return ", ".join(f"{name}={as_text(value)}" for name, value in changed.items())


def _sign(metric):
    return -1 if metric.endswith("loss") else 1


def _values(trials, name):
    return [trial.results[name] for trial in trials]


def groups(trials: list[Trial], metric: str) -> list[list[Trial]]:
    """Returns the trials of equal settings together, those whose median over the seeds is best first.

    Of equal ones the lowest learning rate comes first, and then the one that was tried first.
    """
    found = []
    for trial in trials:
        group = next((group for group in found if group[0].settings == trial.settings), None)
        if group is None:
            found.append([trial])
        else:
            group.append(trial)
    return sorted(
        found, key=lambda group: (-_sign(metric) * statistics.median(_values(group, metric)), group[0].learning_rate)
    )


def best_trial(trials: list[Trial], metric: str) -> Trial:
    """Returns the best trial of the best settings."""
    return max(groups(trials, metric)[0], key=lambda trial: _sign(metric) * trial.results[metric])


def summarize(trials: list[Trial], metric: str) -> dict[str, float]:
    """Returns the medians over the seeds of the best settings, of `metric` with the lowest and the highest.

    With them stand the learning rate, other settings that are numbers, and how many seeds.
    """
    chosen = groups(trials, metric)[0]
    medians = {name: statistics.median(_values(chosen, name)) for name in chosen[0].results}
    spread = {f"{metric}_min": min(_values(chosen, metric)), f"{metric}_max": max(_values(chosen, metric))}
    settings = {name: value for name, value in chosen[0].settings.items() if type(value) in (int, float)}
    rate = {"learning_rate": chosen[0].learning_rate}
    return {**medians, **spread, **rate, **settings, "num_trials": len(chosen)}


def describe(
    trials: list[Trial], metric: str, left_out: collections.abc.Sequence[dict[str, typing.Any]] = ()
) -> list[str]:
    """Returns a table with a line for each trial, the best first, and a line that says which was chosen."""
    ordered = groups(trials, metric)
    best, names = best_trial(trials, metric), list(trials[0].settings) or ["learning_rate"]
    head = [*names, "random_seed", metric]
    has_seeds = any(len(group) > 1 for group in ordered)
    rows = [[*head, *(["median"] if has_seeds else []), ""]]
    for group in ordered:
        median = statistics.median(_values(group, metric))
        for trial in group:
            settings = trial.settings or {"learning_rate": trial.learning_rate}
            cells = [*map(as_text, settings.values()), str(trial.random_seed), f"{trial.results[metric]:.4f}"]
            rows.append([*cells, *([f"{median:.4f}"] if has_seeds else []), "best" if trial is best else ""])
    for settings in left_out:
        rows.append([*map(as_text, settings.values()), "", "diverged", *([""] if has_seeds else []), ""])
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    chosen = _describe(best.settings or {"learning_rate": best.learning_rate})
    return [*lines, f"chosen on held-out data: {chosen}; its best trial is {best.folder}"]
