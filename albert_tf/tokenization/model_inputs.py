"""The tokenizer as TensorFlow ops alone: raw strings to the model's inputs, in tf.data and in a SavedModel."""

import os

import tensorflow as tf
import tensorflow_text as tf_text

from albert_tf.errors import InputError
from albert_tf.tokenization.base import Tokenizer
from albert_tf.tokenization.vocabulary import CLS, PAD, SEP, Vocabulary


class InputEncoder(tf.Module):
    """Encodes texts as `[CLS] text [SEP]` or `[CLS] text [SEP] pair [SEP]`; the end of the longer text is cut off.

    ```python
    encode = InputEncoder(tokenizer, max_seq_length=128)
    dataset.batch(32).map(encode)  # batches of strings
    encode.export("encoder")
    tf.saved_model.load("encoder")(tf.constant(["나는 밥을 먹었다."]))  # needs tensorflow_text, but not albert_tf
    ```

    Args:
        tokenizer: Its vocabulary must hold the special tokens.
        max_seq_length: Length S.

    Raises:
        InputError: A special token is missing, or S has no room for them.
    """

    def __init__(self, tokenizer: Tokenizer, max_seq_length: int):
        super().__init__()
        check_packing(tokenizer.vocabulary, max_seq_length)
        self._tokenizer = tokenizer
        self._resources = tokenizer.resources
        self._max_seq_length = max_seq_length

    @tf.function(autograph=False)
    def __call__(self, texts: tf.Tensor, text_pair: tf.Tensor | None = None) -> dict[str, tf.Tensor]:
        """Encodes N texts, or N pairs.

        Args:
            texts: string tensor [N], UTF-8.
            text_pair: string tensor [N] of second texts, or None.

        Returns:
            int32 [N, S] `input_ids`, `input_mask`, `segment_ids`.
        """
        texts = [texts] if text_pair is None else [texts, text_pair]
        segments = [self._tokenizer.encode_ids(tf.convert_to_tensor(text)) for text in texts]
        return pack_segments(segments, self._tokenizer.vocabulary, self._max_seq_length)

    def export(self, folder: str | os.PathLike) -> None:
        """Writes a SavedModel, with the tokenizer beside it.

        Its signatures are `serving_default`, which takes `texts`, and `text_pair`, which takes `texts` and `text_pair`.
        """
        texts, text_pair = (tf.TensorSpec([None], tf.string, name) for name in ("texts", "text_pair"))
        signatures = {
            "serving_default": self.__call__.get_concrete_function(texts),
            "text_pair": self.__call__.get_concrete_function(texts, text_pair),
        }
        tf.saved_model.save(self, os.fspath(folder), signatures)
        self._tokenizer.save(folder)


def pack_segments(
    segments: list[tf.RaggedTensor], vocabulary: Vocabulary, max_seq_length: int, pads_to_longest: bool = False
) -> dict[str, tf.Tensor]:
    """Puts special tokens around the ids of texts, cuts the end of the longer text off, and pads.

    Args:
        segments: One or two ragged int32 tensors [N, (pieces)].
        vocabulary: It must hold the special tokens.
        max_seq_length: Length S.
        pads_to_longest: Whether S is but the longest that texts may be, and they are padded to the longest of them.

    Returns:
        int32 [N, S] `input_ids`, `input_mask`, `segment_ids`.

    Raises:
        InputError: A special token is missing, or S has no room for them.
    """
    check_packing(vocabulary, max_seq_length)
    cls, sep, pad = (vocabulary.id_of(token) for token in (CLS, SEP, PAD))
    room = max_seq_length - vocabulary.num_special(len(segments))
    lengths = _kept_lengths([segment.row_lengths() for segment in segments], room)
    segments = [
        tf.RaggedTensor.from_tensor(segment[:, :max_seq_length].to_tensor(), length)
        for segment, length in zip(segments, lengths)
    ]
    if len(segments) > 1 and vocabulary.num_separators > 1:  # one is added to each segment
        more = tf.fill([segments[0].nrows(), vocabulary.num_separators - 1], tf.cast(sep, segments[0].dtype))
        segments[0] = tf.concat([segments[0], more], axis=1)
    ids, segment_ids = tf_text.combine_segments(segments, cls, sep)
    padded_length = max_seq_length
    if pads_to_longest:  # where there is no text, one piece: no model reads none
        padded_length = tf.maximum(1, tf.cast(ids.bounding_shape(axis=1), tf.int32))
    input_ids, input_mask = tf_text.pad_model_inputs(ids, padded_length, pad)
    segment_ids, _ = tf_text.pad_model_inputs(segment_ids, padded_length)
    features = {"input_ids": input_ids, "input_mask": input_mask, "segment_ids": segment_ids}
    return {name: tf.cast(values, tf.int32) for name, values in features.items()}


def check_packing(vocabulary: Vocabulary, max_seq_length: int) -> None:
    """Checks that `pack_segments` can work.

    Raises:
        InputError: A special token is missing, or S has no room for them.
    """
    vocabulary.require(PAD, CLS, SEP)
    least = vocabulary.num_special(2)
    if max_seq_length < least:
        raise InputError(f"max_seq_length must be at least {least}. Received: {max_seq_length}")


def _kept_lengths(lengths, room):
    """Returns what is left of each length when the longer one, of equal ones the first, gives up one after another."""
    if len(lengths) == 1:
        return [tf.minimum(lengths[0], room)]
    first, second = lengths
    first = tf.minimum(first, tf.maximum(room - second, room // 2))
    return [first, tf.minimum(second, room - first)]
