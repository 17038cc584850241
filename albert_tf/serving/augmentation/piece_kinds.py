"""Which pieces are written alike, so that one may stand where another does."""

import unicodedata

import numpy as np

from albert_tf.serving.encoder_model import describe_guess
from albert_tf.tokenization import Tokenizer

# The kind of what is no letter, which is left as it is: marks, numbers, special tokens, [UNK].
NONE = 0


def kinds_of(tokenizer: Tokenizer) -> tuple[list[str], np.ndarray]:
    """Returns what each piece of a vocabulary stands for, and its kind, int32 [V], equal for those written alike.

    Pieces of one kind have the same marks around their text ("##", "▁", or "_", which say where words begin or end),
    and letters of the same scripts and cases. Syllables and single letters of Hangul (영화, ㅋㅋ) are two kinds.
    """
    real = set(tokenizer.vocabulary.real_piece_ids.tolist())
    texts, found = [], {}
    kinds = np.full(len(tokenizer.vocabulary), NONE, np.int32)
    for piece_id, piece in enumerate(tokenizer.vocabulary.pieces):
        texts.append(describe_guess(tokenizer, piece_id, 0.0)["text"])
        if piece_id in real and texts[-1].isalpha():
            before, _, behind = piece.partition(texts[-1])
            kind = before, behind, frozenset(map(_script, texts[-1]))
            kinds[piece_id] = found.setdefault(kind, NONE + 1 + len(found))
    return texts, kinds


def _script(letter):
    """Returns the beginning of a letter's name, as HANGUL SYLLABLE, HANGUL LETTER or LATIN SMALL."""
    return " ".join(unicodedata.name(letter, "").split()[:2])
