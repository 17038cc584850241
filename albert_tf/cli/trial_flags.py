"""Several trainings by one command: their flags, and what those ask for."""

import collections.abc
import dataclasses
import math
import typing

from absl import flags

from albert_tf.checkpoint_files import refuse_trials
from albert_tf.cli.command import with_flags
from albert_tf.cli.flag_groups import in_helpfull
from albert_tf.errors import InputError
from albert_tf.startup import without_warnings_of_tracing
from albert_tf.training.devices.workers import is_alone_by_environment, is_chief_by_environment
from albert_tf.training.run_folder.guard import read_settings
from albert_tf.training.settings import result_settings
from albert_tf.trials import Search, run_trials
from albert_tf.trials.search import import_optuna

FLAGS = flags.FLAGS

# What is changed by factors, and not by steps: half of a learning rate is as far away as twice of it.
_LOGARITHMIC = ("learning_rate", "head_learning_rate", "weight_decay")

# What may be searched, where the command has it, besides what all training shares.
_SEARCHED = (
    *("num_train_epochs", "max_seq_length", "dropout", "token_dropout", "early_stopping", "use_bfloat16"),
    *("use_float16", "pooling", "question_alignment", "character_ngrams", "decoding", "doc_stride"),
    *("max_query_length", "max_qa_length", "head", "word_embeddings"),
)
# By --num_trials, and what is a part of another setting.
_NOT_SEARCHED = ("random_seed", "init_checkpoint", "freeze", "reference_batch_size")


@in_helpfull()
def define_trial_flags() -> None:
    """Defines what to try, and how often."""
    flags.DEFINE_integer(
        "num_trials",
        1,
        "Number of trainings with different seeds, each in its own folder; the medians are written. With "
        "ranges in --trials: the total number of trainings.",
        1,
    )
    flags.DEFINE_list(
        "trials",
        [],
        "Settings to try with Optuna: 'learning_rate:1e-4..1e-3,num_train_epochs:2|4' draws --num_trials rates from a "
        "range; with lists only, each combination is tried --num_trials times.",
    )


def run_as_asked(
    settings: typing.Any, run_once: collections.abc.Callable[[typing.Any], tuple[str, float, dict | None]]
) -> None:
    """Runs a command's training once, or as often as the flags of trials say.

    Args:
        settings: What `resolved_flags` returned.
        run_once: Given settings, returns the metric that decides, the peak learning rate and the results, None where
            nothing was evaluated. If it was stopped, it ends the process.
    """
    search = _search_of(settings)
    if search is None:
        refuse_trials(settings.output_dir)
        run_once(settings)
        return
    if not (settings.do_train and settings.do_eval):
        raise InputError("--num_trials and --trials need --do_train and --do_eval, to compare them")
    if read_settings(settings.output_dir) is not None:  # its results would be replaced
        raise InputError(f"--output_dir={settings.output_dir} holds a run; choose another folder for the trials")

    without_warnings_of_tracing()

    def run_changed(changes, folder):
        given = settings.given | changes.keys()
        outcome = run_once(dataclasses.replace(settings, **changes, output_dir=folder, given=given))
        if outcome[2] is None:
            raise InputError("there is nothing to compare the trials by; name data to evaluate on")
        return outcome

    def tell(line):
        if is_chief:
            print(with_flags(line), flush=True)

    is_chief = is_chief_by_environment()
    run_trials(settings.output_dir, search, run_changed, tell, is_chief)


def _search_of(settings):
    """Returns what the flags ask to try, None for a single run."""
    if not settings.trials:
        # The folders say a rate that is given.
        told = {} if settings.learning_rate is None else {"learning_rate": settings.learning_rate}
        return Search({}, settings.num_trials, settings.random_seed, told) if settings.num_trials > 1 else None
    if "://" in settings.output_dir or not is_alone_by_environment():
        raise InputError("--trials needs one machine with --output_dir on its own disk; --num_trials alone does not")
    tried = {}
    for part in settings.trials:
        name, distribution = _parse(part)
        if name in tried:
            raise InputError(f"--trials={part}: {name} is there twice; name each setting once")
        if name in settings.given:
            raise InputError(f"--trials={part}: --{name}={getattr(settings, name)} is fixed; leave one of them out")
        if not hasattr(distribution, "choices") and settings.num_trials == 1:
            raise InputError(f"--trials={part} is a range; say how many trainings to draw from it with --num_trials")
        tried[name] = distribution
    if "num_train_steps" in tried and ("num_train_epochs" in settings.given or "num_train_epochs" in tried):
        raise InputError("--trials=num_train_steps: the number of steps follows from num_train_epochs; leave one out")
    return Search(tried, settings.num_trials, settings.random_seed)


def _parse(part):
    """Returns the setting of a part of --trials, such as learning_rate:1e-4..1e-3, and its distribution."""
    name, colon, text = part.strip().partition(":")
    if not (name and colon and text):
        raise InputError(
            f"--trials={part} must be a setting, a colon and its values, such as learning_rate:1e-4..1e-3 or "
            "num_train_epochs:2|4"
        )
    _check_name(name, part)
    distributions = import_optuna().distributions
    if ".." not in text:
        values = tuple(_value(name, each, part) for each in text.split("|"))
        if len(set(values)) < len(values):
            raise InputError(f"--trials={part}: a value is there twice; name each once")
        return name, distributions.CategoricalDistribution(values)
    low, high = (_value(name, each, part) for each in text.split("..", 1))
    if isinstance(low, (bool, str)):
        raise InputError(f"--trials={part}: a range is of numbers; list the values of {name}, as {name}:{low}|...")
    if not low < high:
        raise InputError(f"--trials={part} is an empty range; the lower end comes first")
    if name in _LOGARITHMIC and not low > 0:
        raise InputError(f"--trials={part}: {name} is drawn by its logarithm, so that the range must begin above 0")
    if isinstance(low, int):
        return name, distributions.IntDistribution(low, high)
    return name, distributions.FloatDistribution(low, high, log=name in _LOGARITHMIC)


def _check_name(name, part):
    known = [each for each in (*result_settings(), *_SEARCHED) if each in FLAGS and each not in _NOT_SEARCHED]
    if name not in known:
        listed = ", ".join(sorted(known))
        raise InputError(f"--trials={part}: {name} is not a setting that can be searched; these can: {listed}")


def _value(name, text, part):
    """Returns a value as the setting's flag has it."""
    try:
        value = FLAGS[name].parser.parse(text.strip())
    except (TypeError, ValueError) as error:
        raise InputError(f"--trials={part}: {name} can't be {text.strip() or 'nothing'} ({error})") from error
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"--trials={part}: {name} must be a number, not {value}")
    if name.endswith("learning_rate") and not 0 < value < 1:
        raise InputError(f"--trials={part}: {name} must be between 0 and 1, not {text.strip()}")
    return value
