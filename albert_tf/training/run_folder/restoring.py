"""Where a run's weights come from, besides its newest checkpoint, and those of models that it does not change."""

import os

import tensorflow as tf

from albert_tf.checkpoint_files import BEST_FILE, find_beside_checkpoint, find_best_checkpoint
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.files import read_json
from albert_tf.modeling.layers import named_variables
from albert_tf.modeling.pretrained import CONFIG_FILE, HEAD, find_checkpoint, load_weights, read_untrained
from albert_tf.objectives import Objective
from albert_tf.tokenization import Tokenizer, load_tokenizer
from albert_tf.tokenization.tokenizer import TOKENIZER_FILE, VOCABULARY_FILE
from albert_tf.tokenization.vocabulary import Vocabulary
from albert_tf.training.run_folder.guard import SETTINGS_FILE, read_settings
from albert_tf.training.run_folder.other_vocabulary import OtherVocabulary

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
        raise InputError(
            f"`output_dir={complete_for}` holds no run, and the head in `init_checkpoint={init_checkpoint}` is for "
            f"another task or other labels, as {SETTINGS_FILE} beside it says; give the labels of that head, or pass "
            "`do_train`"
        )
    if complete_for is not None and missing:
        raise InputError(
            f"`output_dir={complete_for}` holds no run, and `init_checkpoint={init_checkpoint}` lacks {missing[0]}, "
            "which can't be used untrained; check `output_dir`, or pass `do_train`"
        )
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
        raise InputError(
            f"`output_dir={complete_for}` holds no run, and the head in `init_checkpoint={init_checkpoint}` reads "
            f"{then}, where this model reads {now}; check is_causal in `albert_config_file`, or pass `do_train`"
        )
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
