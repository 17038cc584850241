"""Ids to pieces and to text, and back to ids: what follows from the vocabulary alone."""

import abc
import collections.abc
import itertools

import numpy as np

from albert_tf.errors import InputError
from albert_tf.tokenization.vocabulary import SPECIAL_TOKENS, UNK, Vocabulary


def _special_id(token):
    """Returns a property: the id of a special token."""

    def get(self):
        self.vocabulary.require(token)
        return self.vocabulary.id_of(token)

    return property(get, doc=f"Id of {token}; an InputError where the vocabulary lacks it.")


class PieceLookup(abc.ABC):
    """Looks pieces and ids up, under the names that Hugging Face's tokenizers use.

    Args:
        vocabulary: The pieces.
    """

    pad_token, unk_token, cls_token, sep_token, mask_token = SPECIAL_TOKENS
    pad_token_id, unk_token_id, cls_token_id, sep_token_id, mask_token_id = map(_special_id, SPECIAL_TOKENS)

    def __init__(self, vocabulary: Vocabulary):
        self.vocabulary = vocabulary

    @abc.abstractmethod
    def _join(self, pieces):
        """Returns the text of pieces, special tokens not among them."""

    def __len__(self) -> int:
        return len(self.vocabulary)

    @property
    def vocab_size(self) -> int:
        """Number of pieces."""
        return len(self.vocabulary)

    def convert_tokens_to_ids(self, tokens: str | list[str]) -> int | list[int]:
        """Returns the id of a piece, or of each piece of a list; that of [UNK] where there is none."""
        if isinstance(tokens, str):
            return self.vocabulary.id_of(tokens if tokens in self.vocabulary else UNK)
        return [self.convert_tokens_to_ids(token) for token in tokens]

    def convert_ids_to_tokens(self, ids: int | collections.abc.Iterable[int]) -> str | list[str]:
        """Returns the piece of an id, or of each id of a list, array or tensor.

        Raises:
            InputError: The vocabulary has no such id.
        """
        ids = np.asarray(ids, np.int64)
        if ids.size and not 0 <= ids.min() <= ids.max() < len(self):
            raise InputError(f"ids must be from 0 to {len(self) - 1}. Received: {ids.tolist()}")
        pieces = self.vocabulary.pieces
        return [pieces[i] for i in ids.tolist()] if ids.ndim else pieces[int(ids)]

    def get_vocab(self) -> dict[str, int]:
        """Returns every piece and its id."""
        return {piece: i for i, piece in enumerate(self.vocabulary.pieces)}

    @property
    def all_special_ids(self) -> list[int]:
        """Ids of the special tokens that the vocabulary has."""
        return [self.vocabulary.id_of(token) for token in SPECIAL_TOKENS if token in self.vocabulary]

    def decode(self, ids: collections.abc.Iterable[int], skip_special_tokens: bool = True) -> str:
        """Returns the text of ids.

        In the end-of-word scheme and of SentencePiece this is the normalised text exactly, as long as nothing in it is
        unknown. In the continuation scheme words are set apart by spaces, because the pieces don't tell what stood
        between them.

        Args:
            ids: Ids of pieces.
            skip_special_tokens: Leave out special tokens and [unused] slots, except [UNK], which stands for text.

        Raises:
            InputError: The vocabulary has no such id.
        """
        pieces = self.convert_ids_to_tokens(list(ids))
        if skip_special_tokens:
            return self._join([piece for piece in pieces if not self._is_left_out(piece)])
        parts = []
        for is_left_out, group in itertools.groupby(pieces, self._is_left_out):
            run = list(group)
            parts += run if is_left_out else [self._join(run)]
        return " ".join(parts)

    def batch_decode(
        self, sequences: collections.abc.Iterable[collections.abc.Iterable[int]], skip_special_tokens: bool = True
    ) -> list[str]:
        """Returns the text of each row of ids, as `decode`."""
        return [self.decode(ids, skip_special_tokens) for ids in sequences]

    def _is_left_out(self, piece):
        """Whether decoding leaves a piece out by default; [UNK] stands for text."""
        return self.vocabulary.is_reserved(piece) and piece != self.unk_token
