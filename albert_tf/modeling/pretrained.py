"""Weights, config and names of a checkpoint that a model starts from."""

import collections.abc
import os
import typing
import warnings

import numpy as np
import tensorflow as tf

from albert_tf.base.checkpoint_files import (
    AVERAGES_PREFIX,
    ENCODER_FILE,
    MODEL_PREFIX,
    CheckpointReader,
    best_source,
    checkpoint_folder,
    describe_unfinished,
    find_beside_checkpoint,
    only_model,
    refuse_trials,
    resolve_checkpoint,
)
from albert_tf.base.errors import InputError
from albert_tf.base.files import gfile_for, read_json
from albert_tf.base.settings import check_types
from albert_tf.config import AlbertConfig
from albert_tf.modeling.kernels.attention import suited_attention
from albert_tf.modeling.kernels.flash_attention import ATTENTION_CHOICES
from albert_tf.modeling.kernels.rematerialization import REMATERIALIZATION_CHOICES
from albert_tf.modeling.layers import named_variables, with_albert_config

CONFIG_FILE = "albert_config.json"
# Beside a checkpoint: the names of its variables that are as random as they began, if there are any.
UNTRAINED_FILE, UNTRAINED = "untrained.json", "untrained"
# The beginning of the names of variables that a task adds to the encoder.
HEAD = "head/"
_HEAD_BIAS = f"{MODEL_PREFIX}{HEAD}dense/bias"


def load_weights(
    init_checkpoint: str,
    variables: dict[str, tf.Variable],
    source: str = "`init_checkpoint`",
    is_to_learn: bool = False,
    adapt: collections.abc.Callable[[str, np.ndarray], np.ndarray] | None = None,
) -> tuple[list[str], list[str], list[str]]:
    """Assigns variables from a checkpoint of ours, averaged weights (`AdamW.averages`) where it has them.

    With `is_to_learn`, never-trained variables, and a head of another shape, which was trained for another task, are
    left out. `adapt` maps a variable's name and its values in the checkpoint to those to assign.

    Returns the names that were loaded, those that were not in the checkpoint, and those that only the checkpoint has;
    variables that are left out are among both of the latter. An InputError, beginning with `source`, if there is no
    checkpoint, or it can't be read, has none of the variables, other shapes, or values that are not finite.
    """
    path = find_checkpoint(init_checkpoint, source)
    reader = CheckpointReader(path)
    shapes = reader.shapes
    in_checkpoint = {name.removeprefix(MODEL_PREFIX) for name in only_model(shapes)}
    names = {name: best_source(name, shapes) for name in variables if name in in_checkpoint}
    if is_to_learn:
        untrained = read_untrained(path)
        names = {
            name: full_name
            for name, full_name in names.items()
            if name not in untrained
            and (not name.startswith(HEAD) or shapes[full_name] == variables[name].shape.as_list())
        }
    if not names:
        raise InputError(
            f"{source}: {path} has none of this model's variables, which means that albert_tf did not write it"
        )
    if adapt is None:
        for name, full_name in names.items():
            _check_shape(name, shapes[full_name], variables[name], path, source)
    read = reader.read(names.values())
    values = {name: read[full_name] for name, full_name in names.items()}
    for name in names:
        if not np.isfinite(values[name]).all():
            raise InputError(
                f"{source}: {name} in {path} holds NaN or infinity, so training had diverged; use an earlier checkpoint"
            )
        if adapt is not None:
            values[name] = adapt(name, values[name])
            _check_shape(name, [*values[name].shape], variables[name], path, source)
    for name in names:
        # Those of a published model may be in half precision.
        variables[name].assign(values[name].astype(variables[name].dtype.as_numpy_dtype, copy=False))
    missing = [name for name in variables if name not in names]
    return list(names), missing, sorted(in_checkpoint - set(names))


