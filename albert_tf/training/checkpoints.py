"""Saving a run while it goes on, and restoring it from the newest checkpoint that is whole."""

import concurrent.futures
import os
import re
import sys

import numpy as np
import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.files import write_text

CHECKPOINT_NAME = "model.ckpt"
MODEL_PREFIX = "model/"
AVERAGES_PREFIX = "averages/"
BEST_FILE = "best_checkpoint.json"

_VALUE_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"
_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"

# What TensorFlow's reader raises, depending on where it meets the damage.
_READING_ERRORS = (tf.errors.OpError, ValueError, IndexError, RuntimeError)


class Checkpointer:
    """Writes numbered checkpoints into a folder, in the background, keeps the newest, and restores them.

    A checkpoint is a `tf.train.Checkpoint` whose variables have the names given here. Saving copies the variables to
    the host, which is all that training waits for; a thread writes the copy. TensorFlow writes under temporary names
    and moves the index into place last, so that a checkpoint with an index is whole, unless the disk lost some of it.

    Args:
        output_dir: The folder.
        state: Everything to save, by name: "model/encoder/...", "first_moments/...", "global_step", ...
        keep_checkpoint_max: How many to keep.
        is_chief: Whether this process is the one that writes.
    """

    def __init__(
        self, output_dir: str, state: dict[str, tf.Variable], keep_checkpoint_max: int = 5, is_chief: bool = True
    ):
        self._output_dir = output_dir
        self._state = dict(state)
        self._keep_checkpoint_max, self._is_chief = keep_checkpoint_max, is_chief
        self._pool = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._pending: concurrent.futures.Future | None = None
        self._pending_path: str | None = None
        self.best: str | None = None  # path of a checkpoint to keep in any case

    def path(self, step: int) -> str:
        """Returns the path, without extension, of the checkpoint of a step."""
        return os.path.join(self._output_dir, f"{CHECKPOINT_NAME}-{step}")

    @property
    def latest(self) -> str | None:
        """Path of the newest checkpoint, None if there is none."""
        return next(reversed(find_checkpoints(self._output_dir)), None)

    def save(self) -> str:
        """Copies the variables, starts to write them to a checkpoint named after the step, and returns its path.

        Raises:
            InputError: The checkpoint before this one could not be written.
        """
        path = self.path(int(self._state["global_step"].numpy()))
        if path == self._pending_path or not self._is_chief:
            return path
        values = {name: variable.numpy() for name, variable in self._state.items()}
        self.wait()
        self._pending_path = path
        self._pending = self._pool.submit(self._write, path, values)
        return path

    def check(self) -> None:
        """Raises what went wrong with a checkpoint that has been written in the meantime, without waiting.

        Raises:
            InputError: It could not be written.
        """
        if self._pending is not None and self._pending.done():
            self.wait()

    def wait(self) -> None:
        """Waits until the last checkpoint is written.

        Raises:
            InputError: It could not be written.
        """
        pending, self._pending = self._pending, None
        if pending is None:
            return
        try:
            pending.result()
        except (tf.errors.OpError, OSError) as error:
            failed, self._pending_path = self._pending_path, None
            intact = self.latest
            kept = f"{intact} is intact" if intact else "none was written before"
            raise InputError(
                f"can't save {failed}: {_first_line(error)}; {kept}; free some space or choose another --output_dir, "
                "and repeat the command to go on from there"
            ) from error

    def _write(self, path, values):
        with tf.device("CPU:0"):
            copies = {name: tf.Variable(value) for name, value in values.items()}
            try:
                tf.train.Checkpoint(**_nest(copies)).write(path)
            except (tf.errors.OpError, OSError):
                _delete(path)  # half a checkpoint takes the space that the user has to free
                raise
        self._delete_older(path)
        _write_index(self._output_dir)

    def _delete_older(self, newest):
        # Those of later steps are damaged, or the run would not stand here: none of them is worth a whole one.
        found = find_checkpoints(self._output_dir)
        for path in found[: found.index(newest) + 1][: -self._keep_checkpoint_max]:
            if path != self.best:
                _delete(path)

    def restore_latest(self) -> str | None:
        """Restores the newest checkpoint that is whole, with a warning for each newer one that is not.

        Returns:
            The path of the checkpoint, None if there is none.

        Raises:
            InputError: It holds another model, or there are checkpoints of which none is whole.
        """
        found = find_checkpoints(self._output_dir)
        damage = ""
        for path in reversed(found):
            try:
                self.restore(path)
            except DamagedCheckpointError as error:
                damage = str(error)
                print(f"warning: {damage}; going back to the one before it", file=sys.stderr)
            else:
                return path
        if found:
            raise InputError(
                f"--output_dir={self._output_dir}: none of its {len(found)} checkpoints can be read ({damage}); "
                "choose another folder to start anew"
            )
        return None

    def restore(self, path: str) -> None:
        """Restores one checkpoint, all of it or nothing.

        A model that is not to be trained gets the averaged weights, if there are any.

        Raises:
            InputError: It holds another model, or lacks some of the state.
            DamagedCheckpointError: It can't be read to its end.
        """
        reader = _open(path)
        shapes = _shapes(reader)
        own = {name: variable.shape.as_list() for name, variable in self._state.items()}
        sources = {name: name for name in own}
        if not any(name.startswith(AVERAGES_PREFIX) for name in own):
            sources.update((name, _best_source(name.removeprefix(MODEL_PREFIX), shapes)) for name in _only_model(own))
        if _only_model(shapes) != _only_model(own):
            raise InputError(
                f"{path} is of another model; use the albert_config.json and the labels that it was made with"
            )
        missing = sorted(name for name in own if shapes.get(name) != own[name])
        if missing:
            raise InputError(
                f"{path} lacks {missing[0]} and so can't be gone on with by this command; give its folder to "
                "--init_checkpoint of a run in another folder"
            )
        values = _read(path, reader, sources.values())
        for name, source in sources.items():
            self._state[name].assign(values[source])
        self._pending_path = path

    def remove_leftovers(self) -> None:
        """Deletes what a run that was killed while it saved left behind; call it when no other run saves here."""
        if not self._is_chief or not tf.io.gfile.isdir(self._output_dir):
            return
        whole = {os.path.basename(path) for path in find_checkpoints(self._output_dir)}
        for name in tf.io.gfile.listdir(self._output_dir):
            match = re.match(rf"({re.escape(CHECKPOINT_NAME)}-\d+)(_temp|\.data-|\.index\.)", name)
            if match and (match[1] not in whole or match[2] != ".data-"):
                _remove(os.path.join(self._output_dir, name.rstrip("/")))


