"""Counts the records of TFRecord files and finds damaged ones, by the checksum that each record has."""

import collections.abc
import concurrent.futures
import contextlib

import tensorflow as tf

from albert_tf.base.console import ProgressLine
from albert_tf.base.errors import InputError

_RECORDS_AT_ONCE = 1024
_FILES_AT_ONCE = 8
_FRAME_BYTES = 16  # around a record: its length (8 bytes), and the checksums of length (4) and record (4)


def read_through(path: str) -> tuple[int, bool]:
    """Reads records up to the first damaged one; returns how many there are, and whether that is all of them."""
    try:
        num_records, num_bytes = _measure(path).numpy().tolist()
    except tf.errors.DataLossError:
        return _count_up_to_damage(path), False
    # TensorFlow takes the rest of a cut record for the end of the file if it is shorter than a frame.
    return num_records, num_bytes == tf.io.gfile.stat(path).length


@tf.function(input_signature=[tf.TensorSpec([], tf.string)])
@tf.autograph.experimental.do_not_convert  # takes long, and nothing here needs it
def _measure(path):
    """Returns how many records there are, and how many bytes they take up, int64 [2]."""

    def add(sums, batch):
        num_records = tf.size(batch, tf.int64)
        content = tf.reduce_sum(tf.cast(tf.strings.length(batch), tf.int64))
        return sums + tf.stack([num_records, num_records * _FRAME_BYTES + content])

    return tf.data.TFRecordDataset(path).batch(_RECORDS_AT_ONCE).reduce(tf.zeros([2], tf.int64), add)


def _count_up_to_damage(path):
    num_records = 0
    with contextlib.suppress(tf.errors.DataLossError):
        for _ in tf.data.TFRecordDataset(path):
            num_records += 1
    return num_records


def count_records(paths: collections.abc.Sequence[str]) -> list[int]:
    """Returns how many records each file holds; raises InputError if one is damaged."""
    readings = look_through(read_through, paths)
    refuse_damage(_name_damage(paths, readings))
    return [num_records for num_records, _ in readings]


def find_damage(paths: collections.abc.Sequence[str]) -> dict[str, str]:
    """Reads files through; returns the damaged ones, in order, and what is wrong with each."""
    return _name_damage(paths, look_through(read_through, paths))


def describe_damage(damage: dict[str, str]) -> str:
    return ", ".join(f"{path} ({reason})" for path, reason in damage.items())


def refuse_damage(damage: dict[str, str]) -> None:
    """Raises InputError, which names each file and what is wrong with it, if there are any."""
    if damage:
        raise InputError(
            f"damaged: {describe_damage(damage)}; copy the damaged files again from where they were made, or "
            "build them again with create_pretraining_data.py (run_pretraining.py --on_damaged_shard=skip "
            "leaves damaged training shards out)"
        )


@contextlib.contextmanager
def naming_damaged_shards(paths: collections.abc.Sequence[str]) -> collections.abc.Iterator[None]:
    """Names the damaged files if reading them fails, and the first such record, which TensorFlow doesn't do."""
    try:
        yield
    except tf.errors.DataLossError:
        refuse_damage(find_damage(paths))
        raise


def look_through(look: collections.abc.Callable, paths: collections.abc.Sequence[str]) -> list:
    """Returns the result of `look` for each file, several at once, and shows how far it is."""
    readings, progress = [], ProgressLine()
    with concurrent.futures.ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
        for reading in pool.map(look, paths):
            readings.append(reading)
            if progress.is_due:
                progress.show(f"looked for damage in {len(readings)} of {len(paths)} shards")
    progress.finish()
    return readings


def _name_damage(paths, readings):
    return {
        path: f"record {num_records + 1:,} can't be read"
        for path, (num_records, is_whole) in zip(paths, readings)
        if not is_whole
    }
