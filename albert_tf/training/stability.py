"""Noticing that training goes wrong: steps that were skipped because loss or gradients were not finite."""

import io
import os

import numpy as np
import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.base.files import replacing
from albert_tf.optimization import AdamW


class DivergedError(InputError):
    """More steps were skipped than may be, because loss or gradients were not finite."""


class SkippedSteps:
    """Watches how many steps the optimizer skipped because loss or gradient was not finite."""

    def __init__(self, optimizer: AdamW, output_dir: str, max_skipped_steps: int):
        self._optimizer, self._output_dir, self._max_skipped_steps = optimizer, output_dir, max_skipped_steps
        self._known = int(optimizer.skipped_steps.numpy())

    def look(self) -> tuple[int, int] | None:
        """Returns how many steps were skipped in all and which one was last, if there are new ones, else None."""
        skipped = int(self._optimizer.skipped_steps.numpy())
        if skipped == self._known:
            return None
        self._known = skipped
        return skipped, self._last

    @property
    def _last(self):
        return int(self._optimizer.last_skipped_step.numpy())

    def batch_path(self, step: int) -> str:
        """Returns where the batch of a step is saved."""
        return os.path.join(self._output_dir, f"skipped_batch-{step}.npz")

    def save_batch(self, step: int, host_datasets: list[tf.data.Dataset]) -> None:
        """Saves the first batch of all hosts together, NumPy arrays by feature, for `numpy.load`."""
        parts = [next(iter(dataset.take(1).as_numpy_iterator())) for dataset in host_datasets]
        batch = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        buffer = io.BytesIO()  # because NumPy goes back in what it writes, which a GFile can't
        np.savez(buffer, **batch)
        with replacing(self.batch_path(step)) as file:
            file.write(buffer.getvalue())

    def stop_if_most(self, step: int) -> None:
        """Raises if most steps up to this one were skipped, so that little or nothing was learnt."""
        if self._known > step / 2:
            raise DivergedError(
                f"loss or gradients were not finite in {self._known:,} of {step:,} steps, so the weights are of no "
                f"use; the batch of the last of them is in {self.batch_path(self._last)}; lower `learning_rate`, or "
                "look for broken settings or examples"
            )

    def stop_if_too_many(self) -> None:
        """Raises if more steps were skipped than may be."""
        if self._known > self._max_skipped_steps:
            raise DivergedError(
                f"loss or gradients were not finite in {self._known} steps, the last of them step {self._last:,}, and "
                f"`max_skipped_steps` is {self._max_skipped_steps}; its batch is in {self.batch_path(self._last)}, and "
                "skipped steps have left the weights alone; lower `learning_rate`, or look for broken examples in the "
                "batch"
            )
