"""Saving and restoring a run, and starting one from the weights of another."""

import os

import tensorflow as tf

from albert_tf.errors import InputError

CHECKPOINT_NAME = "model.ckpt"

_MODEL_PREFIX = "model/"
_VALUE_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"


class Checkpointer:
    """Writes numbered checkpoints into a folder, keeps the newest, and restores them.

    Variables are stored under the names of `named_variables`: "model/encoder/...".

    Args:
        output_dir: The folder.
        variables: The model's variables, by name.
        global_step: The step counter, an int64 variable.
        optimizer: The optimizer, whose moments are stored as well; None to restore a model only.
        keep_checkpoint_max: How many to keep.
    """

    def __init__(
        self,
        output_dir: str,
        variables: dict[str, tf.Variable],
        global_step: tf.Variable,
        optimizer: tf.Module | None = None,
        keep_checkpoint_max: int = 5,
    ):
        tracked = {"model": _nest(variables), "global_step": global_step}
        if optimizer is not None:
            tracked["first_moments"] = _nest(optimizer.first_moments)
            tracked["second_moments"] = _nest(optimizer.second_moments)
        self._variables, self._optimizer = variables, optimizer
        self._checkpoint = tf.train.Checkpoint(**tracked)
        self._global_step = global_step
        self._manager = tf.train.CheckpointManager(
            self._checkpoint, output_dir, max_to_keep=keep_checkpoint_max, checkpoint_name=CHECKPOINT_NAME
        )

    @property
    def latest(self) -> str | None:
        """Path of the newest checkpoint, None if there is none."""
        return self._manager.latest_checkpoint

    def save(self) -> str:
        """Writes a checkpoint named after the step and returns its path."""
        return self._manager.save(checkpoint_number=int(self._global_step.numpy()))

    def restore_latest(self) -> bool:
        """Restores the newest checkpoint whole; returns whether there was one.

        Raises:
            InputError: It holds another model.
        """
        if self.latest is None:
            return False
        own_shapes = {name: variable.shape.as_list() for name, variable in self._variables.items()}
        if _model_shapes(tf.train.load_checkpoint(self.latest)) != own_shapes:
            raise InputError(
                f"{self.latest} is of another model; use the albert_config.json and the labels that it was made with"
            )
        status = self._checkpoint.restore(self.latest).assert_existing_objects_matched()
        if self._optimizer is None:
            status.expect_partial()
        return True


def load_weights(init_checkpoint: str, variables: dict[str, tf.Variable]) -> tuple[list[str], list[str]]:
    """Assigns those variables that a checkpoint of ours also has.

    Args:
        init_checkpoint: A checkpoint's path without extension, or a folder, of which the newest is taken.
        variables: Variables to assign, by name.

    Returns:
        The names that were loaded, and those that were not in the checkpoint.

    Raises:
        InputError: There is no such checkpoint, it has none of the variables, or a shape differs.
    """
    path = tf.train.latest_checkpoint(init_checkpoint) if tf.io.gfile.isdir(init_checkpoint) else init_checkpoint
    try:
        reader = tf.train.load_checkpoint(path) if path else None
    except (tf.errors.OpError, ValueError):
        reader = None
    if reader is None:
        raise InputError(f"--init_checkpoint: no checkpoint at {init_checkpoint}")
    shapes = _model_shapes(reader)
    loaded = [name for name in variables if name in shapes]
    for name in loaded:
        if shapes[name] != variables[name].shape.as_list():
            raise InputError(
                f"--init_checkpoint: {name} has shape {shapes[name]} in {path} and "
                f"{variables[name].shape.as_list()} in this model; use the albert_config.json that the checkpoint was "
                "made with"
            )
    if not loaded:
        raise InputError(
            f"--init_checkpoint: {path} has none of this model's variables, which means that albert_tf did not write it"
        )
    for name in loaded:
        variables[name].assign(reader.get_tensor(f"{_MODEL_PREFIX}{name}{_VALUE_SUFFIX}"))
    return loaded, [name for name in variables if name not in shapes]


def find_beside_checkpoint(init_checkpoint: str | None, name: str) -> str | None:
    """Returns the path of a file in the folder of a checkpoint, None if there is none."""
    if not init_checkpoint:
        return None
    folder = init_checkpoint if tf.io.gfile.isdir(init_checkpoint) else os.path.dirname(init_checkpoint)
    path = os.path.join(folder, name)
    return path if tf.io.gfile.exists(path) else None


def _model_shapes(reader):
    """Returns the shape of each of the model's variables in a checkpoint, by the name it has in the model."""
    return {
        key.removeprefix(_MODEL_PREFIX).removesuffix(_VALUE_SUFFIX): shape
        for key, shape in reader.get_variable_to_shape_map().items()
        if key.startswith(_MODEL_PREFIX)
    }


def _nest(named):
    """Turns {"a/b": x} into {"a": {"b": x}}: a checkpoint keeps one level of names for each level of dictionaries."""
    nested = {}
    for name, value in named.items():
        *parents, last = name.split("/")
        level = nested
        for parent in parents:
            level = level.setdefault(parent, {})
        level[last] = value
    return nested
