"""The scores of a linear model on the dev file of a run: a fine-tuned model should do better."""

import collections.abc
import dataclasses
import hashlib
import importlib.util
import json
import os
import typing
import warnings

import numpy as np
import tensorflow as tf

from albert_tf.base.console import RESULTS
from albert_tf.base.errors import InputError
from albert_tf.base.files import read_json, write_json
from albert_tf.base.settings import check_types
from albert_tf.finetuning.linear_models import LinearModel
from albert_tf.finetuning.task import FinetuningTask
from albert_tf.training import TrainingRun

LINEAR_FILE = "linear_scores.json"
# How far a score may be off is told by the jackknife, which leaves out a group of examples at a time.
# Each is scored anew; of so many the error is known to about a tenth of itself.
_MOST_GROUPS = 40


@dataclasses.dataclass(frozen=True)
class LinearScores:
    """The scores of a linear model."""

    name: str
    scores: dict[str, float]  # On the dev file, by the names of the measures.
    replicates: list[float]  # Of the measure that selects, as `replicates` returns them.
    trained_on: int  # Of how many examples of the training file.
    of: int  # How many that file has.

    def __str__(self) -> str:
        share = f"{self.trained_on:,} of the {self.of:,}" if self.trained_on < self.of else f"the {self.of:,}"
        return f"{self.name}, trained on {share} examples"


# Those of the trials of one command, which have their files in common.
_in_this_process: dict[str, LinearScores] = {}


def linear_scores(run: TrainingRun, train_file: typing.Any, dev_file: typing.Any) -> LinearScores | None:
    """Returns the scores of the task's linear model; None where there is none, or in a worker that writes nothing.

    The run's folder keeps them for the `EncodedFile`s that they are of; a training file of None asks for those that are
    kept. Where scikit-learn fails, a line says why, and the run goes on.
    """
    model = run.objective.linear_model()
    if model is None or not run.is_chief:
        return None
    path = os.path.join(run.output_dir, LINEAR_FILE)
    if train_file is None:
        return _read(path, _key(run.objective, model, None, dev_file))
    key = _key(run.objective, model, train_file, dev_file)
    found = _read(path, key) or _in_this_process.get(key["all"])
    if found is None:
        if importlib.util.find_spec("sklearn") is None:
            run.log(f"{model.name} can't be scored without scikit-learn; pip install scikit-learn", RESULTS)
            return None
        try:
            found = compute_linear_scores(run.objective, model, train_file.examples, dev_file.examples)
        except Exception as error:  # whatever it is, the run has its own results to tell
            run.log(f"{model.name} can't be scored: {type(error).__name__}: {error}", RESULTS)
            return None
    _in_this_process[key["all"]] = found
    write_json(path, {**key, **dataclasses.asdict(found)})
    return found


def compute_linear_scores(
    task: FinetuningTask, model: LinearModel, train: list[typing.Any], dev: list[typing.Any]
) -> LinearScores:
    """Trains a linear model on as many of the examples as take seconds, and scores it."""
    lengths = [len(task.text_and_label(example)[0]) for example in train]
    chosen = choose_share(lengths, model.most_characters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is not quite at its best is no matter
        predictions = model.predict([train[index] for index in chosen], dev)
        scores = {name: float(score) for name, score in task.score(dev, predictions).items()}
        without_groups = list(map(float, replicates(task.score, dev, predictions, task.selection_metric)))
    return LinearScores(model.name, scores, without_groups, len(chosen), len(train))


def choose_share(lengths: list[int], most: int) -> list[int]:
    """Returns, ascending, which texts to take: all, or as many as have `most` characters together, one at least."""
    # The random order is the same for every seed of the training, so that trials are compared with one number.
    if sum(lengths) <= most:
        return list(range(len(lengths)))
    order = np.random.default_rng(0).permutation(len(lengths))
    count = int(np.searchsorted(np.cumsum(np.array(lengths)[order]), most, side="right"))
    return sorted(order[: max(1, count)].tolist())


def _key(task, model, train_file, dev_file):
    """Returns digests of the files, measures and model that scores belong to."""
    of_task = [type(task).__name__, task.settings(), task.selection_metric, model.name, model.most_characters]
    data = {"task": of_task, "dev_file": dev_file.identity["sha256"]}
    if train_file is None:
        return {"dev": _sha256(data)}
    return {"dev": _sha256(data), "all": _sha256({**data, "train_file": train_file.identity["sha256"]})}


def _sha256(value):
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _read(path, key):
    """Returns the scores in a file, None if there are none of this key; what is no such file is computed anew."""
    if not tf.io.gfile.exists(path):
        return None
    types = {"name": str, "scores": dict[str, float], "replicates": list[float], "trained_on": int, "of": int}
    try:
        values = check_types(read_json(path, "the scores of the linear model"), types, path, tuple(types))
    except InputError:
        return None
    if any(values.get(name) != value for name, value in key.items()):
        return None
    return LinearScores(**{name: values[name] for name in types})


def replicates(
    score: collections.abc.Callable[[list[typing.Any], list[typing.Any]], dict[str, float]],
    examples: list[typing.Any],
    predictions: list[typing.Any],
    metric: str,
) -> list[float]:
    """Returns the score without each of up to 40 groups of the examples; an empty list where there is no such score."""
    # The groups are the same for all predictions of the same examples, so that differences can be compared in pairs.
    if len(examples) < 2 or metric not in score(examples, predictions):
        return []
    order = np.random.default_rng(0).permutation(len(examples))
    found = []
    for group in np.array_split(order, min(_MOST_GROUPS, len(examples))):
        kept = np.setdiff1d(order, group)
        found.append(score([examples[row] for row in kept], [predictions[row] for row in kept])[metric])
    return found


def standard_error(found: collections.abc.Sequence[float]) -> float:
    """Returns the standard error of a score, or of a difference of two, from its replicates (Efron 1982, ch. 3)."""
    values = np.asarray(found, np.float64)
    return float(np.sqrt((len(values) - 1) * values.var()))
