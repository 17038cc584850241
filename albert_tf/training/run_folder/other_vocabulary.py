"""Beginning with a model that was trained with another vocabulary: what it knows of the pieces is carried over."""

import dataclasses
import os
import typing

import numpy as np
import tensorflow as tf

from albert_tf.base.checkpoint_files import find_beside_checkpoint
from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.modeling.pretrained import find_checkpoint, read_config
from albert_tf.tokenization import load_tokenizer
from albert_tf.tokenization.base import TOKENIZER_FILE, Tokenizer
from albert_tf.tokenization.sentencepiece.model import SPACE_MARK
from albert_tf.tokenization.sentencepiece.tokenizer import SentencePieceTokenizer
from albert_tf.tokenization.vocabulary import PAD, SPECIAL_TOKENS, UNK
from albert_tf.tokenization.wordpiece import CONTINUATION_PREFIX, END_OF_WORD

# How many letters are tried as what comes before a piece inside a word.
_MOST_LETTERS_BEFORE = 8


@dataclasses.dataclass(frozen=True)
class CarriedPieces:
    """Which pieces of a known vocabulary each piece of a new one is made of."""

    # Of each new piece: its own known id, or those of what the known tokenizer makes of its text, or none.
    sources: list[list[int]]
    text_ids: np.ndarray  # the ids of all known pieces that stand for text

    def means_of(self, values: np.ndarray) -> np.ndarray:
        """Returns values of the new pieces: the mean of the known ones' [V, ...] that each is made of, or of all.

        They keep the dtype, and one made of a single piece has its value to the bit.
        """
        mean_of_all = values[self.text_ids].mean(axis=0, dtype=np.float64)
        means = [values[ids].mean(axis=0, dtype=np.float64) if ids else mean_of_all for ids in self.sources]
        return np.stack(means).astype(values.dtype)

    def describe(self) -> str:
        carried, unknown = (sum(len(ids) == count for ids in self.sources) for count in (1, 0))
        return (
            f"of {len(self.sources):,} pieces {carried:,} are carried over, {len(self.sources) - carried - unknown:,} "
            f"begin as the mean of the pieces that they were made of, and {unknown:,} as the mean of all"
        )


def carry_pieces(known: Tokenizer, new: Tokenizer) -> CarriedPieces:
    """Finds the known tokenizer's pieces that a new one's are made of; the two may differ in kind and settings."""
    ids: dict[_Meaning, int] = {}
    for piece_id, meaning in enumerate(_meanings(known)):
        ids.setdefault(meaning, piece_id)
    meanings = dict(enumerate(_meanings(new)))
    sources = {number: [ids[meaning]] for number, meaning in meanings.items() if meaning in ids}
    left = {number: meaning for number, meaning in meanings.items() if number not in sources and meaning.is_text}
    inside = {number: meaning.text for number, meaning in left.items() if meaning.is_inside}
    sources |= _spell_inside(known, inside)
    sources |= _spell(known, {number: each.text for number, each in left.items() if number not in sources})
    return CarriedPieces([sources.get(number, []) for number in meanings], known.vocabulary.real_piece_ids)


class _Meaning(typing.NamedTuple):
    """The text that a piece matches, or the name of a special token or slot."""

    text: str
    is_text: bool
    is_inside: bool = False
    ends_word: bool = False


def _meanings(tokenizer):
    vocabulary = tokenizer.vocabulary
    # SentencePiece's have names of their own.
    special = {vocabulary.id_of(token): token for token in SPECIAL_TOKENS if token in vocabulary}
    for piece_id, piece in enumerate(vocabulary.pieces):
        if piece_id in special or vocabulary.is_reserved(piece):
            yield _Meaning(special.get(piece_id, piece), is_text=False)
        elif isinstance(tokenizer, SentencePieceTokenizer):
            yield _Meaning(piece.removeprefix(SPACE_MARK), True, is_inside=not piece.startswith(SPACE_MARK))
        elif tokenizer.wordpiece_scheme == "end_of_word":
            is_end = piece.endswith(END_OF_WORD) and piece != END_OF_WORD
            yield _Meaning(piece[:-1] if is_end else piece, True, ends_word=is_end)
        else:
            is_inside = piece.startswith(CONTINUATION_PREFIX) and piece != CONTINUATION_PREFIX
            yield _Meaning(piece[2:] if is_inside else piece, True, is_inside)


def _spell(tokenizer, texts, before=""):
    """Returns the ids of each text behind a piece, by its number; none if it can't be spelled or shares that piece."""
    if not texts:
        return {}
    ids, begins, ends = tokenizer.encode_with_offsets(tf.constant([before + text for text in texts.values()]))
    unknown = tokenizer.vocabulary.id_of(UNK)
    found = {}
    for number, *rows in zip(texts, ids.to_list(), begins.to_list(), ends.to_list()):
        # An empty span is a space that SentencePiece has put there.
        pieces = [piece for piece in zip(*rows) if piece[1] < piece[2]]
        own = [piece_id for piece_id, begin, _ in pieces if begin >= len(before)]
        is_shared = any(begin < len(before) < end for _, begin, end in pieces)
        if own and unknown not in own and not is_shared:
            found[number] = own
    return found


