"""A lease on a folder: the file by which two processes, maybe on two machines, know that only one may work there."""

import contextlib
import json
import os
import secrets
import sys
import threading
import time

import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.training.run_folder.processes import is_alive_here, this_process

LEASE_FILE = "run.lease"

RENEW_SECONDS = 20.0
DEAD_SECONDS = 120.0  # without renewal
_POLL_SECONDS = 2.0  # between two looks at somebody else's lease
_SETTLE_SECONDS = 1.0  # until whoever wrote at the same time has written


class Lease:
    """Holds a folder for this process, as a context manager; a thread renews the lease until then.

    The holder's machine tells whether a holder on it is alive. One on another machine is dead when it has not renewed
    its lease for two minutes. Where creating a file is not atomic, the lease is read again after a moment: of two that
    wrote, the second has it.

    Args:
        folder: The folder, which is made if it is not there.
        purpose: What it is held for, such as "training"; named to others.

    Attributes:
        token: What tells this lease from all others, 15 hexadecimal digits.

    Raises:
        InputError: On entering: another process holds the folder.
    """

    def __init__(self, folder: str, purpose: str):
        self._folder, self._path = folder, os.path.join(folder, LEASE_FILE)
        self.token = f"{secrets.randbits(60):015x}"
        self._lease = {
            "purpose": purpose,
            **this_process(),
            "token": self.token,
            "started": time.time(),
        }
        self._ended, self._lock = threading.Event(), threading.Lock()
        self._lost_to: dict | None = None

    def __enter__(self):
        self._made_folder = not tf.io.gfile.isdir(self._folder)
        tf.io.gfile.makedirs(self._folder)
        try:
            self._acquire()
        except InputError:
            self._remove_own_folder()
            raise
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()
        with contextlib.suppress(tf.errors.OpError):
            if lease_token(self._folder) == self.token:
                tf.io.gfile.remove(self._path)
        self._remove_own_folder()

    def check(self) -> None:
        """Checks that the folder is still this process's; call it before writing there.

        Raises:
            InputError: Another process took it, because this one had not renewed its lease for too long.
        """
        if time.time() - self._lease["renewed"] > 2 * RENEW_SECONDS:
            self._renew()  # this process may have been stopped, and its thread with it
        if self._lost_to is not None:
            raise InputError(
                f"{self._folder} was taken over by another process ({_describe(self._lost_to)}) while this one did not "
                "answer; nothing more is written; see whether that process goes on"
            )

    def _acquire(self):
        if self._create():
            return
        holder = _read(self._path)
        if holder is not None and not self._is_dead(holder):
            raise InputError(
                f"{self._folder} is in use ({_describe(holder)}); wait until that process has ended, stop it, or "
                "choose another folder"
            )
        self._write()
        time.sleep(_SETTLE_SECONDS)
        now = _read(self._path)
        if now is None or now.get("token") != self.token:
            raise InputError(f"{self._folder} was taken at the same moment ({_describe(now or {})}); try again later")

    def _create(self):
        """Creates the file if that can be done atomically and it is not there; returns whether this was so."""
        if "://" in self._path:
            return False
        temporary = self._write(f"{self._path}.{self.token}")
        try:
            os.link(temporary, self._path)
        except OSError:
            return False  # it is there, or the file system knows no links
        finally:
            tf.io.gfile.remove(temporary)
        return True

    def _is_dead(self, holder):
        is_alive = is_alive_here(holder)
        if is_alive is not None:
            return not is_alive
        if time.time() - holder.get("renewed", time.time()) <= DEAD_SECONDS and self._is_renewed(holder):
            return False
        print(f"{self._folder}: takes over from a process that is gone ({_describe(holder)})", file=sys.stderr)
        return True

    def _is_renewed(self, holder):
        """Watches a lease until somebody writes it, or long enough to know that nobody does."""
        print(f"{self._folder}: waits for a sign of life ({_describe(holder)})", file=sys.stderr, flush=True)
        end = time.monotonic() + DEAD_SECONDS
        while time.monotonic() < end:
            time.sleep(_POLL_SECONDS)
            now = _read(self._path)
            if now != holder:
                return now is not None
        return False

    def _keep(self):
        while not self._ended.wait(RENEW_SECONDS) and self._lost_to is None:
            self._renew()

    def _renew(self):
        # A disk or a network may fail for a while.
        with self._lock, contextlib.suppress(tf.errors.OpError):
            now = _read(self._path)
            if now is None or now.get("token") != self.token:
                self._lost_to = now or {}
            else:
                self._write()

    def _write(self, path=None):
        """Writes the lease, as of now, and returns its path."""
        path = path or self._path
        self._lease["renewed"] = time.time()
        temporary = f"{path}.{self.token}.temporary"
        with tf.io.gfile.GFile(temporary, "w") as file:
            file.write(json.dumps(self._lease, indent=2) + "\n")
        tf.io.gfile.rename(temporary, path, overwrite=True)
        return path

    def _remove_own_folder(self):
        with contextlib.suppress(tf.errors.OpError):
            if self._made_folder and not tf.io.gfile.listdir(self._folder):
                tf.io.gfile.rmtree(self._folder)


def lease_token(folder: str) -> str | None:
    """Returns the token of the lease on a folder, None if there is none."""
    return (_read(os.path.join(folder, LEASE_FILE)) or {}).get("token")


def _read(path):
    """Returns what a lease holds, empty if it can't be understood, None if there is none."""
    try:
        with tf.io.gfile.GFile(path) as file:
            lease = json.loads(file.read())
    except tf.errors.NotFoundError:
        return None
    except ValueError:
        return {}
    return lease if isinstance(lease, dict) else {}


def _describe(holder):
    def age(name):
        return f"{max(0, round(time.time() - holder[name]))} s ago" if name in holder else "at an unknown time"

    return (
        f"{holder.get('purpose', 'unknown')}, by process {holder.get('pid')} on {holder.get('host')}, started "
        f"{age('started')} and last alive {age('renewed')}"
    )
