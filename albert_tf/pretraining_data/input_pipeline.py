"""TFRecord shards to batches, in an order that follows from the seed alone."""

import collections.abc
import dataclasses

import numpy as np
import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.pretraining_data import records
from albert_tf.pretraining_data.records import count_records, look_through

# The source, such as a language, that each example of each batch is drawn from: a function of seed and step.
#
# So a resumed run draws the same, and nothing needs to be saved. How many examples of each source were read before
# a step follows from drawing all steps before it once more.

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


_SHUFFLE_BUFFER = 10_000
_SHARDS_PER_GROUP = 8
_RECORDS_PER_TURN = 16  # records read from one shard before the next shard of its group has its turn

# What random numbers are drawn for; each use has its own seed.
_HOSTS, _SHARDS, _EXAMPLES, _BATCHES, _SOURCES = range(5)


@dataclasses.dataclass(frozen=True)
class InputOptions:
    max_seq_length: int
    max_predictions_per_seq: int
    is_static: bool  # whether the records hold masks
    # Those that their packing declares.
    features: collections.abc.Mapping[str, int | None] = dataclasses.field(default_factory=dict)


# Makes the batch that an objective learns from: given the features of records, as `parse` returns them, and a seed,
# int64 [2], for what is drawn for it.
Prepare = collections.abc.Callable[[dict[str, tf.Tensor], tf.Tensor], dict[str, tf.Tensor]]