def _spell_inside(tokenizer, texts):
    """Returns the same for texts inside a word, behind one letter or another."""
    found = {}
    for letter in _letters_before(tokenizer):
        found |= _spell(tokenizer, {number: text for number, text in texts.items() if number not in found}, letter)
    return found


def _letters_before(tokenizer):
    """Returns letters that a word may start with, the last ones first, which are seldom part of longer pieces."""
    letters = [each.text for each in _meanings(tokenizer) if len(each.text) == 1 and not each.is_inside]
    return [letter for letter in letters if letter.isalpha()][: -_MOST_LETTERS_BEFORE - 1 : -1]


# What the names of variables end with that have a row for each piece, and for each position.
_OF_PIECES = ("word_embeddings", "output_bias")
_OF_POSITIONS = "position_embeddings"


def config_for_vocabulary(config: AlbertConfig, init_checkpoint: str, tokenizer: Tokenizer) -> AlbertConfig:
    """Returns the config of a model that goes on with another vocabulary: as many rows, and the place of [PAD].

    An InputError if no tokenizer lies beside the checkpoint, and the vocabulary is of another size.
    """
    path = _other_tokenizer_file(init_checkpoint, tokenizer)
    if path is None:
        if len(tokenizer) != config.vocab_size and not find_beside_checkpoint(init_checkpoint, TOKENIZER_FILE):
            raise InputError(
                f"`init_checkpoint={init_checkpoint}` has {config.vocab_size} pieces, {tokenizer.vocabulary.source} "
                f"has {len(tokenizer)}, and there is no {TOKENIZER_FILE} beside the former to tell which are the same; "
                "put its tokenizer there"
            )
        return config
    if config.num_entities:
        raise InputError(
            f"`init_checkpoint={init_checkpoint}` finds entities by the pieces of its own vocabulary (num_entities="
            f"{config.num_entities}), which is not the one of {tokenizer.vocabulary.source}; make the data with its own"
        )
    changes = {"vocab_size": len(tokenizer)}
    if config.position_offset and PAD in tokenizer.vocabulary:
        offset = tokenizer.vocabulary.id_of(PAD) + 1
        changes |= {"position_offset": offset, "max_position_embeddings": config.longest_sequence + offset}
    return config.replace(**changes)


@dataclasses.dataclass(frozen=True)
class OtherVocabulary:
    """How a model's variables become those of the same model with another vocabulary."""

    source: str  # the tokenizer.json of the vocabulary that was left
    pieces: CarriedPieces  # where the new one's come from
    position_shift: int  # how many rows further down each position stands, because [PAD] has another id

    @classmethod
    def of_checkpoint(
        cls, init_checkpoint: str, tokenizer: Tokenizer | None, config: AlbertConfig
    ) -> "OtherVocabulary | None":
        """Compares the vocabulary beside a checkpoint with that of the data; None if it is the same, or not known."""
        path = _other_tokenizer_file(init_checkpoint, tokenizer)
        if path is None:
            return None
        known = load_tokenizer(os.path.dirname(path))
        there = read_config(find_checkpoint(init_checkpoint, "`init_checkpoint`"), "`init_checkpoint`")
        there.check_vocabulary(known.vocabulary)
        return cls(path, carry_pieces(known, tokenizer), config.position_offset - there.position_offset)

    def adapt(self, name: str, values: np.ndarray) -> np.ndarray:
        """Returns the values of a variable for the new vocabulary; of most variables they are the same."""
        if name.endswith(_OF_PIECES):
            return self.pieces.means_of(values)
        if name.endswith(_OF_POSITIONS) and self.position_shift:
            # The rows before that of [PAD] are never read.
            rows = max(0, self.position_shift)
            return np.concatenate([np.zeros_like(values[:rows]), values[max(0, -self.position_shift) :]])
        return values

    def describe(self) -> str:
        """Returns in a sentence how many pieces are carried over."""
        return f"the vocabulary is not the one of {self.source}: {self.pieces.describe()}"


def _other_tokenizer_file(init_checkpoint, tokenizer):
    """Returns the tokenizer.json beside a checkpoint if its vocabulary is another one, else None."""
    path = find_beside_checkpoint(init_checkpoint, TOKENIZER_FILE)
    if not path or tokenizer is None or tokenizer.is_saved_as(path):
        return None
    pieces = load_tokenizer(os.path.dirname(path)).vocabulary.pieces
    return None if pieces == tokenizer.vocabulary.pieces else path
