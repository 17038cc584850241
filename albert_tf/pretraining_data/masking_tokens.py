"""What masking must know of a vocabulary."""

import dataclasses

import numpy as np

from albert_tf.tokenization import Vocabulary
from albert_tf.tokenization.vocabulary import CLS, MASK, SEP, SPECIAL_TOKENS


@dataclasses.dataclass(frozen=True)
class MaskingTokens:
    """Ids that masking treats differently.

    Attributes:
        mask_id: Id of [MASK].
        unmaskable_ids: Ids that are never chosen: [CLS] and [SEP].
        real_piece_ids: int32 ids that a random replacement is drawn from.
    """

    mask_id: int
    unmaskable_ids: tuple[int, ...]
    real_piece_ids: np.ndarray

    @classmethod
    def from_vocabulary(cls, vocabulary: Vocabulary) -> "MaskingTokens":
        """Looks the ids up.

        Raises:
            InputError: A special token is missing.
        """
        vocabulary.require(*SPECIAL_TOKENS)
        return cls(
            mask_id=vocabulary.id_of(MASK),
            unmaskable_ids=(vocabulary.id_of(CLS), vocabulary.id_of(SEP)),
            real_piece_ids=vocabulary.real_piece_ids,
        )
