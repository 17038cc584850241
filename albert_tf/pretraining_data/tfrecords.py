"""TFRecord files as such: how many records they hold, and which of them are damaged.

Such a file keeps a checksum of each record, so whoever reads it through finds any byte that has changed since.
"""

import collections.abc
import concurrent.futures
import contextlib

import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.progress_line import ProgressLine

_RECORDS_AT_ONCE = 1024
_FILES_AT_ONCE = 8
_FRAME_BYTES = 16  # around a record: its length (8 bytes), and the checksums of length (4) and record (4)


def read_through(path: str) -> tuple[int, bool]:
    """Reads the records of a file up to the first damaged one.

    Returns:
        How many there are, and whether that is all of them.
    """
    num_records, num_bytes = 0, 0
    # Many at a time, because that is fast, until the damage is near; then one by one.
    for batch_size in (_RECORDS_AT_ONCE, 1):
        try:
            for batch in tf.data.TFRecordDataset(path).skip(num_records).batch(batch_size):
                num_records += len(batch)
                num_bytes += len(batch) * _FRAME_BYTES + int(tf.reduce_sum(tf.strings.length(batch)))
        except tf.errors.DataLossError:
            continue
        # TensorFlow takes what is left of a record for the end of the file if it is shorter than a frame.
        return num_records, num_bytes == tf.io.gfile.stat(path).length
    return num_records, False


def count_records(paths: collections.abc.Sequence[str]) -> list[int]:
    """Reads files through and returns how many records each of them holds.

    Raises:
        InputError: A record is damaged.
    """
    readings = _read_all_through(paths)
    refuse_damage(_name_damage(paths, readings))
    return [num_records for num_records, _ in readings]


def find_damage(paths: collections.abc.Sequence[str]) -> dict[str, str]:
    """Reads files through; returns the damaged ones, in order, and what is wrong with each."""
    return _name_damage(paths, _read_all_through(paths))


def describe_damage(damage: dict[str, str]) -> str:
    """Returns what `find_damage` returned as a part of a sentence."""
    return ", ".join(f"{path} ({reason})" for path, reason in damage.items())


def refuse_damage(damage: dict[str, str]) -> None:
    """Checks that `find_damage` found none.

    Raises:
        InputError: It did; names each file and what is wrong with it.
    """
    if damage:
        raise InputError(
            f"damaged: {describe_damage(damage)}; copy what is damaged once more from where it was made, or build it "
            "again with create_pretraining_data.py (--on_damaged_shard=skip leaves damaged training shards out)"
        )


@contextlib.contextmanager
def naming_damaged_shards(paths: collections.abc.Sequence[str]) -> collections.abc.Iterator[None]:
    """Says which file is damaged where reading some of them fails, which TensorFlow doesn't.

    Args:
        paths: The files that are read inside the `with` statement.

    Raises:
        InputError: A record was damaged: names each damaged file and the first such record in it.
    """
    try:
        yield
    except tf.errors.DataLossError:
        refuse_damage(find_damage(paths))
        raise


def _read_all_through(paths):
    readings, progress = [], ProgressLine()
    with concurrent.futures.ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
        for reading in pool.map(read_through, paths):
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
