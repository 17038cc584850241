"""Saving a run while it goes on, and restoring it from the newest checkpoint that is whole."""

import concurrent.futures
import os
import re
import sys

import tensorflow as tf

from albert_tf.base.checkpoint_files import (
    AVERAGES_PREFIX,
    CHECKPOINT_NAME,
    MODEL_PREFIX,
    CheckpointReader,
    DamagedCheckpointError,
    delete_checkpoint,
    find_checkpoints,
    named_newest,
    newest_checkpoint,
    only_model,
    write_checkpoint,
    write_state_file,
)
from albert_tf.base.errors import InputError, first_line
from albert_tf.base.files import remove


class Checkpointer:
    """Writes numbered checkpoints into a folder, in the background, keeps the newest, and restores them.

    A checkpoint is a `tf.train.Checkpoint` whose variables have the names given here, such as "model/encoder/..." and
    "global_step". Training waits only for the copy of the variables to the host; a thread writes it. TensorFlow writes
    under temporary names and moves the index into place last, so that a checkpoint with an index is whole, unless the
    disk lost some of it. Only the chief writes.
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
        return newest_checkpoint(self._output_dir)

    def save(self) -> str:
        """Copies the variables, starts to write them to a checkpoint named after the step, and returns its path.

        An InputError if the checkpoint before this one could not be written.
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
        """Raises what went wrong with a checkpoint that has been written in the meantime, without waiting."""
        if self._pending is not None and self._pending.done():
            self.wait()

    def wait(self) -> None:
        """Waits until the last checkpoint is written."""
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
                f"can't save {failed}: {first_line(error)}; {kept}; free some space or choose another `output_dir`, "
                "and repeat the command to continue from there"
            ) from error

    def _write(self, path, values):
        try:
            write_checkpoint(path, values)
        except (tf.errors.OpError, OSError):
            delete_checkpoint(path)  # half a checkpoint takes the space that the user has to free
            raise
        self._delete_older(path)
        write_state_file(self._output_dir, path)

    def _delete_older(self, newest):
        # Those of later steps are damaged, or the run would not stand here: none of them is worth a whole one.
        found = find_checkpoints(self._output_dir)
        for path in found[: found.index(newest) + 1][: -self._keep_checkpoint_max]:
            if path != self.best:
                delete_checkpoint(path)

    def restore_latest(self) -> str | None:
        """Restores the newest checkpoint that is whole, with a warning for each newer one, and returns its path if any.

        An InputError if it holds another model, or there are checkpoints of which none is whole.
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
                # It names a damaged one, or one before this where the run was killed in between.
                if self._is_chief and named_newest(self._output_dir) != path:
                    write_state_file(self._output_dir, path)
                return path
        if found:
            raise InputError(
                f"`output_dir={self._output_dir}`: none of its {len(found)} checkpoints can be read ({damage}); "
                "choose another folder to start anew"
            )
        return None

    def restore(self, path: str) -> None:
        """Restores one checkpoint, all of it or nothing; a DamagedCheckpointError if it can't be read to its end.

        A model that is not to be trained gets the averaged weights, if there are any. An InputError if it holds another
        model, or lacks some of the state, or has more of it.
        """
        reader = CheckpointReader(path)
        shapes = reader.shapes
        own = {name: variable.shape.as_list() for name, variable in self._state.items()}
        sources = {name: name for name in own}
        if not any(name.startswith(AVERAGES_PREFIX) for name in own):
            averages = {name: f"{AVERAGES_PREFIX}{name.removeprefix(MODEL_PREFIX)}" for name in own}
            sources.update((name, average) for name, average in averages.items() if average in shapes)
        if only_model(shapes) != only_model(own):
            raise InputError(f"{path} belongs to another model; use its albert_config.json and its labels")
        missing = sorted(name for name in own if shapes.get(name) != own[name])
        if missing:
            raise InputError(
                f"{path} lacks {missing[0]}, so this command can't resume it; begin another run with `init_checkpoint`"
            )
        # Such as the embeddings of a generator that another setting lets do without them.
        groups = {name.partition("/")[0] for name in own}
        left = sorted(name for name in shapes if name not in own and name.partition("/")[0] in groups)
        if left:
            raise InputError(f"{path} has {left[0]}, which this command does not use; repeat the run's settings")
        values = reader.read(sources.values())
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
                remove(os.path.join(self._output_dir, name.rstrip("/")))
