"""Several trainings by one command: what `num_trials` and `trials` ask for."""

import collections.abc
import typing

from albert_tf.base.checkpoint_files import refuse_trials
from albert_tf.base.console import tell
from albert_tf.base.errors import InputError
from albert_tf.base.settings import LOGARITHMIC, settings_of
from albert_tf.base.startup import without_warnings_of_tracing
from albert_tf.runs.settings.training import TrainingSettings
from albert_tf.runs.trials import Search, import_optuna, run_trials
from albert_tf.training.devices import is_alone_by_environment, is_chief_by_environment
from albert_tf.training.run_folder.guard import read_settings


class Outcome(typing.NamedTuple):
    """The result of a training."""

    metric: str  # The one that decides.
    learning_rate: float  # Its peak.
    results: dict[str, float] | None  # Of held-out data; None where nothing was evaluated.


class Stopped(Exception):
    """A training was stopped before its end by a signal, and the same call goes on."""

    def __init__(self, signal: int):
        super().__init__(f"stopped by signal {signal}")
        self.signal = signal


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
    run_trials(settings.output_dir, search, run_changed, tell if is_chief else lambda line: None, is_chief)
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
