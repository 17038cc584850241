"""Filling in several masks of a text one after another, each with those before it in place."""

import collections.abc
import typing

import numpy as np

from albert_tf.errors import InputError
from albert_tf.serving.encoder_model import describe_guess
from albert_tf.tokenization import Tokenizer
from albert_tf.tokenization.vocabulary import MASK
from albert_tf.tokenization.words import END_OF_WORD

JOINTLY, LEFT_TO_RIGHT, CONFIDENCE = ORDERS = ("jointly", "left_to_right", "confidence")
DEFAULT_TOP_K = 5


class MaskFiller:
    """Fills in masks.

    Args:
        tokenizer: What texts are encoded with.
        guess: Given a batch of the encoder's inputs and `masked_lm_positions`, int32 [T, M], returns the probability of
            each piece for each mask, float32 [T, M, vocab_size].
    """

    def __init__(self, tokenizer: Tokenizer, guess: collections.abc.Callable[[dict[str, np.ndarray]], np.ndarray]):
        self._tokenizer, self._guess = tokenizer, guess
        self._marks_ends = getattr(tokenizer, "wordpiece_scheme", None) == "end_of_word"
        # What stands for no text fills no gap.
        self._is_real = np.zeros(len(tokenizer.vocabulary), bool)
        self._is_real[tokenizer.vocabulary.real_piece_ids] = True

    def fill(
        self, batch: dict[str, np.ndarray], positions: np.ndarray, counts: np.ndarray, order: str
    ) -> list[list[tuple[int, float]]]:
        """Returns of each text, for each of its masks, the piece's id and how probable it was when it was chosen.

        Args:
            batch: The encoder's inputs, int32 [T, S]; their masks are filled in.
            positions: int32 [T, M], where the masks stand, filled up with anything.
            counts: int [T], how many masks each has.
            order: "left_to_right", or "confidence", the surest of those that are left first.
        """
        found = [[None] * count for count in counts]
        is_open = np.arange(positions.shape[1]) < counts[:, None]
        while is_open.any():
            probabilities = np.where(self._is_real, self._guess({**batch, "masked_lm_positions": positions}), -1)
            ids, surest = probabilities.argmax(axis=-1), probabilities.max(axis=-1)
            keys = -np.arange(positions.shape[1]) if order == LEFT_TO_RIGHT else surest
            chosen = np.where(is_open, keys, -np.inf).argmax(axis=1)
            for row in np.flatnonzero(is_open.any(axis=1)):
                number = chosen[row]
                found[row][number] = int(ids[row, number]), float(surest[row, number])
                batch["input_ids"][row, positions[row, number]] = ids[row, number]
                is_open[row, number] = False
        return found

    def describe(self, text: str, pieces: list[tuple[int, float]]) -> dict[str, typing.Any]:
        """Returns a text with its masks filled in, and what stands for each."""
        guesses = [describe_guess(self._tokenizer, *each) for each in pieces]
        found, *parts = text.split(MASK)
        for (piece_id, _), guess, part in zip(pieces, guesses, parts):
            found = self._join(found, piece_id, guess, part)
        return {"text": found, "pieces": guesses}

    def _join(self, before, piece_id, guess, behind):
        """Returns a text with a piece and what stands behind it; the piece says where a word begins, or ends."""
        text = guess["text"]
        if self._marks_ends:
            ends_word = guess["piece"].endswith(END_OF_WORD) and behind[:1].isalnum()
            return f"{before}{text} {behind}" if ends_word else before + text + behind
        if not self._tokenizer.starts_word[piece_id]:
            return before.rstrip() + text + behind
        begins_word = before[-1:].isalnum() and text[:1].isalnum()
        return f"{before} {text}{behind}" if begins_word else before + text + behind


def check_order(order: str, top_k: int | None) -> None:
    """Checks that masks can be filled in such an order, and that nothing is asked that has no meaning in it.

    Raises:
        InputError: There is no such order, or `top_k` is given for one in which each mask gets one piece.
    """
    if order not in ORDERS:
        raise InputError(f"order must be one of {', '.join(ORDERS)}. Received: {order!r}")
    if order != JOINTLY and top_k is not None:
        raise InputError(f"`top_k` works only with order={JOINTLY}, as order={order} puts one piece in each place")
