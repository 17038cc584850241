"""The loop over tokens, in one compiled graph of fixed shapes.

The prompts are encoded at once. Each further step reads keys and values from caches (`AlbertEncoder.extend`).

python -m benchmarks.generation      (time on a CPU, with caches and without)
"""

import typing

import numpy as np
import tensorflow as tf

from albert_tf.compilation.fusion import compiled_whole
from albert_tf.generation.options import GenerationOptions
from albert_tf.generation.piece_choice import NEVER, ChoiceKind, ChoiceNumbers, choose_pieces, penalize
from albert_tf.modeling import AlbertForPreTraining

# Lengths are rounded up to a multiple of this, so that few shapes are compiled.
LENGTH_STEP = 32


class Prompts(typing.NamedTuple):
    ids: np.ndarray  # int32 [B, S], the pieces of each text, and room for what comes
    lengths: np.ndarray  # int32 [B], the number of pieces that there are, from 1
    limits: np.ndarray  # int32 [B], how many may come; 0 for a row that only fills the batch
    starts_word: np.ndarray  # bool [B], whether a word has to start with the first that comes
    draws: np.ndarray  # float32 [B, S], uniform in [0, 1), one for each piece that may come


class _Texts(typing.NamedTuple):
    """The loop's state: `Prompts.ids`, each text's last position, and whether it has ended."""

    ids: tf.Tensor
    columns: tf.Tensor
    has_ended: tf.Tensor


class Decoder:
    """Generates tokens until each text ends.

    Args:
        model: Predicts the next token.
        may_come: bool [V], the tokens that may come, the last one of a document among them.
        starts_word: bool [V], those that may stand where a word has to start.
        end_id: The last token of a document.
    """

    def __init__(self, model: AlbertForPreTraining, may_come: np.ndarray, starts_word: np.ndarray, end_id: int):
        self._model, self._end_id = model, end_id
        self._may_come, self._may_start = may_come, may_come & starts_word
        self._compiled = None

    def __call__(self, prompts: Prompts, options: GenerationOptions) -> tuple[np.ndarray, np.ndarray]:
        """Returns the tokens of each text and its continuation, int32 [B, S], and their number, int32 [B].

        Args:
            prompts: The texts. Each length of the prompts, and of the results, is compiled once.
            options: How to choose; `max_pieces` and `seed` are in the prompts already.
        """
        if self._compiled is None:
            self._compiled = compiled_whole(self.decode)
        length = rounded_length(int(prompts.lengths.max()), prompts.ids.shape[1])
        kind, numbers = ChoiceKind.of(options, self._model.config.vocab_size), ChoiceNumbers.of(options)
        asked = Prompts(*map(tf.constant, prompts)), numbers, kind, length
        # Called without this step, TensorFlow would warn of each further shape; here they are few, and wanted.
        ids, counts = self._compiled.get_concrete_function(*asked)(*asked)
        return ids.numpy(), counts.numpy()

    def decode(
        self, prompts: Prompts, numbers: ChoiceNumbers, kind: ChoiceKind, prompt_length: int
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Computes the same as tensors, for graphs.

        Args:
            prompt_length: At least that of the longest prompt.
        """
        batch_size, length = prompts.ids.shape
        encoder = self._model.encoder
        positions = tf.tile(tf.range(prompt_length)[None], [batch_size, 1])
        caches = encoder.empty_caches(batch_size, length)
        states, caches = encoder.extend(prompts.ids[:, :prompt_length], positions, caches)

        def choose(states, may_come, draws, ids):
            table = tf.convert_to_tensor(encoder.embeddings.word_embeddings)
            logits = self._model.masked_lm_head(states[:, None], table)[:, 0]  # of the piece after each state
            if kind.penalizes:
                logits = penalize(logits, _seen(ids, logits.shape[-1]), numbers.repetition_penalty)
            return choose_pieces(tf.where(may_come, logits, NEVER), draws, kind, numbers)

        def append(texts, pieces, step):
            columns = tf.where(texts.has_ended, texts.columns, texts.columns + 1)
            pieces = tf.where(texts.has_ended, tf.gather(texts.ids, columns, batch_dims=1), pieces)
            places = tf.stack([tf.range(batch_size), columns], axis=1)
            ids = tf.tensor_scatter_nd_update(texts.ids, places, pieces)
            return _Texts(ids, columns, texts.has_ended | (pieces == self._end_id) | (step + 1 >= prompts.limits))

        texts = _Texts(prompts.ids, prompts.lengths - 1, prompts.limits == 0)
        last_states = tf.gather(states, texts.columns, batch_dims=1)
        may_come = tf.where(prompts.starts_word[:, None], self._may_start, self._may_come)
        texts = append(texts, choose(last_states, may_come, prompts.draws[:, 0], texts.ids), tf.constant(0))

        def go_on(step, texts, caches):
            last = tf.gather(texts.ids, texts.columns, batch_dims=1)
            states, caches = encoder.extend(last[:, None], texts.columns[:, None], caches)
            pieces = choose(states[:, 0], self._may_come, tf.gather(prompts.draws, step, axis=1), texts.ids)
            return step + 1, append(texts, pieces, step), caches

        _, texts, _ = tf.while_loop(
            lambda step, texts, caches: tf.reduce_any(~texts.has_ended), go_on, (tf.constant(1), texts, caches)
        )
        return texts.ids, texts.columns + 1


def rounded_length(length: int, longest: int) -> int:
    """Returns a length rounded up to a multiple of `LENGTH_STEP`, but at most `longest`."""
    return min(-(-length // LENGTH_STEP) * LENGTH_STEP, longest)


def _seen(ids, vocab_size):
    """Returns the tokens in each row of ids, bool [B, V]; those that fill it up count, but never come anyway."""
    batch_size, length = ids.shape
    rows = tf.tile(tf.range(batch_size)[:, None], [1, length])
    places = tf.stack([rows, ids], axis=-1)
    return tf.tensor_scatter_nd_update(
        tf.zeros([batch_size, vocab_size], tf.bool), places, tf.ones([batch_size, length], tf.bool)
    )
