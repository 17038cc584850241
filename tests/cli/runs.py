"""Folders of runs of the training scripts: looked into, and written for others to begin from."""

import csv
import json
import pathlib
import shutil

import numpy as np
import tensorflow as tf

from albert_tf.base.checkpoint_files import write_checkpoint
from albert_tf.modeling.layers import named_variables
from albert_tf.training.progress import METRICS_FILE

_VALUE_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"


def read_results(folder: pathlib.Path) -> dict[str, float]:
    """Returns what eval_results.json holds."""
    return json.loads((folder / "eval_results.json").read_text())


def variables_in(checkpoint: str | pathlib.Path) -> dict[str, np.ndarray]:
    """Returns every array of a checkpoint, by name."""
    reader = tf.train.load_checkpoint(str(checkpoint))
    keys = [key for key in reader.get_variable_to_shape_map() if key.endswith(_VALUE_SUFFIX)]
    return {key.removesuffix(_VALUE_SUFFIX): reader.get_tensor(key) for key in keys}


def assert_same_variables(checkpoint: str | pathlib.Path, other: str | pathlib.Path) -> None:
    """Checks that two checkpoints hold the same, bit for bit."""
    variables, others = variables_in(checkpoint), variables_in(other)
    assert variables.keys() == others.keys()
    for name, values in variables.items():
        np.testing.assert_array_equal(values, others[name], err_msg=name)


def metrics_without_rates(folder: pathlib.Path) -> list[dict]:
    """Returns the rows of metrics.jsonl as they are, without what depends on the speed of the machine."""
    rows = [json.loads(line) for line in (folder / METRICS_FILE).read_text().splitlines()]
    return [{name: value for name, value in row.items() if not name.endswith("_per_second")} for row in rows]


def assert_same_run(folder: pathlib.Path, other: pathlib.Path, num_train_steps: int) -> None:
    """Checks that two runs ended with the same variables and measured the same on the way, bit for bit."""
    assert_same_variables(folder / f"model.ckpt-{num_train_steps}", other / f"model.ckpt-{num_train_steps}")
    assert metrics_without_rates(folder) == metrics_without_rates(other)


def stopped_copy(run: pathlib.Path, copy: pathlib.Path, step: int) -> pathlib.Path:
    """Copies a run as if it had ended before it saved a step, its last."""
    shutil.copytree(run, copy)
    for path in [*copy.glob(f"model.ckpt-{step}*"), *copy.glob("best*"), *copy.glob("generator/*")]:
        path.unlink()
    rows = (copy / METRICS_FILE).read_text().splitlines(keepends=True)
    (copy / METRICS_FILE).write_text("".join(row for row in rows if json.loads(row)["step"] < step))
    return copy


def write_model(folder: pathlib.Path, model, tokenizer) -> pathlib.Path:
    """Writes a model as it is, with its config and a tokenizer, as a run leaves them."""
    variables = {f"model/{name}": variable.numpy() for name, variable in named_variables(model).items()}
    write_checkpoint(str(folder / "model.ckpt-0"), {**variables, "global_step": 0})
    (folder / "albert_config.json").write_text(json.dumps(model.config.to_dict()))
    tokenizer.save(folder)
    return folder


def read_rows(path: pathlib.Path) -> list[dict[str, str]]:
    """Returns the lines of a tab-separated file as dictionaries."""
    return list(csv.DictReader(path.read_text().splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))
