"""The vocabulary of a SentencePiece model."""

from albert_tf.errors import InputError
from albert_tf.tokenization.sentencepiece.model import CONTROL, UNKNOWN, SentencePieceModel
from albert_tf.tokenization.vocabulary import CLS, MASK, PAD, SEP, UNK, Vocabulary, is_reserved

# What special tokens are called besides their names here.
_OTHER_NAMES = {PAD: ("<pad>",), CLS: ("<cls>", "<s>"), SEP: ("<sep>", "</s>"), MASK: ("<mask>",)}


class SentencePieceVocabulary(Vocabulary):
    """A model's pieces, and [unused] slots; special tokens are also known by the names that they have elsewhere."""

    def __init__(self, model: SentencePieceModel, num_unused: int = 0, num_separators: int = 1):
        self.num_separators = num_separators
        texts = [piece.text for piece in model.pieces]
        known = set(texts)
        names = {UNK: next(piece.text for piece in model.pieces if piece.type == UNKNOWN)}
        for token, others in _OTHER_NAMES.items():
            found = next((name for name in (token, *others) if name in known), None)
            if found is None:
                raise InputError(
                    f"{model.source} has no piece {' or '.join((token, *others))}, which ALBERT needs; train one with "
                    "spm_train --control_symbols=[CLS],[SEP],[MASK] --pad_id=0 --unk_id=1"
                )
            names[token] = found
        self._reserved = {*names.values(), *(piece.text for piece in model.pieces if piece.type == CONTROL)}
        candidates = (f"[unused{number}]" for number in range(num_unused + len(texts)))
        unused = [name for name, _ in zip((name for name in candidates if name not in known), range(num_unused))]
        self._names = names
        super().__init__([*texts, *unused], model.source)
        self._ids.update({token: self._ids[name] for token, name in names.items()})

    def require(self, *pieces: str) -> None:
        super().require(*(self._names.get(piece, piece) for piece in pieces))

    def is_reserved(self, piece: str) -> bool:
        return piece in self._reserved or is_reserved(piece)

    @property
    def special_pieces(self) -> list[str]:
        """The model's names of the special tokens, in the order of `SPECIAL_TOKENS`."""
        return [self._names[token] for token in (PAD, UNK, CLS, SEP, MASK)]
