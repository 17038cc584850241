"""The source, such as a language, that each example of each batch is drawn from: a function of seed and step.

So a resumed run draws the same, and nothing needs to be saved. How many examples of each source were read before a step
follows from drawing all steps before it once more.
"""

import dataclasses

import numpy as np
import tensorflow as tf

_STEPS_PER_BLOCK = 256  # drawn at once


@dataclasses.dataclass(frozen=True)
class Mixture:
    sources: tuple[int, ...]  # of each shard the number of its source, from 0
    shares: tuple[float, ...]  # how often a source is drawn when it is its turn; those of one turn add up to 1
    # The sources that are drawn from in one step, then those of the next, and so on from the first again.
    turns: tuple[tuple[int, ...], ...]
    is_one_a_batch: bool = False  # whether all examples of a batch are of one source

    @property
    def frequencies(self) -> list[float]:
        return [share / len(self.turns) for share in self.shares]

    def draw(self, seed: tf.Tensor, block: tf.Tensor, batch_size: int) -> tf.Tensor:
        """Returns the sources of a block of 256 steps over all hosts, int64 [256, B]; the seed is int64 [2]."""
        width = 1 if self.is_one_a_batch else batch_size
        draws = tf.random.stateless_uniform([_STEPS_PER_BLOCK, width], tf.random.fold_in(seed, block))
        turns = (block * _STEPS_PER_BLOCK + tf.range(_STEPS_PER_BLOCK, dtype=tf.int64)) % len(self.turns)
        limits = tf.gather(tf.constant(self._limits()), turns)
        chosen = tf.reduce_sum(tf.cast(draws[:, :, None] >= limits[:, None, :], tf.int64), axis=2)
        return tf.broadcast_to(chosen, [_STEPS_PER_BLOCK, batch_size])

    def dataset(self, seed: tf.Tensor, start_step: int, batch_size: int, host_index: int, num_hosts: int):
        """Returns a dataset of the sources of one host's examples, int64 scalars, from a step on."""
        block, done = divmod(start_step, _STEPS_PER_BLOCK)

        def draw(number):
            return tf.data.Dataset.from_tensor_slices(self.draw(seed, number, batch_size)[:, host_index::num_hosts])

        return tf.data.Dataset.counter(block).flat_map(draw).skip(done).unbatch()

    def count(self, seed: tf.Tensor, end_step: int, batch_size: int, host_index: int, num_hosts: int) -> list[int]:
        counts = np.zeros(len(self.shares), np.int64)
        with tf.device("CPU:0"):  # where datasets run, so that the same numbers are drawn
            for block in range(-(-end_step // _STEPS_PER_BLOCK)):
                drawn = self.draw(seed, tf.constant(block, tf.int64), batch_size)[:, host_index::num_hosts]
                drawn = drawn[: end_step - block * _STEPS_PER_BLOCK]
                counts += np.bincount(drawn.numpy().ravel(), minlength=len(counts))
        return counts.tolist()

    def _limits(self):
        """Returns the draws from which on a later source is taken, float32 [turns, sources]."""
        limits = np.zeros([len(self.turns), len(self.shares)])
        for turn, sources in enumerate(self.turns):
            limits[turn, list(sources)] = [self.shares[source] for source in sources]
            limits[turn] = limits[turn].cumsum()
            limits[turn, max(sources) :] = 2.0  # whatever is drawn is less
        return limits.astype(np.float32)
