"""The additional models of a run, such as ELECTRA's generator, each in a folder of its own."""

import collections.abc
import os

import numpy as np
import tensorflow as tf

from albert_tf.checkpoint_files import (
    AVERAGES_PREFIX,
    CheckpointReader,
    delete_checkpoint,
    find_checkpoints,
    write_checkpoint,
)
from albert_tf.errors import InputError
from albert_tf.files import write_json
from albert_tf.modeling.layers import named_variables
from albert_tf.modeling.pretrained import CONFIG_FILE, find_checkpoint, list_parts
from albert_tf.objectives import Objective
from albert_tf.tokenization import Tokenizer
from albert_tf.training.run_folder.other_vocabulary import OtherVocabulary
from albert_tf.training.train_state import MAIN_MODEL, saved_variables


def further_models(objective: Objective, models: dict[str, tf.keras.Model]) -> dict[str, tf.keras.Model]:
    """Returns the models that were learnt beside the main one, by name; those that only aid it are left out."""
    left = (MAIN_MODEL, *objective.frozen_models, *objective.auxiliary_models)
    return {name: model for name, model in models.items() if name not in left}


def further_variables(objective: Objective, models: dict[str, tf.keras.Model]) -> dict[str, tf.Variable]:
    """Returns the variables that the additional models have of their own, by name in a checkpoint."""
    variables = saved_variables(objective, models)
    return {name: value for name, value in variables.items() if not name.startswith(f"{MAIN_MODEL}/")}


def load_further_models(
    init_checkpoint: str,
    variables: dict[str, tf.Variable],
    followed: collections.abc.Set[str] = frozenset(),
    vocabulary: OtherVocabulary | None = None,
    complete_for: str | None = None,
) -> str:
    """Assigns a checkpoint's values to the variables that `further_variables` returned; returns a line about them.

    They are loaded all, or none where some are missing or of another size; those that are `followed` may be missing, as
    they have the values of their followers. `complete_for` is the run's folder if the models are to be used as they
    are, so that nothing may be missing or left.
    """
    path = find_checkpoint(init_checkpoint, "`init_checkpoint`")
    reader = CheckpointReader(path)
    prefixes = {f"{name.partition('/')[0]}/": None for name in variables}
    models = ", ".join(prefix[:-1] for prefix in prefixes)
    # Such as the embeddings of a generator that shares the model's from now on.
    left = list_parts(
        name.partition("/")[2]
        for name in sorted(reader.shapes)
        if name.startswith(tuple(prefixes)) and name not in variables
    )
    sources = {
        name: next(filter(reader.shapes.__contains__, (f"{AVERAGES_PREFIX}{name}", name)), None) for name in variables
    }
    read = reader.read([source for source in sources.values() if source])
    values = {name: read[source] for name, source in sources.items() if source}
    needed = [name for name in variables if name in values or name not in followed]
    if vocabulary:
        values = {name: vocabulary.adapt(name, value) for name, value in values.items()}
    unfit = [name for name in needed if name not in values or [*values[name].shape] != variables[name].shape.as_list()]
    if unfit and complete_for is not None:
        raise InputError(
            f"`output_dir={complete_for}` holds no run, and `init_checkpoint={init_checkpoint}` lacks {unfit[0]}, or "
            "has it in another size, which can't be used untrained; check `output_dir`, or pass `do_train`"
        )
    if unfit:
        why = "is not in it" if not values else "in it has another size or lacks a part"
        return f"initial checkpoint: the {models} {why}, and so begins at random"
    if left and complete_for is not None:
        raise InputError(
            f"`init_checkpoint={init_checkpoint}` has {left} of its {models}, which this run would do without; give it "
            "the settings of the run that wrote it, or pass `do_train`"
        )
    for name, value in values.items():
        if not np.isfinite(value).all():
            raise InputError(
                f"`init_checkpoint`: {name} in {path} holds NaN or infinity, so training had diverged; use an "
                "earlier checkpoint"
            )
    for name, value in values.items():
        variables[name].assign(value.astype(variables[name].dtype.as_numpy_dtype, copy=False))
    told = f"initial checkpoint: loaded {len(values)} variables of the {models}"
    return f"{told}; left, because the model's take their place: {left}" if left else told


def write_further_models(
    folder: str, objective: Objective, models: dict[str, tf.keras.Model], tokenizer: Tokenizer | None, step: int
) -> list[str]:
    """Writes each further model that was learnt into a folder of the run, as one of its own; returns these."""
    written = []
    for name, model in further_models(objective, models).items():
        path = os.path.join(folder, name)
        tf.io.gfile.makedirs(path)
        write_json(os.path.join(path, CONFIG_FILE), model.config.to_dict())
        if tokenizer is not None:
            tokenizer.save(path)
        earlier = find_checkpoints(path)
        values = {f"{MAIN_MODEL}/{key}": value.numpy() for key, value in named_variables(model).items()}
        checkpoint = os.path.join(path, f"model.ckpt-{step}")
        write_checkpoint(checkpoint, {**values, "global_step": step})
        for prefix in earlier:
            if os.path.basename(prefix) != os.path.basename(checkpoint):
                delete_checkpoint(prefix)
        written.append(path)
    return written