class DamagedCheckpointError(InputError):
    """A checkpoint can't be read to its end."""


def model_state(variables: dict[str, tf.Variable], global_step: tf.Variable) -> dict[str, tf.Variable]:
    """Returns what to restore of a model that is not to be trained, by the names that `TrainState` gives.

    Args:
        variables: The model's, by name.
        global_step: The number of steps done.
    """
    return {**{f"{MODEL_PREFIX}{name}": variable for name, variable in variables.items()}, "global_step": global_step}


def find_checkpoints(folder: str) -> list[str]:
    """Returns the paths, without extension, of the checkpoints in a folder, the oldest first."""
    found = {}
    if tf.io.gfile.isdir(folder):
        for name in tf.io.gfile.listdir(folder):
            match = re.fullmatch(rf"{re.escape(CHECKPOINT_NAME)}-(\d+)\.index", name)
            if match:
                found[int(match[1])] = os.path.join(folder, name.removesuffix(".index"))
    return [found[step] for step in sorted(found)]


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
    path = init_checkpoint
    if not tf.io.gfile.exists(f"{path}.index") and tf.io.gfile.isdir(path):
        path = next(reversed(find_checkpoints(init_checkpoint)), None) or tf.train.latest_checkpoint(init_checkpoint)
    if not path or not tf.io.gfile.exists(f"{path}.index"):
        raise InputError(f"--init_checkpoint: no checkpoint at {init_checkpoint}")
    reader = _open(path)
    shapes = _shapes(reader)
    in_checkpoint = {name.removeprefix(MODEL_PREFIX) for name in _only_model(shapes)}
    names = {name: _best_source(name, shapes) for name in variables if name in in_checkpoint}
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
    values = _read(path, reader, names.values())
    for name, full_name in names.items():
        variables[name].assign(values[full_name])
    missing = [name for name in variables if name not in names]
    return list(names), missing, sorted(in_checkpoint - set(names))


