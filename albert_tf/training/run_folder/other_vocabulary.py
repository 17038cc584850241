"""Beginning with a model that was trained with another vocabulary: what it knows of the pieces is carried over."""

import dataclasses
import os

import numpy as np

from albert_tf.checkpoint_files import find_beside_checkpoint
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.modeling.pretrained import find_checkpoint, read_config
from albert_tf.tokenization import Tokenizer, load_tokenizer
from albert_tf.tokenization.base import TOKENIZER_FILE
from albert_tf.tokenization.carried_pieces import CarriedPieces, carry_pieces
from albert_tf.tokenization.vocabulary import PAD

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