def _check_shape(name, shape, variable, path, source):
    if shape != variable.shape.as_list():
        raise InputError(
            f"{source}: {name} has shape {shape} in {path} and {variable.shape.as_list()} in this model; use the "
            f"{CONFIG_FILE} that the checkpoint was made with"
        )


def read_untrained(checkpoint: str) -> set[str]:
    """Returns the names of a checkpoint's variables that were never trained, as far as its folder tells."""
    file = find_beside_checkpoint(checkpoint, UNTRAINED_FILE)
    if not file:
        return set()
    found = check_types(read_json(file, "the names of untrained variables"), {UNTRAINED: list[str]}, file)
    return set(found.get(UNTRAINED, ()))


def read_encoder_settings(folder: str) -> dict[str, typing.Any]:
    """Returns a folder's settings of vectors: "pooling", "normalize" and "max_seq_length", if it has them."""
    path = os.path.join(folder, ENCODER_FILE)
    if not gfile_for(folder).exists(path):
        return {}
    types = {"pooling": str, "normalize": bool, "max_seq_length": int}
    return check_types(read_json(path, "the settings of the encoder"), types, path)


def find_checkpoint(path: str, source: str) -> str:
    """Returns the checkpoint at a path, or a folder's best or newest; warns where training was not finished."""
    found = resolve_checkpoint(path)
    if found is None:
        refuse_trials(path)
        raise InputError(f"{source}: no checkpoint at {path}")
    if unfinished := describe_unfinished(path):
        warnings.warn(unfinished, stacklevel=2)
    return found


def read_config(path: str, source: str) -> AlbertConfig:
    """Returns the config beside a checkpoint, or in a folder; errors begin with `source`."""
    file = find_beside_checkpoint(path, CONFIG_FILE)
    if file is None:
        folder = checkpoint_folder(path)
        raise InputError(
            f"{source}: no {CONFIG_FILE} in {folder}; copy the one that the checkpoint was made with into it"
        )
    return AlbertConfig.from_json_file(file)


def read_num_labels(path: str, source: str) -> int:
    """Returns the number of outputs of a checkpoint's head; errors begin with `source`."""
    shapes = CheckpointReader(path).shapes
    if _HEAD_BIAS not in shapes:
        raise InputError(f"{source}: {path} has no head that shows the number of labels; pass num_labels")
    return shapes[_HEAD_BIAS][0]


def describe_loading(path: str, loaded: list[str], missing: list[str], unused: list[str]) -> str:
    """Describes the results of `load_weights` in a sentence."""
    averaged = any(name.startswith(AVERAGES_PREFIX) for name in CheckpointReader(path).shapes)
    text = f"{len(loaded)} variables{' (averaged weights)' if averaged else ''} from {path}"
    text += f", newly initialized: {list_parts(missing)}" if missing else ""
    return text + (f", not used: {list_parts(unused)}" if unused else "")


def list_parts(names: collections.abc.Iterable[str]) -> str:
    """Returns the parts of a model that variables belong to, such as "masked_lm_head, encoder/pooler"."""
    parts = ["/".join(name.split("/")[: 2 if name.startswith("encoder/") else 1]) for name in names]
    return ", ".join(dict.fromkeys(parts))


# The base class of all models: the config, `from_pretrained`, and the methods that Keras needs to save and export.


