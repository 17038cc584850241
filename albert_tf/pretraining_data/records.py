"""Records: the TFRecord schema of the writer and the readers, and how many there are, and whether any is damaged.

Names and dtypes are the original's (create_pretraining_data.py). A static record holds all of them; a dynamic one
leaves the three masked_lm features out, and the objective masks it anew in each batch (`prepare`).
"""

import collections.abc
import concurrent.futures
import contextlib
import functools
import itertools
import types

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError

from albert_tf.base.console import ProgressLine
from albert_tf.base.errors import InputError

SEQUENCE_FEATURES = ("input_ids", "input_mask", "segment_ids", "token_boundary")
MASKED_LM_FEATURES = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
# The original's name, whatever the label tells of two segments; sentence order has it too.
LABEL_FEATURE = "next_sentence_labels"
# How many characters of the text an example stands for.
CHARACTERS_FEATURE = "num_characters"
# 1 where a piece lies in a mention of an entity.
MENTIONS_FEATURE = "in_mention"

_FLOAT_LIST, _INT64_LIST = 2, 3  # fields of tf.train.Feature


def feature_spec(
    max_seq_length: int,
    max_predictions_per_seq: int | None,
    features: collections.abc.Mapping[str, int | None] = types.MappingProxyType({}),
) -> dict[str, tf.io.FixedLenFeature]:
    """Returns the spec for `tf.io.parse_example`: sequences int64 [S], masks int64 and their weights float32 [P].

    Dynamic records, without `max_predictions_per_seq`, have no masks. `features`, int64, are those of the packing.
    """
    spec = {name: tf.io.FixedLenFeature([max_seq_length], tf.int64) for name in SEQUENCE_FEATURES}
    for name, length in {LABEL_FEATURE: 1, **features}.items():
        spec[name] = tf.io.FixedLenFeature([max_seq_length if length is None else length], tf.int64)
    if max_predictions_per_seq is not None:
        for name in MASKED_LM_FEATURES:
            dtype = tf.float32 if name == "masked_lm_weights" else tf.int64
            spec[name] = tf.io.FixedLenFeature([max_predictions_per_seq], dtype)
    return spec


def serialize(features: dict[str, np.ndarray]) -> list[bytes]:
    """Serialises N examples as tf.train.Example, deterministically, many times faster than one after the other.

    Features are [N, ...]; non-negative integers become int64 lists, everything else float lists.
    """
    entries = [_entries(name, values.reshape(len(values), -1)) for name, values in sorted(features.items())]
    columns = []
    for is_matrix, group in itertools.groupby(entries, lambda rows: isinstance(rows, np.ndarray)):
        neighbours = list(group)
        columns += [_split_rows(np.concatenate(neighbours, axis=1))] if is_matrix else neighbours
    examples = []
    for parts in zip(*columns):
        content = b"".join(parts)
        examples.append(_field(1, len(content)) + content)
    return examples


def _entries(name, values):
    """Returns an entry of the map of features for each row: uint8 [N, bytes] if all have one size, else bytes."""
    if not np.issubdtype(values.dtype, np.integer):
        return _with_head(_entry(name, _FLOAT_LIST, 4 * values.shape[1]), values.astype("<f4").view(np.uint8))
    # Varints: 7 bits a byte.
    num_bytes = max(1, -(-int(values.max(initial=0)).bit_length() // 7))
    if num_bytes == 1:
        return _with_head(_entry(name, _INT64_LIST, values.shape[1]), values.astype(np.uint8))
    rest = values.astype(np.uint32 if num_bytes < 5 else np.uint64)
    groups, is_written = np.empty((*values.shape, num_bytes), np.uint8), np.ones((*values.shape, num_bytes), bool)
    for place in range(num_bytes):
        # Bytes are written while bits of the value are left; the high bit says whether another byte follows.
        if place:
            is_written[..., place] = rest > 0
        groups[..., place] = (rest & 0x7F).astype(np.uint8) | (rest > 0x7F).view(np.uint8) << 7
        rest >>= 7
    ends = np.cumsum(is_written.reshape(len(values), -1).sum(axis=1)).tolist()
    content = np.compress(is_written.ravel(), groups.ravel()).tobytes()  # in half the time of groups[is_written]
    return [
        _entry(name, _INT64_LIST, end - begin) + content[begin:end] for begin, end in itertools.pairwise([0, *ends])
    ]


def _with_head(head, content):
    return np.concatenate([np.tile(np.frombuffer(head, np.uint8), (len(content), 1)), content], axis=1)


def _split_rows(matrix):
    content, size = matrix.tobytes(), matrix.shape[1]
    return [content[begin : begin + size] for begin in range(0, len(content), size)]


@functools.cache
def _entry(name, list_field, size):
    """Returns the bytes before a list of `size` bytes in the map of features."""
    feature_list = _field(1, size)
    feature = _field(list_field, len(feature_list) + size) + feature_list
    value = _field(2, len(feature) + size) + feature
    key = _field(1, len(name)) + name.encode()
    return _field(1, len(key) + len(value) + size) + key + value


@functools.cache
def _field(number, size):
    """Returns the head of a field that holds `size` bytes."""
    head = [number << 3 | 2]
    while size > 0x7F:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([*head, size])


@tf.function(input_signature=[tf.TensorSpec([], tf.string)])  # twenty times faster than a dataset for each file
@tf.autograph.experimental.do_not_convert  # takes long, and nothing here needs it
def first_record(path):
    """Returns a file's first record, string [1], or string [0] if there is none."""
    records = tf.data.TFRecordDataset(path).take(1)
    return records.reduce(tf.zeros([0], tf.string), lambda none, record: record[None])


def is_static(path: str) -> bool:
    """Whether a file's first record holds masks; raises InputError if it is none of ours or the original's."""
    try:
        records = first_record(path).numpy().tolist()
    except tf.errors.OpError as error:
        raise InputError(f"{path} is not a TFRecord file, or it is damaged") from error
    if not records:
        raise InputError(f"{path} contains no records; run create_pretraining_data.py again")
    try:
        names = set(tf.train.Example.FromString(records[0]).features.feature)
    except DecodeError as error:
        raise InputError(f"{path} is not pre-training data: its records are not of tf.train.Example") from error
    missing = {*SEQUENCE_FEATURES, LABEL_FEATURE} - {"token_boundary"} - names
    if missing:
        raise InputError(f"{path} is not pre-training data: its records lack {', '.join(sorted(missing))}")
    return set(MASKED_LM_FEATURES) <= names


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
