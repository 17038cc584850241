"""Vectors of texts, which every folder with an encoder gives, pre-trained or fine-tuned."""

import collections.abc
import itertools
import typing

import numpy as np
import tensorflow as tf

from albert_tf.asked_texts import read_strings
from albert_tf.errors import InputError
from albert_tf.loaded_model import LoadedModel
from albert_tf.serving.loading import TrainedModel
from albert_tf.serving.signatures.text_inputs import TextInputs
from albert_tf.tokenization import Tokenizer
from albert_tf.tokenization.unknown_words import find_unknown_words
from albert_tf.tokenization.vocabulary import MASK

INPUT_NAMES = ("input_ids", "input_mask", "segment_ids")
POOLINGS = ("mean", "first", "last", "all")

# So many texts, of about one length, are computed at once.
_TEXTS_AT_ONCE = 32


class EncoderModel(LoadedModel):
    """A model whose encoder can be asked.

    Args:
        loaded: What lies in the folder.
        place: What errors call the folder.

    Attributes:
        model: The Keras model.
        tokenizer: What texts are encoded with.
    """

    def __init__(self, loaded: TrainedModel, place: str):
        self._place, self.model, self.tokenizer = place, loaded.model, loaded.tokenizer
        self.max_seq_length, self.results, self.num_cut = loaded.max_seq_length, loaded.results, 0
        self.take_encoder_settings(loaded.encoder_settings)
        self._inputs = TextInputs(self.tokenizer, self.max_seq_length)
        self._states = traced_once(lambda batch: self.model.encoder(batch)["sequence_output"], INPUT_NAMES)

    def encode(self, texts: collections.abc.Sequence[str], pooling: str | None = None) -> np.ndarray:
        """Returns a vector of each text, float32 [N, H].

        Args:
            texts: N of them; the ends of those that are longer than `max_seq_length` are left out.
            pooling: "mean" for the average of the last states of a text's pieces, [CLS] and [SEP] left out; "all" for
                that with them; "first" for the state of [CLS], "last" for that of the last piece. A text without a
                piece has the state of [CLS]. None for "mean", or what a folder of sentence-transformers says.

        Raises:
            InputError: An input is no text, there is no such pooling, or it reads [CLS] of a causal model.
        """
        normalizes = pooling is None and self.normalizes
        pooling = pooling or self.pooling
        check_pooling(pooling, self.model.config.is_causal)
        texts = read_strings(texts)
        self.add_unknown(*find_unknown_words(self.tokenizer, [(text,) for text in texts]))
        ids = self.tokenizer.encode_ids(texts)
        lengths = ids.row_lengths().numpy() + 2
        vectors = np.zeros([len(lengths), self.model.config.hidden_size], np.float32)
        for rows in groups_of_one_length(lengths):
            batch = self._inputs.pack(tf.gather(ids, rows))
            vectors[rows] = pool(self._states(batch).numpy(), batch["input_mask"].numpy(), pooling)
        self.add_cut(int(np.count_nonzero(lengths > self.max_seq_length)))
        return normalized(vectors) if normalizes else vectors


def traced_once(
    function: collections.abc.Callable[[dict[str, tf.Tensor]], tf.Tensor], names: collections.abc.Iterable[str]
) -> collections.abc.Callable:
    """Returns a tf.function of a batch, int32 [B, S] by name, that is traced once for all sizes."""
    specs = {name: tf.TensorSpec([None, None], tf.int32) for name in names}
    return tf.function(function, input_signature=[specs], autograph=False)


def describe_guess(tokenizer: Tokenizer, piece_id: int, probability: float) -> dict[str, typing.Any]:
    """Returns a guess for a mask: the "piece", the "text" that it stands for, and its "probability"."""
    piece, text = tokenizer.vocabulary.pieces[piece_id], tokenizer.decode([piece_id])
    is_continuation = text == piece and text.startswith("##") and len(text) > 2
    return {"piece": piece, "text": text[2:] if is_continuation else text, "probability": float(probability)}


def check_masked(texts: list[str], top_k: int, most: int) -> None:
    """Checks that each text has a mask, and that so many guesses for it can be given."""
    if not isinstance(top_k, int) or not 1 <= top_k <= most:
        raise InputError(f"top_k must be a whole number from 1 to {most}. Received: {top_k!r}")
    for number, text in enumerate(texts):
        if MASK not in text:
            raise InputError(f"input {number} has no {MASK}; write it where a piece is missing")


def check_masks_are_read(number: int, num_masks: int, num_read: int, max_seq_length: int) -> None:
    """Checks that all masks of a text, the input of a number, are among the pieces that are read."""
    if num_read < num_masks:
        raise InputError(
            f"input {number}: a {MASK} lies beyond the {max_seq_length} pieces that the model reads; pass only "
            "a part of the text"
        )


def count_cut_masked(tokenizer: Tokenizer, texts: list[str], max_seq_length: int) -> int:
    """Returns how many texts with masks, each of which is a piece, are longer than what the model reads."""
    parts = [text.split(MASK) for text in texts]
    lengths = iter(tokenizer.encode_ids([part for each in parts for part in each]).row_lengths().numpy())
    room = max_seq_length - tokenizer.vocabulary.num_special(1)
    return sum(sum(itertools.islice(lengths, len(each))) + len(each) - 1 > room for each in parts)


def check_pooling(pooling: str, is_causal: bool) -> None:
    """Raises InputError if there is no such pooling, or it reads what in a causal model sees nothing of the text."""
    if pooling not in POOLINGS:
        raise InputError(f"pooling must be one of {', '.join(POOLINGS)}. Received: {pooling!r}")
    if is_causal and pooling == "first":
        raise InputError(
            "`pooling=first` reads the first piece, which in a model of is_causal=true sees nothing of the text, so "
            "that all texts would be the same; use `pooling=last` or `pooling=mean`"
        )


def groups_of_one_length(lengths: np.ndarray) -> collections.abc.Iterator[np.ndarray]:
    """Yields the rows of texts of about one length, int [T] each, given the length of each text."""
    order = np.argsort(lengths, kind="stable")
    for begin in range(0, len(order), _TEXTS_AT_ONCE):
        yield order[begin : begin + _TEXTS_AT_ONCE]


def normalized(vectors: np.ndarray) -> np.ndarray:
    """Returns vectors [N, H] with a length of 1."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(np.float32).tiny)


def pool(states: np.ndarray, mask: np.ndarray, pooling: str) -> np.ndarray:
    """Returns a vector of each row, [T, H], of states [T, S, H] and mask [T, S]; see `EncoderModel.encode`."""
    lengths, rows = mask.sum(axis=1), np.arange(len(mask))
    if pooling == "first":
        return states[:, 0]
    if pooling == "all":
        return np.einsum("tsh,ts->th", states, mask.astype(np.float32)) / lengths[:, None]
    if pooling == "last":
        return states[rows, np.maximum(0, lengths - 2)]
    weights = mask.astype(np.float32)
    weights[:, 0] = lengths == 2  # of a text without pieces there is but [CLS]
    weights[rows, lengths - 1] = 0
    return np.einsum("tsh,ts->th", states, weights) / weights.sum(axis=1, keepdims=True)
