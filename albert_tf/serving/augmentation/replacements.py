"""Which piece comes in place of another: a probable one that is written alike."""

import numpy as np
import tensorflow as tf

from albert_tf.generation import GenerationOptions
from albert_tf.generation.piece_choice import NEVER, ChoiceKind, ChoiceNumbers, choose_pieces
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.serving.augmentation.piece_kinds import NONE, kinds_of
from albert_tf.serving.encoder_model import INPUT_NAMES
from albert_tf.tokenization import Tokenizer
from albert_tf.tokenization.vocabulary import MASK, PAD


class Replacements:
    """Chooses pieces by what a model guesses for them.

    Args:
        model: Guesses masked pieces.
        tokenizer: What it was pre-trained with.
        num_candidates: Of how many of the most probable pieces of a kind one is drawn.

    Attributes:
        texts: What each piece stands for, without the marks of its place in a word.
        has_any: Whether a piece can be replaced, bool [V].
    """

    def __init__(self, model: AlbertForPreTraining, tokenizer: Tokenizer, num_candidates: int):
        vocabulary = tokenizer.vocabulary
        vocabulary.require(PAD, MASK)
        self._model, self._pad, self._mask = model, vocabulary.id_of(PAD), vocabulary.id_of(MASK)
        self.texts, kinds = kinds_of(tokenizer)
        counts = np.bincount(kinds)
        self.has_any = (kinds != NONE) & (counts[kinds] > 1)
        self._kinds, self._numbers = tf.constant(kinds), ChoiceNumbers.of(GenerationOptions())
        self._choice = ChoiceKind(False, False, min(num_candidates, len(vocabulary)), False)
        # Traced once for all sizes of batches.
        inputs = {name: tf.TensorSpec([None, None], tf.int32) for name in (*INPUT_NAMES, "masked_lm_positions")}
        signature = [inputs, tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.float32)]
        self._compute = tf.function(self._choose, input_signature=signature, autograph=False)

    def choose(
        self,
        inputs: list[tuple[np.ndarray, int]],
        draws: list[float],
        num_rows: int,
        length: int,
    ) -> np.ndarray:
        """Returns a piece for each input, int32 [T], never the one that stands there.

        Args:
            inputs: T times ids, int32 [n], special tokens included, and the position of the piece to replace.
            draws: T uniform numbers, which decide.
            num_rows: How many inputs are computed, at least T.
            length: Length that they are padded to, at least n.
        """
        ids = np.full([num_rows, length], self._pad, np.int32)
        # In rows without an input one piece is seen, for attention to nothing has no meaning.
        mask = np.zeros([num_rows, length], np.int32)
        mask[:, 0] = 1
        positions, replaced, uniform = np.zeros([num_rows, 1], np.int32), *np.zeros([2, num_rows])
        for row, ((of_row, position), draw) in enumerate(zip(inputs, draws)):
            ids[row, : len(of_row)], mask[row, : len(of_row)] = of_row, 1
            positions[row], replaced[row], uniform[row] = position, of_row[position], draw
            ids[row, position] = self._mask
        batch = {"input_ids": ids, "input_mask": mask, "segment_ids": np.zeros_like(ids)}
        asked = replaced.astype(np.int32), uniform.astype(np.float32)
        chosen = self._compute({**batch, "masked_lm_positions": positions}, *asked)
        return chosen.numpy()[: len(inputs)]

    def _choose(self, batch, replaced, draws):
        logits = self._model(batch)["masked_lm_logits"][:, 0]
        is_alike = tf.gather(self._kinds, replaced)[:, None] == self._kinds
        is_other = tf.range(len(self.texts)) != replaced[:, None]
        return choose_pieces(tf.where(is_alike & is_other, logits, NEVER), draws, self._choice, self._numbers)
