"""The TFRecord schema: one place, used by the writer and the readers.

Names and dtypes are the original's (create_pretraining_data.py). A static record holds all of them; a dynamic one
leaves the three masked_lm features out, and the input pipeline masks it anew each epoch.
"""

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError

from albert_tf.errors import InputError

SEQUENCE_FEATURES = ("input_ids", "input_mask", "segment_ids", "token_boundary")
MASKED_LM_FEATURES = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
LABEL_FEATURE = "next_sentence_labels"


def feature_spec(max_seq_length: int, max_predictions_per_seq: int | None) -> dict[str, tf.io.FixedLenFeature]:
    """Returns what `tf.io.parse_example` needs.

    Args:
        max_seq_length: Length S of the sequence features, int64.
        max_predictions_per_seq: Length P of the masked_lm features, int64 and for the weights float32; None for
            dynamic records, which have none.
    """
    spec = {name: tf.io.FixedLenFeature([max_seq_length], tf.int64) for name in SEQUENCE_FEATURES}
    spec[LABEL_FEATURE] = tf.io.FixedLenFeature([1], tf.int64)
    if max_predictions_per_seq is not None:
        for name in MASKED_LM_FEATURES:
            dtype = tf.float32 if name == "masked_lm_weights" else tf.int64
            spec[name] = tf.io.FixedLenFeature([max_predictions_per_seq], dtype)
    return spec


def serialize(features: dict[str, np.ndarray]) -> bytes:
    """Returns a serialised tf.train.Example; integer features become int64, the others float32."""
    example = tf.train.Example()
    for name, values in features.items():
        feature = example.features.feature[name]
        if np.issubdtype(values.dtype, np.integer):
            feature.int64_list.value.extend(values.tolist())
        else:
            feature.float_list.value.extend(values.tolist())
    return example.SerializeToString(deterministic=True)


def is_static(path: str) -> bool:
    """Whether the first record of a file holds masks.

    Raises:
        InputError: The file is empty or is not a TFRecord file of ours or the original's.
    """
    try:
        record = next(iter(tf.data.TFRecordDataset(path).take(1)), None)
    except tf.errors.OpError as error:
        raise InputError(f"{path} is not a TFRecord file, or it is damaged") from error
    if record is None:
        raise InputError(f"{path} holds no record; run create_pretraining_data.py again")
    try:
        names = set(tf.train.Example.FromString(record.numpy()).features.feature)
    except DecodeError as error:
        raise InputError(f"{path} is not pre-training data: its records are no tf.train.Example") from error
    missing = {*SEQUENCE_FEATURES, LABEL_FEATURE} - {"token_boundary"} - names
    if missing:
        raise InputError(f"{path} is not pre-training data: its records lack {', '.join(sorted(missing))}")
    return set(MASKED_LM_FEATURES) <= names
