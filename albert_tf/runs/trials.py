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

from albert_tf.base import console
from albert_tf.base.checkpoint_files import EVAL_RESULTS_FILE, TRIALS_FILE, refuse_trials
from albert_tf.base.errors import InputError, with_extra
from albert_tf.base.files import gfile_for, read_bytes, read_json, write_json
from albert_tf.base.folders import hold
from albert_tf.base.settings import LOGARITHMIC, check_types, settings_of
from albert_tf.base.startup import without_warnings_of_tracing
from albert_tf.runs.settings.training import TrainingSettings
from albert_tf.training.devices import is_alone_by_environment, is_chief_by_environment
from albert_tf.training.run_folder.guard import read_settings
from albert_tf.training.stability import DivergedError

JOURNAL_FILE = "trials.journal"
_DIGITS = 3  # of a number that is drawn, so that its folder and the table show all of it


@dataclasses.dataclass(frozen=True)
class Search:
    """The settings to try, how often, and the seed that decides what a study of Optuna's draws.

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


class Outcome(typing.NamedTuple):
    """The result of a training."""

    metric: str  # The one that decides.
    learning_rate: float  # Its peak.
    results: dict[str, float] | None  # Of held-out data; None where nothing was evaluated.


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
    kinds = []
    for trial in trials:
        if trial.settings not in kinds:
            kinds.append(trial.settings)
    found = [[trial for trial in trials if trial.settings == settings] for settings in kinds]
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
    rows = [[*names, "random_seed", metric, "median", ""]]
    for group in ordered:
        median = statistics.median(_values(group, metric))
        for trial in group:
            settings = trial.settings or {"learning_rate": trial.learning_rate}
            cells = [*map(as_text, settings.values()), str(trial.random_seed), f"{trial.results[metric]:.4f}"]
            rows.append([*cells, f"{median:.4f}", "best" if trial is best else ""])
    rows += [[*map(as_text, settings.values()), "", "diverged", "", ""] for settings in left_out]
    if all(len(group) == 1 for group in ordered):
        rows = [[*row[:-2], row[-1]] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    chosen = _describe(best.settings or {"learning_rate": best.learning_rate})
    return [*lines, f"chosen on held-out data: {chosen}; its best trial is {best.folder}"]


# What `num_trials` and `trials` ask for.


class Stopped(Exception):
    """A training was stopped before its end by a signal, and the same call goes on."""

    def __init__(self, signal: int):
        super().__init__(f"stopped by signal {signal}")
        self.signal = signal


@contextlib.contextmanager
def going_on_by_call(output_dir: str) -> collections.abc.Iterator[None]:
    """Turns `Stopped` into a KeyboardInterrupt, whose message says how a call in Python goes on."""
    try:
        yield
    except Stopped as stop:
        raise KeyboardInterrupt(f"interrupted; repeat the call with output_dir={output_dir!r} to continue") from stop


def run_as_asked(
    settings: TrainingSettings, run_once: collections.abc.Callable[[TrainingSettings], Outcome]
) -> Outcome | None:
    """Trains once, or as often as the settings say; returns what came of a single training. A signal raises Stopped."""
    search = _search_of(settings)
    if search is None:
        refuse_trials(settings.output_dir)
        return run_once(settings)
    if not (settings.do_train and settings.do_eval):
        raise InputError("`num_trials` and `trials` need `do_train` and `do_eval`, to compare them")
    if read_settings(settings.output_dir) is not None:  # its results would be replaced
        raise InputError(f"`output_dir={settings.output_dir}` holds a run; choose another folder for the trials")

    without_warnings_of_tracing()

    def run_changed(changes, folder):
        given = settings.given | changes.keys()
        outcome = run_once(settings.changed(**changes, output_dir=folder, given=given))
        if outcome.results is None:
            raise InputError("there is nothing to compare the trials by; name data to evaluate on")
        return outcome

    is_chief = is_chief_by_environment()
    run_trials(settings.output_dir, search, run_changed, console.tell if is_chief else lambda line: None, is_chief)
    return None


def _search_of(settings):
    """Returns the search that the settings ask for, None for a single run."""
    if not settings.trials:
        # The folders say a rate that is given.
        told = {} if settings.learning_rate is None else {"learning_rate": settings.learning_rate}
        return Search({}, settings.num_trials, settings.random_seed, told) if settings.num_trials > 1 else None
    if "://" in settings.output_dir or not is_alone_by_environment():
        raise InputError("`trials` needs one machine with `output_dir` on its own disk; `num_trials` alone does not")
    tried = {}
    for part in settings.trials:
        name, distribution = _parse(part, settings)
        if name in tried:
            raise InputError(f"`trials={part}`: {name} is there twice; name each setting once")
        if name in settings.given:
            raise InputError(f"`trials={part}`: `{name}={getattr(settings, name)}` is fixed; leave one of them out")
        if not hasattr(distribution, "choices") and settings.num_trials == 1:
            raise InputError(f"`trials={part}` is a range; say how many trainings to draw from it with `num_trials`")
        tried[name] = distribution
    if "num_train_steps" in tried and ("num_train_epochs" in settings.given or "num_train_epochs" in tried):
        raise InputError("`trials=num_train_steps`: the number of steps follows from num_train_epochs; leave one out")
    return Search(tried, settings.num_trials, settings.random_seed)


def _parse(part, settings):
    """Returns the setting of a part of `trials`, such as learning_rate:1e-4..1e-3, and its distribution."""
    name, colon, text = part.strip().partition(":")
    if not (name and colon and text):
        raise InputError(
            f"`trials={part}` must be a setting, a colon and its values, such as learning_rate:1e-4..1e-3 or "
            "num_train_epochs:2|4"
        )
    known = settings_of(type(settings))
    if name not in known or not known[name].search:
        listed = ", ".join(sorted(settings.names(search=True, is_flag=True)))
        raise InputError(f"`trials={part}`: {name} is not a setting that can be searched; these can: {listed}")
    known, is_logarithmic = known[name], known[name].search == LOGARITHMIC
    distributions = import_optuna().distributions
    if ".." not in text:
        values = tuple(_value(known, each, part) for each in text.split("|"))
        if len(set(values)) < len(values):
            raise InputError(f"`trials={part}`: a value is there twice; name each once")
        return name, distributions.CategoricalDistribution(values)
    low, high = (_value(known, each, part) for each in text.split("..", 1))
    if isinstance(low, (bool, str)):
        raise InputError(f"`trials={part}`: a range is of numbers; list the values of {name}, as {name}:{low}|...")
    if not low < high:
        raise InputError(f"`trials={part}` is an empty range; the lower end comes first")
    if is_logarithmic and not low > 0:
        raise InputError(f"`trials={part}`: {name} is drawn by its logarithm, so that the range must begin above 0")
    if isinstance(low, int):
        return name, distributions.IntDistribution(low, high)
    return name, distributions.FloatDistribution(low, high, log=is_logarithmic)


def _value(known, text, part):
    try:
        return known.parse(text.strip())
    except InputError as error:
        raise InputError(f"`trials={part}`: {error}") from error
