"""The run's folder while it trains: held by one run, and the same for all of its workers.

On one machine a lock keeps other commands out (`albert_tf.base.folders`); between machines there is none. So a run
leaves a file there that names it, and looks at it before it writes: a run that begins later on another machine takes
the folder over, and the former writes no more. That happens where a machine is taken away and ends after the next one
has begun. Both are the same run, or the second would be refused, and so go on with the same bits.
"""

import collections.abc
import contextlib
import os
import secrets
import socket
import sys
import time

import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.base.files import read_json, write_json
from albert_tf.base.folders import hold
from albert_tf.base.settings import check_types
from albert_tf.training.devices import Agreement

OWNER_FILE = ".run_owner.json"

_SECONDS_UNTIL_SEEN = 60.0  # what one machine writes to a shared folder may be seen later by another
_SECONDS_BETWEEN_LOOKS = 20.0


@contextlib.contextmanager
def hold_together(output_dir: str, agreement: Agreement, is_chief: bool) -> collections.abc.Iterator[None]:
    """Keeps other commands of this machine out of a folder."""
    with contextlib.ExitStack() as stack:
        agreement.run(lambda: stack.enter_context(hold(output_dir)) if is_chief else None)
        yield


@contextlib.contextmanager
def hold_folder(
    output_dir: str, agreement: Agreement, is_chief: bool
) -> collections.abc.Iterator[collections.abc.Callable[[], None]]:
    """Keeps other runs out of a folder, the same for all workers; yields a function that raises if one takes it."""
    with hold_together(output_dir, agreement, is_chief):
        owner = _Owner(output_dir)
        agreement.run(lambda: is_chief and owner.take_over())
        try:
            token = agreement.of_chief(owner.token)
            agreement.run(lambda: is_chief or _wait_for_owner(output_dir, token))
            yield owner.check if is_chief else lambda: None
        finally:
            if is_chief:
                owner.leave()


class _Owner:
    """The file by which a run on another machine takes the folder over."""

    def __init__(self, output_dir):
        self._output_dir, self._path = output_dir, os.path.join(output_dir, OWNER_FILE)
        self.token, self._looked_at = secrets.randbits(60), time.monotonic()

    def take_over(self):
        """Writes the file, whoever's it was, and says so if it was another machine's."""
        former, host = {}, socket.gethostname()
        with contextlib.suppress(InputError):  # whatever it holds, it is replaced
            former = _read(self._output_dir)
        write_json(self._path, {"host": host, "process": os.getpid(), "token": self.token})
        if former.get("host", host) != host:
            by = f"process {former['process']} on {former['host']}"
            print(
                f"warning: {self._output_dir} is taken over from {by}, which stops when it next looks at the folder; "
                "train on one machine at a time",
                file=sys.stderr,
                flush=True,
            )

    def check(self):
        """Raises InputError if it is another's by now; looks at it only now and then."""
        if time.monotonic() - self._looked_at < _SECONDS_BETWEEN_LOOKS:
            return
        self._looked_at = time.monotonic()
        with contextlib.suppress(tf.errors.OpError):  # a network may fail for a while
            owner = _read(self._output_dir)
            if owner.get("token") != self.token:
                by = f"process {owner['process']} on {owner['host']}" if owner else "a run that has ended"
                raise InputError(
                    f"{self._output_dir} was taken over by {by}; nothing more is written; check if that one still runs"
                )

    def leave(self):
        """Deletes the file if it is still this run's."""
        with contextlib.suppress(tf.errors.OpError, InputError):
            if _read(self._output_dir).get("token") == self.token:
                tf.io.gfile.remove(self._path)


def _read(output_dir):
    path, types = os.path.join(output_dir, OWNER_FILE), {"host": str, "process": int, "token": int}
    return check_types(read_json(path, "the owner"), types, path, types) if tf.io.gfile.exists(path) else {}


def check_same_step(output_dir: str, agreement: Agreement, step: int) -> None:
    """Checks that all workers have restored the same step."""
    if agreement.any(step != agreement.of_chief(step)):
        raise InputError(
            f"`output_dir={output_dir}`: the workers found checkpoints of different steps there, this one of step "
            f"{step:,}; give one folder that all of them can read, such as gs://..."
        )


def _wait_for_owner(output_dir, token):
    end = time.monotonic() + _SECONDS_UNTIL_SEEN
    while _read(output_dir).get("token") != token:
        if time.monotonic() > end:
            raise InputError(
                f"`output_dir={output_dir}` is not the folder that the first worker writes to; give one that all "
                "workers can read, such as gs://..."
            )
        time.sleep(0.5)
