"""Starting from weights that were trained before."""

import tensorflow as tf

from albert_tf.checkpoint_files import MODEL_PREFIX, CheckpointReader, best_source, only_model, resolve_checkpoint
from albert_tf.errors import InputError


def load_weights(init_checkpoint: str, variables: dict[str, tf.Variable]) -> tuple[list[str], list[str], list[str]]:
    """Assigns those variables that a checkpoint of ours also has.

    Where the checkpoint holds averaged weights (`AdamW.averages`), they are taken.

    Args:
        init_checkpoint: A checkpoint's path without extension, or a folder, of which the newest is taken.
        variables: Variables to assign, by name.

    Returns:
        The names that were loaded, those that were not in the checkpoint, and those in the checkpoint that this model
        does not have.

    Raises:
        InputError: There is no such checkpoint, it can't be read, it has none of the variables, or a shape differs.
    """
    path = resolve_checkpoint(init_checkpoint)
    if path is None:
        raise InputError(f"--init_checkpoint: no checkpoint at {init_checkpoint}")
    reader = CheckpointReader(path)
    shapes = reader.shapes
    in_checkpoint = {name.removeprefix(MODEL_PREFIX) for name in only_model(shapes)}
    names = {name: best_source(name, shapes) for name in variables if name in in_checkpoint}
    for name, full_name in names.items():
        if shapes[full_name] != variables[name].shape.as_list():
            raise InputError(
                f"--init_checkpoint: {name} has shape {shapes[full_name]} in {path} and "
                f"{variables[name].shape.as_list()} in this model; use the albert_config.json that the checkpoint was "
                "made with"
            )
    if not names:
        raise InputError(
            f"--init_checkpoint: {path} has none of this model's variables, which means that albert_tf did not write it"
        )
    values = reader.read(names.values())
    for name, full_name in names.items():
        variables[name].assign(values[full_name])
    missing = [name for name in variables if name not in names]
    return list(names), missing, sorted(in_checkpoint - set(names))
