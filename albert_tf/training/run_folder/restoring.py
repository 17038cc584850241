"""Where a run's weights come from, besides its newest checkpoint, and those of models that it does not change."""

import collections.abc
import os

import numpy as np
import tensorflow as tf

from albert_tf.base.checkpoint_files import (
    AVERAGES_PREFIX,
    BEST_FILE,
    CheckpointReader,
    delete_checkpoint,
    find_beside_checkpoint,
    find_best_checkpoint,
    find_checkpoints,
    write_checkpoint,
)
from albert_tf.base.errors import InputError
from albert_tf.base.files import read_json, write_json
from albert_tf.config import AlbertConfig
from albert_tf.modeling.layers import named_variables
from albert_tf.modeling.pretrained import CONFIG_FILE, HEAD, find_checkpoint, list_parts, load_weights, read_untrained
from albert_tf.objectives import Objective
from albert_tf.tokenization import Tokenizer, load_tokenizer
from albert_tf.tokenization.tokenizer import TOKENIZER_FILE, VOCABULARY_FILE
from albert_tf.tokenization.vocabulary import Vocabulary
from albert_tf.training.run_folder.guard import SETTINGS_FILE, read_settings
from albert_tf.training.run_folder.other_vocabulary import OtherVocabulary
from albert_tf.training.train_state import MAIN_MODEL, saved_variables

# Which state a head reads a piece off, by whether its model is causal.
_STATE_READ = {False: "the state of a masked piece", True: "the state before the next piece"}
# Of a head whose outputs may have names.
_OUTPUT_LAYER = ("head/dense/kernel", "head/dense/bias")


def require_best_checkpoint(output_dir: str) -> str:
    """Returns the path of the checkpoint that did best on held-out data."""
    path = find_best_checkpoint(output_dir)
    if path is not None:
        return path
    best_file = os.path.join(output_dir, BEST_FILE)
    if not tf.io.gfile.exists(best_file):
        raise InputError(f"`eval_checkpoint=best`: there is no {best_file}; a run with `do_eval` writes it")
    name = read_json(best_file, "the best checkpoint").get("checkpoint")
    raise InputError(f"`eval_checkpoint=best`: {best_file} names {name}, which is not in its folder")


def load_init_checkpoint(
    init_checkpoint: str,
    variables: dict[str, tf.Variable],
    complete_for: str | None = None,
    untouched: tuple[str, ...] = (),
    vocabulary: OtherVocabulary | None = None,
    objective: Objective | None = None,
) -> tuple[str, list[str]]:
    """Assigns a checkpoint's values to a model's variables; returns a line about it, and the names that stay random.

    `complete_for` is the run's folder if the model is to be used as it is, so that nothing may be missing; `untouched`
    are prefixes of variables that the training won't depend on. The objective tells whether a head is for the same;
    None takes any of its shape.
    """
    order = objective and _order_of_head(init_checkpoint, objective)
    is_of_other = objective is not None and order is None
    head = {name for name in variables if is_of_other and name.startswith(HEAD)}
    loaded, missing, unused = load_weights(
        init_checkpoint,
        {name: variable for name, variable in variables.items() if name not in head},
        is_to_learn=complete_for is None,
        adapt=_adapted(vocabulary, order) if vocabulary or order else None,
    )
    missing = [name for name in variables if name in missing or name in head]
    if complete_for is not None and head.intersection(unused):
        what = f"is for another task or other labels, as {SETTINGS_FILE} beside it says"
        raise _unfit(
            complete_for, f"the head in `init_checkpoint={init_checkpoint}` {what}; give the labels of that head"
        )
    if complete_for is not None and missing:
        what = f"lacks {missing[0]}, which can't be used untrained"
        raise _unfit(complete_for, f"`init_checkpoint={init_checkpoint}` {what}; check `output_dir`")
    # What a model is told and never learns has its values from elsewhere.
    has_values = [*loaded, *(name for name in missing if not variables[name].trainable)]
    missing = [name for name in missing if variables[name].trainable]
    left_out = [name for name in missing if name in unused]
    parts = {
        "new, from random weights": [name for name in missing if name not in left_out],
        "not used here": [name for name in unused if name not in left_out],
        "of another task there, so from random weights here": [name for name in left_out if name.startswith(HEAD)],
        "never trained there, so from random weights here": [
            name for name in left_out if not name.startswith((HEAD, *untouched))
        ],
    }
    told = [f"{what}: {', '.join(_shortest(names, has_values))}" for what, names in parts.items() if names]
    told += [vocabulary.describe()] if vocabulary else []
    return "; ".join([f"initial checkpoint: loaded {len(loaded)} variables", *told]), missing


def _unfit(folder, what):
    """Returns the error of a model that is to be used as it is, and can't be."""
    return InputError(f"`output_dir={folder}` holds no run, and {what}, or pass `do_train`")


def _order_of_head(init_checkpoint, objective):
    """Returns the order of the head's outputs; () where nobody knows what the head is for."""
    path = find_beside_checkpoint(init_checkpoint, SETTINGS_FILE)
    if path is None:
        return ()
    return objective.order_of_head(read_settings(os.path.dirname(path)) or {}, path)


