"""What a run learns beside the model that it is for, such as ELECTRA's generator: a folder of its own."""

import os

import numpy as np
import tensorflow as tf

from albert_tf.checkpoint_files import AVERAGES_PREFIX, CheckpointReader, find_checkpoints, write_checkpoint
from albert_tf.files import write_json
from albert_tf.modeling.layers import named_variables
from albert_tf.modeling.pretrained import CONFIG_FILE, find_checkpoint
from albert_tf.objectives import Objective
from albert_tf.tokenization import Tokenizer
from albert_tf.training.run_folder.other_vocabulary import OtherVocabulary
from albert_tf.training.train_state import MAIN_MODEL, saved_variables


def further_variables(objective: Objective, models: dict[str, tf.keras.Model]) -> dict[str, tf.Variable]:
    """Returns what further models have of their own and learn, by its name in a checkpoint."""
    variables = saved_variables(objective, models)
    return {name: value for name, value in variables.items() if not name.startswith(f"{MAIN_MODEL}/")}


def load_further_models(
    init_checkpoint: str, variables: dict[str, tf.Variable], vocabulary: OtherVocabulary | None = None
) -> str:
    """Assigns what a checkpoint has of further models.

    Args:
        init_checkpoint: A checkpoint's path, or a folder; see `resolve_checkpoint`.
        variables: What `further_variables` returned.
        vocabulary: How to go on with another vocabulary; None for the one that the models were trained with.

    Returns:
        A line that says how many were loaded.
    """
    reader = CheckpointReader(find_checkpoint(init_checkpoint, "`init_checkpoint`"))
    names = {}
    for name in variables:
        averaged = f"{AVERAGES_PREFIX}{name}"
        names |= {name: averaged if averaged in reader.shapes else name} if name in reader.shapes else {}
    values = reader.read(names.values())
    loaded = 0
    for name, source in names.items():
        value = vocabulary.adapt(name, values[source]) if vocabulary else values[source]
        if [*value.shape] == variables[name].shape.as_list() and np.isfinite(value).all():
            variables[name].assign(value)
            loaded += 1
    of = ", ".join(dict.fromkeys(name.partition("/")[0] for name in variables))
    left = f", {len(variables) - loaded} are random" if loaded < len(variables) else ""
    return f"initial checkpoint: loaded {loaded} variables of the {of}{left}"


def write_further_models(
    folder: str, objective: Objective, models: dict[str, tf.keras.Model], tokenizer: Tokenizer | None, step: int
) -> list[str]:
    """Writes each further model that was learnt into a folder of the run as a model of its own; returns these folders.

    Args:
        folder: Of the run.
        objective: What was learnt.
        models: Its models.
        tokenizer: Of the data, None if it is not known.
        step: How many steps they were trained.
    """
    written = []
    for name, model in models.items():
        if name == MAIN_MODEL or name in objective.frozen_models:
            continue
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
                for file in tf.io.gfile.glob(f"{prefix}.*"):
                    tf.io.gfile.remove(file)
        written.append(path)
    return written