def find_beside_checkpoint(init_checkpoint: str | None, name: str) -> str | None:
    """Returns the path of a file in the folder of a checkpoint, None if there is none."""
    if not init_checkpoint:
        return None
    is_file = tf.io.gfile.exists(f"{init_checkpoint}.index") or not tf.io.gfile.isdir(init_checkpoint)
    folder = os.path.dirname(init_checkpoint) if is_file else init_checkpoint
    path = os.path.join(folder, name)
    return path if tf.io.gfile.exists(path) else None


def _open(path):
    try:
        # tf.train.load_checkpoint would take the path for a folder where a file system knows folders by prefix only.
        return tf.compat.v1.train.NewCheckpointReader(path)
    except _READING_ERRORS as error:
        raise DamagedCheckpointError(f"{path} is damaged: {_first_line(error)}") from error


def _read(path, reader, names) -> dict[str, np.ndarray]:
    """Returns values by name; TensorFlow compares each with its checksum."""
    try:
        # The description of the objects comes last in the file, so that a file that was cut is noticed in any case.
        if reader.has_tensor(_OBJECT_GRAPH):
            reader.get_tensor(_OBJECT_GRAPH)
        return {name: reader.get_tensor(f"{name}{_VALUE_SUFFIX}") for name in names}
    except _READING_ERRORS as error:
        raise DamagedCheckpointError(f"{path} is damaged: {_first_line(error)}") from error


def _shapes(reader):
    """Returns the shape of each variable in a checkpoint, by name."""
    return {
        key.removesuffix(_VALUE_SUFFIX): shape
        for key, shape in reader.get_variable_to_shape_map().items()
        if key.endswith(_VALUE_SUFFIX)
    }


def _best_source(name, shapes):
    """Returns the name under which a checkpoint has the best values of a model's variable."""
    averaged = f"{AVERAGES_PREFIX}{name}"
    return averaged if averaged in shapes else f"{MODEL_PREFIX}{name}"


def _only_model(by_name):
    return {name: value for name, value in by_name.items() if name.startswith(MODEL_PREFIX)}


def _first_line(error):
    message = getattr(error, "message", None) or str(error) or type(error).__name__
    return message.strip().splitlines()[0]


def _write_index(folder):
    """Writes the file that tf.train.latest_checkpoint(folder) reads, a protocol buffer as text."""
    names = [os.path.basename(path) for path in find_checkpoints(folder)]
    lines = [f'model_checkpoint_path: "{names[-1]}"', *(f'all_model_checkpoint_paths: "{name}"' for name in names)]
    write_text(os.path.join(folder, "checkpoint"), "\n".join(lines) + "\n")


def _delete(path):
    """Deletes a checkpoint; the index first, so that no half of it is ever taken for a whole."""
    for name in [f"{path}.index", *tf.io.gfile.glob(f"{path}.data-*"), *tf.io.gfile.glob(f"{path}_temp*")]:
        if tf.io.gfile.exists(name):
            _remove(name)


def _remove(path):
    if tf.io.gfile.isdir(path):
        tf.io.gfile.rmtree(path)
    else:
        tf.io.gfile.remove(path)


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
