"""The weights of models that a run learns from and does not change, such as a teacher."""

import os

import tensorflow as tf

from albert_tf.checkpoint_files import find_beside_checkpoint
from albert_tf.errors import InputError
from albert_tf.modeling.layers import named_variables
from albert_tf.modeling.pretrained import find_checkpoint, load_weights, read_untrained
from albert_tf.objectives import Objective
from albert_tf.tokenization import Tokenizer, load_tokenizer
from albert_tf.tokenization.base import TOKENIZER_FILE
from albert_tf.tokenization.tokenizer import VOCABULARY_FILE
from albert_tf.tokenization.vocabulary import Vocabulary


def load_frozen_models(
    objective: Objective, models: dict[str, tf.keras.Model], tokenizer: Tokenizer | None = None
) -> None:
    """Assigns the weights of frozen models, as far as the objective says where they lie.

    Args:
        objective: What is learnt.
        models: Its models.
        tokenizer: What the data is encoded with, whose pieces each model must have; None if it is not known.

    Raises:
        InputError: A folder holds no such model, lacks some of its weights or never trained them, or is of another
            vocabulary.
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
