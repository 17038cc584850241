"""The run's folder while it trains: held by one run, and the same for all of its workers."""

import collections.abc
import contextlib
import time

import tensorflow as tf

from albert_tf.errors import InputError, first_line
from albert_tf.training.devices.workers import Agreement
from albert_tf.training.run_folder.lease import Lease, lease_token

_SECONDS_UNTIL_SEEN = 60.0  # what one machine writes to a shared folder may be seen later by another


@contextlib.contextmanager
def hold_folder(
    output_dir: str, agreement: Agreement, is_chief: bool
) -> collections.abc.Iterator[collections.abc.Callable[[], None]]:
    """Keeps other runs out of a folder; yields a function that raises InputError if it was lost.

    Args:
        output_dir: The folder.
        agreement: Of the workers, all of which must come here.
        is_chief: Whether this worker is the one that writes.

    Raises:
        InputError: Another run has it, it can't be written to, or it is not the same folder for all workers.
    """
    lease = Lease(output_dir, "training")

    def acquire():
        if is_chief:
            with naming_output_dir(output_dir):
                stack.enter_context(lease)

    with contextlib.ExitStack() as stack:
        agreement.run(acquire)
        token = agreement.of_chief(int(lease.token, 16))
        agreement.run(lambda: is_chief or _wait_for_lease(output_dir, token))
        yield lease.check if is_chief else lambda: None


def check_same_step(output_dir: str, agreement: Agreement, step: int) -> None:
    """Checks that all workers have restored the same step.

    Raises:
        InputError: They have not.
    """
    if agreement.any(step != agreement.of_chief(step)):
        raise InputError(
            f"--output_dir={output_dir}: the workers found checkpoints of different steps there, this one of step "
            f"{step:,}; give one folder that all of them can read, such as gs://..."
        )


@contextlib.contextmanager
def naming_output_dir(output_dir: str) -> collections.abc.Iterator[None]:
    """Turns the error of a folder that can't be written to into one sentence."""
    try:
        yield
    except tf.errors.OpError as error:
        reason = first_line(error)
        raise InputError(f"can't write to --output_dir={output_dir}: {reason}") from error


def _wait_for_lease(output_dir, token):
    end = time.monotonic() + _SECONDS_UNTIL_SEEN
    while int(lease_token(output_dir) or "0", 16) != token:
        if time.monotonic() > end:
            raise InputError(
                f"--output_dir={output_dir} is not the folder that the first worker writes to; give one that all "
                "workers can read, such as gs://..."
            )
        time.sleep(0.5)