@tf.autograph.experimental.do_not_convert  # takes seconds before the first batch, and nothing here needs it
def train_dataset(
    paths: list[str],
    options: InputOptions,
    prepare: Prepare,
    global_batch_size: int,
    seed: int,
    start_step: int = 0,
    host_index: int = 0,
    num_hosts: int = 1,
    examples_per_shard: list[int] | None = None,
    mixture: Mixture | None = None,
) -> tf.data.Dataset:
    """Returns one host's endless batches of shuffled examples, `global_batch_size` / `num_hosts` each, as prepared.

    Batch n of a host is always the same, masks included, for the same shards in the same order, options, batch size,
    seed and number of hosts, whatever machine reads it and wherever one starts. So `global_step` is the whole position:
    no state of the reader needs to be saved. Starting at a step opens no earlier shards except those of its own group
    (see below), whose records are read up to the step but not parsed.

    In each epoch every shard is read by one of the hosts, whole, and so every example exactly once. The hosts take
    turns: in every `num_hosts` epochs each of them reads every shard once. A host starts its next epoch as soon as it
    finishes one, so batches cross the borders of epochs, and no example is dropped or repeated to fill a batch. The
    order of a host's shards is drawn anew in every epoch; every 8 in a row form a group, whose records are interleaved
    and shuffled. Every batch is prepared with a seed of its own.

    With a mixture this is the order of each source's shards, which end their epochs independently, and the mixture says
    which source an example is taken from.

    Starting at a step without `examples_per_shard` reads all shards through to count them. Raises InputError if the
    batch can't be divided by the hosts, there are fewer shards than hosts, or counting found a damaged shard.
    """
    if global_batch_size % num_hosts:
        raise InputError(
            f"`train_batch_size={global_batch_size}` must be a multiple of the number of hosts, {num_hosts}"
        )
    batch_size = global_batch_size // num_hosts
    if start_step:
        examples_per_shard = examples_per_shard or count_records(paths)
    if mixture is None:
        examples = _examples(paths, examples_per_shard, start_step * batch_size, seed, host_index, num_hosts)
    else:
        with tf.device("CPU:0"):  # where datasets run
            seed_of_sources = _derive_seed(seed, _SOURCES)
        draws = seed_of_sources, start_step, global_batch_size, host_index, num_hosts
        streams = []
        for source, first in enumerate(mixture.count(*draws)):
            own = [place for place, each in enumerate(mixture.sources) if each == source]
            counts = examples_per_shard and [examples_per_shard[place] for place in own]
            # An order of its own, also where there are as many shards.
            seed_of_source = seed + (source << 32)
            own_paths = [paths[place] for place in own]
            streams.append(_examples(own_paths, counts, first, seed_of_source, host_index, num_hosts))
        examples = tf.data.Dataset.choose_from_datasets(streams, mixture.dataset(*draws))
    batches = examples.batch(batch_size, drop_remainder=True)

    def prepare_step(step, serialized):
        return prepare(parse(serialized, options), _derive_seed(seed, _BATCHES, step, host_index))

    prepared = batches.enumerate(start_step).map(prepare_step, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
    return prepared.prefetch(tf.data.AUTOTUNE)


def _examples(paths, examples_per_shard, first, seed, host_index, num_hosts):
    """Returns one host's endless records of some shards, from its example of that number on."""
    if len(paths) < num_hosts:
        raise InputError(
            f"{len(paths)} shards are too few for {num_hosts} hosts, each of which needs at least one; make more with "
            "create_pretraining_data.py --num_shards"
        )
    order = _Order(seed, len(paths), host_index, num_hosts)
    first_epoch, groups_done, examples_done = order.find(first, examples_per_shard) if first else (0, 0, 0)

    def groups_of(epoch):
        groups = tf.data.Dataset.from_tensor_slices(order.shards_of(epoch)).batch(_SHARDS_PER_GROUP)
        return groups.map(lambda shards: (epoch, shards))

    def examples_of(epoch, shards):
        # Inside a dataset's function this sets the seed of that function alone. Without it the program's global seed
        # would change the order, and a global seed of 0 would fail below: tf.data takes no tensor with it.
        tf.random.set_seed(1)
        files = tf.data.Dataset.from_tensor_slices(tf.gather(tf.constant(paths), shards))
        examples = files.interleave(
            tf.data.TFRecordDataset,
            cycle_length=_SHARDS_PER_GROUP,
            block_length=_RECORDS_PER_TURN,
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )
        return examples.shuffle(_SHUFFLE_BUFFER, seed=order.shuffle_seed(epoch, shards))

    groups = tf.data.Dataset.counter(first_epoch).flat_map(groups_of).skip(groups_done)
    return groups.flat_map(examples_of).skip(examples_done)


@dataclasses.dataclass(frozen=True)
class _Order:
    """The order in which one host reads shards; a function of its attributes and of the epoch."""

    seed: int
    num_shards: int
    host_index: int
    num_hosts: int

    def shards_of(self, epoch):
        """Returns the indices of this host's shards of an epoch, in order, int32 [shards of this host]."""
        dealt = _permutation(self.num_shards, _derive_seed(self.seed, _HOSTS, epoch // self.num_hosts))
        own = dealt[(self.host_index + epoch) % self.num_hosts :: self.num_hosts]
        return tf.gather(own, _permutation(tf.size(own), _derive_seed(self.seed, _SHARDS, epoch)))

    def shuffle_seed(self, epoch, shards):
        """Returns the seed of the order of examples in a group, an int64 scalar."""
        return tf.random.stateless_uniform(
            [], _derive_seed(self.seed, _EXAMPLES, epoch, shards[0]), minval=None, maxval=None, dtype=tf.int64
        )

    def find(self, example, examples_per_shard):
        """Returns (epoch, group, place in it) of this host's example of that number, counted from 0."""
        # After this many examples a host has read every shard once more, whatever their order.
        times, place = divmod(example, sum(examples_per_shard))
        epoch = times * self.num_hosts
        borders = self._group_borders(epoch, examples_per_shard)
        while place >= borders[-1]:
            place -= borders[-1]
            epoch += 1
            borders = self._group_borders(epoch, examples_per_shard)
        group = int(np.searchsorted(borders, place, side="right")) - 1
        return epoch, group, place - borders[group]

    def _group_borders(self, epoch, examples_per_shard):
        """Returns how many examples of an epoch this host has read before each group, and after the last."""
        with tf.device("CPU:0"):  # where datasets run, so that the same numbers are drawn
            shards = self.shards_of(tf.constant(epoch, tf.int64)).numpy()
        ends = np.cumsum(np.array(examples_per_shard)[shards])
        return [0, *ends[_SHARDS_PER_GROUP - 1 : -1 : _SHARDS_PER_GROUP].tolist(), int(ends[-1])]


def _permutation(size, seed):
    draws = tf.random.stateless_uniform([size], seed, minval=None, maxval=None, dtype=tf.int32)
    return tf.argsort(draws, stable=True)


def _derive_seed(seed, use, *numbers):
    """Returns the seed of one use, epoch or step, and so on, int64 [2]."""
    derived = tf.constant([seed, use], tf.int64)
    for number in numbers:
        derived = tf.random.fold_in(derived, tf.cast(number, tf.int64))
    return derived


@tf.autograph.experimental.do_not_convert
def eval_dataset(paths: list[str], options: InputOptions, prepare: Prepare, global_batch_size: int) -> tf.data.Dataset:
    """Returns every example once, in order, always prepared alike; zeros, of weight zero, fill up the last batch."""
    batches = tf.data.TFRecordDataset(paths).batch(global_batch_size).enumerate()

    def prepare_batch(number, serialized):
        features = prepare(parse(serialized, options), tf.stack([tf.constant(0, tf.int64), number]))
        return pad_batch(features, global_batch_size)

    prepared = batches.map(prepare_batch, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
    return prepared.prefetch(tf.data.AUTOTUNE)


def pad_batch(features: dict[str, tf.Tensor], batch_size: int) -> dict[str, tf.Tensor]:
    """Fills a short last batch up with zeros, also in the weights of examples and of masked pieces."""

    def pad(values):
        missing = batch_size - tf.shape(values)[0]
        padded = tf.pad(values, [[0, missing]] + [[0, 0]] * (values.shape.rank - 1))
        return tf.ensure_shape(padded, [batch_size, *values.shape[1:]])

    return {name: pad(values) for name, values in features.items()}


def parse(serialized: tf.Tensor, options: InputOptions) -> dict[str, tf.Tensor]:
    """Returns the features of a batch of records, as `records.feature_spec` has them, with int32 for int64."""
    num_predictions = options.max_predictions_per_seq if options.is_static else None
    spec = records.feature_spec(options.max_seq_length, num_predictions, options.features)
    if options.is_static:
        del spec["token_boundary"]  # the original's older shards lack it, and only masking needs it
    parsed = tf.io.parse_example(serialized, spec)
    return {name: tf.cast(values, tf.int32) if values.dtype == tf.int64 else values for name, values in parsed.items()}


def check_readable(paths: collections.abc.Sequence[str], options: InputOptions) -> None:
    """Raises InputError if the first record of a shard doesn't have the lengths and masks of the options."""

    def check(path):
        if records.is_static(path) != options.is_static:
            raise InputError(
                f"{path} is {'not ' * options.is_static}masked, unlike {paths[0]}; read one kind at a time"
            )
        try:
            parse(records.first_record(path), options)
        except tf.errors.InvalidArgumentError as error:
            raise InputError(
                f"{path} doesn't hold examples of `max_seq_length={options.max_seq_length}` and "
                f"`max_predictions_per_seq={options.max_predictions_per_seq}`; give both the values that the "
                "shards were made with"
            ) from error

    look_through(check, paths)