class AlbertModel(tf.keras.Model):
    """A model whose weights exist as soon as it does, because the config gives every shape.

    `config`, `remat`, `attention` and further arguments, and errors, are those of `AlbertEncoder`.
    """

    _ids_rank = 2  # the number of dimensions of input_ids
    reads_pooler = True  # whether outputs depend on the encoder's pooler
    _checkpoint_prefix = ""  # what checkpoints put before the names of `named_variables`

    def __init__(self, config: AlbertConfig, remat: str = "none", attention: str = "auto", **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.built = True
        if remat not in REMATERIALIZATION_CHOICES:
            raise ValueError(f"remat must be one of {', '.join(REMATERIALIZATION_CHOICES)}. Received: {remat}")
        if attention not in ATTENTION_CHOICES:
            raise ValueError(f"attention must be one of {', '.join(ATTENTION_CHOICES)}. Received: {attention}")
        self.config = config
        self._remat = remat
        self._attention = suited_attention(attention, config)

    @classmethod
    def from_pretrained(cls, path: str | os.PathLike, verbose: bool = True, **options) -> "AlbertModel":
        """Builds a model with the weights of a run, averaged ones where the run has them.

        Weights that the checkpoint lacks, such as the head of a new task, are initialized as in a new model.

        Args:
            path: The folder of a published model or of a run, whose best checkpoint on held-out data is taken, or a
                checkpoint's path without extension. The folder must hold albert_config.json.
            verbose: Whether to print which weights were in the checkpoint and which were not.
            **options: Of the constructor. `config` replaces the file, and `num_labels` defaults to that of the head in
                the checkpoint.

        Raises:
            InputError: There is no checkpoint or no config, or the checkpoint holds no part of this model or parts of
                other shapes.
        """
        source = f"{cls.__name__}.from_pretrained"
        checkpoint = find_checkpoint(os.fspath(path), source)
        if "config" not in options:
            options["config"] = read_config(checkpoint, source)
        model = cls(**cls._complete_options(options, checkpoint, source))
        variables = {f"{cls._checkpoint_prefix}{name}": value for name, value in named_variables(model).items()}
        result = load_weights(checkpoint, variables, source)
        if verbose:
            print(f"{cls.__name__}: {describe_loading(checkpoint, *result)}", flush=True)
        return model

    @classmethod
    def _complete_options(cls, options, checkpoint, source):
        """Adds to the constructor's options those that a checkpoint tells."""
        return options

    def get_config(self):
        """Returns the constructor's arguments, the config as a dictionary."""
        arguments = {"config": self.config.to_dict(), "remat": self._remat, "attention": self._attention}
        return {**super().get_config(), **arguments}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """Builds a model with new weights."""
        return cls(**with_albert_config(config))

    def summary(self, *args, **kwargs):
        """Prints layers, output shapes (not with Keras 2) and numbers of weights, as `tf.keras.Model.summary` does."""
        if hasattr(tf.keras, "Variable"):
            # Keras 3 knows the shapes of layers that were called on symbols, as in a functional model.
            for layer, *inputs in self._layers_with_inputs():
                layer(*inputs)
        super().summary(*args, **kwargs)

    def _layers_with_inputs(self):
        """Returns the layers that a summary shows, each with symbolic inputs."""
        ids = self._symbol(None, dtype="int32")
        # The encoder of every other model.
        return [(self.encoder, {"input_ids": ids}), *self.encoder._layers_with_inputs(), *self._heads_with_inputs()]

    def _heads_with_inputs(self):
        return []

    def _symbol(self, *shape, dtype=None):
        return tf.keras.Input(shape, dtype=dtype or self.compute_dtype)

    def export(self, filepath, *args, input_signature=None, **kwargs):
        """Writes a SavedModel to a folder; arguments as for `tf.keras.Model.export`.

        Args:
            input_signature: If None, int32 `input_ids`, `input_mask`, `segment_ids` and whatever else the model needs,
                of any batch size and length. Keras 2 knows no signatures and exports for the inputs that the model was
                called with.
        """
        if not hasattr(tf.keras, "Variable"):
            return super().export(filepath, *args, **kwargs)
        if input_signature is None:
            shapes = self._input_shapes()
            input_signature = [{name: tf.TensorSpec(shape, tf.int32, name) for name, shape in shapes.items()}]
        return super().export(filepath, *args, input_signature=input_signature, **kwargs)

    def _input_shapes(self):
        """Returns the shapes of an exported model's int32 inputs, by name."""
        return dict.fromkeys(("input_ids", "input_mask", "segment_ids"), [None] * self._ids_rank)
