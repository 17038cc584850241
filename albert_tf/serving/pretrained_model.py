"""A pre-trained folder as a Python object: guesses for what is missing, and vectors of texts."""

import collections.abc
import os
import typing

import numpy as np
import tensorflow as tf

from albert_tf.asked_texts import read_strings, warn_of_cuts
from albert_tf.errors import InputError
from albert_tf.serving.loading import load_trained
from albert_tf.serving.signatures.text_inputs import TextInputs
from albert_tf.text_encoding import replace_halves
from albert_tf.tokenization.vocabulary import MASK

POOLINGS = ("mean", "first", "last")

# So many texts, of about one length, are computed at once.
_TEXTS_AT_ONCE = 32


class PretrainedModel:
    """Tokenizer and model of a pre-trained folder.

    ```python
    model = albert_tf.load("models/albert_ko_small")
    model.fill_mask(["이 영화 정말 [MASK]"])  # for each text, for each [MASK], the most probable pieces
    model.encode(["정말 재밌어요", "시간이 아깝다"])  # float32 [2, H]
    ```

    Args:
        folder: The `output_dir` of run_pretraining.py, or a published model.

    Attributes:
        model: The Keras model.
        tokenizer: What texts are encoded with.
        max_seq_length: Longest input in pieces; the ends of longer ones are left out.
        num_cut: How many of the inputs asked so far were longer than that.

    Raises:
        InputError: The folder holds no model.
    """

    def __init__(self, folder: str | os.PathLike):
        loaded = load_trained(folder, "albert_tf.load")
        self._folder, self.model = os.fspath(folder), loaded.model
        self.tokenizer, self.max_seq_length, self.num_cut = loaded.tokenizer, loaded.max_seq_length, 0
        self._inputs = TextInputs(self.tokenizer, self.max_seq_length)
        self._states = tf.function(self._compute_states, autograph=False, reduce_retracing=True)
        self._guesses = tf.function(self._compute_guesses, autograph=False, reduce_retracing=True)

    def fill_mask(
        self, texts: collections.abc.Sequence[str], top_k: int = 5
    ) -> list[list[list[dict[str, typing.Any]]]]:
        """Returns the most probable pieces for each "[MASK]" of each text.

        Args:
            texts: Each with a "[MASK]" or more, each of which stands for one piece of the vocabulary.
            top_k: How many pieces.

        Returns:
            For each text, for each of its masks, `top_k` dictionaries, the most probable first: the "piece" as it
            stands in the vocabulary, the "text" that it stands for, and its "probability".

        Raises:
            InputError: A text has no mask, or one that is behind what the model reads; or `top_k` is no number of
                pieces.
        """
        size = len(self.tokenizer.vocabulary)
        if not isinstance(top_k, int) or not 1 <= top_k <= size:
            raise InputError(f"top_k must be a whole number from 1 to {size}. Received: {top_k!r}")
        texts = [replace_halves(text) for text in read_strings(texts)]
        counts = np.array([text.count(MASK) for text in texts])
        for number, count in enumerate(counts):
            if not count:
                raise InputError(f"input {number} has no {MASK}; write it where a piece is missing")
        found = [[] for _ in texts]
        for rows in _groups(np.array([len(text) for text in texts])):
            for row, probabilities in zip(rows, self._fill([texts[row] for row in rows], counts[rows], rows)):
                found[row] = [self._best(each, top_k) for each in probabilities[: counts[row]]]
        return found

    def encode(self, texts: collections.abc.Sequence[str], pooling: str = "mean") -> np.ndarray:
        """Returns a vector of each text, float32 [N, H].

        Args:
            texts: N of them.
            pooling: "mean" for the average of the last states of a text's pieces, [CLS] and [SEP] left out; "first" for
                the state of [CLS], "last" for that of the last piece. A text without a piece has the state of [CLS].

        Raises:
            InputError: An input is no text, or there is no such pooling.
        """
        if pooling not in POOLINGS:
            raise InputError(f"pooling must be one of {', '.join(POOLINGS)}. Received: {pooling!r}")
        ids = self.tokenizer.encode_ids([replace_halves(text) for text in read_strings(texts)])
        lengths = ids.row_lengths().numpy() + 2
        vectors = np.zeros([len(lengths), self.model.config.hidden_size], np.float32)
        for rows in _groups(lengths):
            batch = self._inputs.pack(tf.gather(ids, rows))
            vectors[rows] = _pool(self._states(batch).numpy(), batch["input_mask"].numpy(), pooling)
        num_cut = int(np.count_nonzero(lengths > self.max_seq_length))
        if num_cut:
            self.num_cut += num_cut
            warn_of_cuts(self.max_seq_length)
        return vectors

    def predict(self, inputs: typing.Any, batch_size: int = 64) -> typing.NoReturn:
        """Raises an InputError that says what to do: this model was not fine-tuned for a task."""
        raise self._not_finetuned()

    @property
    def task(self) -> typing.NoReturn:
        """Raises an InputError that says what to do: this model was not fine-tuned for a task."""
        raise self._not_finetuned()

    def _not_finetuned(self):
        return InputError(
            f"{self._folder} was pre-trained and not fine-tuned: in Python fill_mask and encode ask it; to classify "
            "texts and the like, fine-tune it, as by run_classifier.py --init_checkpoint"
        )

    def _fill(self, texts, counts, rows):
        """Returns the probability of each piece for each mask of some texts, float32 [T, masks, vocab_size]."""
        batch, positions = self._inputs.encode_masked(tf.constant(texts))
        for row, count, found in zip(rows, counts, positions.row_lengths().numpy()):
            if found < count:
                raise InputError(
                    f"input {row}: a {MASK} is behind the {self.max_seq_length} pieces that the model reads; ask about "
                    "a part of the text"
                )
        return self._guesses({**batch, "masked_lm_positions": positions.to_tensor()}).numpy()

    def _compute_states(self, batch):
        return self.model.encoder(batch)["sequence_output"]

    def _compute_guesses(self, batch):
        return tf.nn.softmax(self.model(batch)["masked_lm_logits"])

    def _text_of(self, piece_id):
        text = self.tokenizer.decode([int(piece_id)])
        is_continuation = text.startswith("##") and len(text) > 2 and text == self.tokenizer.vocabulary.pieces[piece_id]
        return text[2:] if is_continuation else text

    def _best(self, probabilities, top_k):
        ids = np.argsort(-probabilities, kind="stable")[:top_k]
        return [
            {
                "piece": self.tokenizer.vocabulary.pieces[each],
                "text": self._text_of(each),
                "probability": float(probabilities[each]),
            }
            for each in ids
        ]


def _groups(lengths):
    """Yields the rows of texts of about one length, int [T] each."""
    order = np.argsort(lengths, kind="stable")
    for begin in range(0, len(order), _TEXTS_AT_ONCE):
        yield order[begin : begin + _TEXTS_AT_ONCE]


def _pool(states, mask, pooling):
    """Returns a vector of each row, [T, H], of states [T, S, H] and mask [T, S]; see `PretrainedModel.encode`."""
    lengths, rows = mask.sum(axis=1), np.arange(len(mask))
    if pooling == "first":
        return states[:, 0]
    if pooling == "last":
        return states[rows, np.maximum(0, lengths - 2)]
    weights = mask.astype(np.float32)
    weights[:, 0] = lengths == 2  # of a text without pieces there is but [CLS]
    weights[rows, lengths - 1] = 0
    return np.einsum("tsh,ts->th", states, weights) / weights.sum(axis=1, keepdims=True)