def _adapted(vocabulary, order):
    """Returns a function that adapts values: rows of another vocabulary, outputs of a head in another order."""

    def adapt(name, values):
        if order and name in _OUTPUT_LAYER:
            return values[..., list(order)]
        return vocabulary.adapt(name, values) if vocabulary else values

    return adapt


def _shortest(names, others):
    """Returns the names, each cut to the first part under which there are no others: "head", "encoder/pooler"."""
    known = {name[:end] for name in others for end, character in enumerate(name) if character == "/"}

    def cut(name):
        parts = name.split("/")
        prefixes = ("/".join(parts[:count]) for count in range(1, len(parts)))
        return next((prefix for prefix in prefixes if prefix not in known), name)

    return dict.fromkeys(map(cut, names))


def describe_alignment(
    init_checkpoint: str, model: tf.keras.Model, missing: list[str], complete_for: str | None = None
) -> str | None:
    """Returns a line if a model reads tokens off other states than its checkpoint did; an InputError if `complete_for`.

    `missing` is as `load_init_checkpoint` returned it.
    """
    path = find_beside_checkpoint(init_checkpoint, CONFIG_FILE)
    has_head = getattr(model, "masked_lm_head", None) is not None
    if path is None or not has_head or any(name.startswith("masked_lm_head/") for name in missing):
        return None
    then, now = (_STATE_READ[config.is_causal] for config in (AlbertConfig.from_json_file(path), model.config))
    if then == now:
        return None
    if complete_for is not None:
        what = f"reads {then}, where this model reads {now}; check is_causal in `albert_config_file`"
        raise _unfit(complete_for, f"the head in `init_checkpoint={init_checkpoint}` {what}")
    return f"initial checkpoint: its masked-LM head has learnt to read {then}, and learns now to read {now}"


def check_is_told(model: tf.keras.Model) -> None:
    """Raises InputError if a config says that a model knows entities, and nothing has told it which."""
    fusion = getattr(getattr(model, "encoder", None), "entity_fusion", None)
    if fusion is not None and not fusion.knows_names:
        raise InputError(
            f"the model has entities (num_entities={model.config.num_entities}), but nothing says which; start "
            "from a model that knows them with `init_checkpoint`, or remove num_entities and all keys that begin "
            "with entity_ from `albert_config_file`"
        )


def check_tokenizer(tokenizer: Tokenizer | None, checkpoint: str | None) -> None:
    """Checks that a tokenizer is the one that a checkpoint was trained with, as far as both are known."""
    path = find_beside_checkpoint(checkpoint, TOKENIZER_FILE)
    if path and tokenizer is not None and not tokenizer.is_saved_as(path):
        raise InputError(
            f"the checkpoint beside {path} was trained with that tokenizer, which is not the one of "
            f"{tokenizer.vocabulary.source}; use the tokenizer beside the checkpoint"
        )


def load_frozen_models(
    objective: Objective, models: dict[str, tf.keras.Model], tokenizer: Tokenizer | None = None
) -> None:
    """Assigns the weights of frozen models whose folders the objective names.

    An InputError if a folder holds no such model, lacks some of its weights or never trained them, or has other tokens
    than the tokenizer, where that is known.
    """
    for name, folder in objective.frozen_models.items():
        if not folder:
            continue
        source, model = f"`{name}={folder}`", models[name]
        if tokenizer is not None:
            _check_pieces(folder, source, model, tokenizer)
        path = find_checkpoint(folder, source)
        prefix = model._checkpoint_prefix
        variables = {f"{prefix}{key}": variable for key, variable in named_variables(model).items()}
        _, missing, _ = load_weights(path, variables, source)
        untrained = [key for key in variables if key in read_untrained(path)]
        if missing or untrained:
            what = f"lacks {missing[0]}" if missing else f"has never trained {untrained[0]}"
            raise InputError(f"{source} {what}, so there is nothing to learn from it; use another model")


def _check_pieces(folder, source, model, tokenizer):
    """Checks that a model knows the pieces of the data by the same ids."""
    path = find_beside_checkpoint(folder, TOKENIZER_FILE)
    without_settings = None if path else find_beside_checkpoint(folder, VOCABULARY_FILE)
    if path is None and without_settings is None:
        model.config.check_vocabulary(tokenizer.vocabulary)
        return
    known = load_tokenizer(os.path.dirname(path)).vocabulary if path else Vocabulary.from_file(without_settings)
    if known.pieces != tokenizer.vocabulary.pieces:
        raise InputError(
            f"{source} has a different vocabulary from the data, which both models read piece by piece; make "
            f"the data with the vocabulary of {os.path.dirname(path or without_settings)}"
        )


def further_models(objective: Objective, models: dict[str, tf.keras.Model]) -> dict[str, tf.keras.Model]:
    """Returns the models that were learnt beside the main one, by name, such as ELECTRA's generator.

    Those that only aid it are left out.
    """
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
        what = f"lacks {unfit[0]}, or has it in another size, which can't be used untrained"
        raise _unfit(complete_for, f"`init_checkpoint={init_checkpoint}` {what}; check `output_dir`")
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
