"""The loop over tokens, in one compiled graph of fixed shapes.

The prompts are encoded at once. Each further step reads keys and values from caches (`AlbertEncoder.extend`).

python -m benchmarks.generation      (time on a CPU, with caches and without)
"""

import dataclasses
import typing

import numpy as np
import tensorflow as tf

from albert_tf.base.compilation import compiled_whole
from albert_tf.base.settings import check_number, check_whole
from albert_tf.modeling import AlbertForPreTraining

# Below this nothing but the most probable piece has a probability that float32 can hold.
_LOWEST_TEMPERATURE = 1e-6
_MOST = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class GenerationOptions:
    """How a text is continued.

    A token is drawn from the model's distribution, changed by these options in their order. With `temperature` 0 or
    `top_k` 1 nothing is drawn: the most probable token is taken (greedy).

    Attributes:
        max_pieces: Most tokens of a continuation; it ends earlier where the document does.
        repetition_penalty: Logits of tokens that the text already holds are divided by it if they are positive, and
            else multiplied (Keskar et al. 2019, section 4.1); 1 for no penalty.
        temperature: Divides logits: below 1 the probable tokens are drawn more often.
        top_k: Draw from so many of the most probable tokens; None for all.
        top_p: Draw from the fewest of the most probable tokens that together have this probability (Holtzman et al.
            2020); None for all.
        seed: Random draws depend on this seed and the text alone.

    Raises:
        InputError: A value is out of range.
    """

    max_pieces: int = 64
    repetition_penalty: float = 1.0
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0

    def __post_init__(self):
        check_whole("max_pieces", self.max_pieces, 1, _MOST)
        check_whole("seed", self.seed, 0)
        if self.top_k is not None:
            check_whole("top_k", self.top_k, 1, _MOST)
        check_number("temperature", self.temperature, "from 0 to 100", lambda value: 0 <= value <= 100)
        check_number("repetition_penalty", self.repetition_penalty, "from 1 on", lambda value: value >= 1)
        if self.top_p is not None:
            check_number("top_p", self.top_p, "greater than 0 and at most 1", lambda value: 0 < value <= 1)

    @property
    def is_greedy(self) -> bool:
        """Whether the most probable token is taken, and none drawn."""
        return self.top_k == 1 or self.temperature < _LOWEST_TEMPERATURE


# The logit of what must not come.
NEVER = -1e30


class ChoiceKind(typing.NamedTuple):
    """The options that the graph is traced for."""

    is_greedy: bool  # whether the most probable piece is taken
    penalizes: bool  # whether pieces that were there already become less probable
    top_k: int | None  # from how many pieces to draw; None for all
    has_top_p: bool  # whether to draw from the most probable ones alone, by their sum

    @classmethod
    def of(cls, options: GenerationOptions, vocab_size: int) -> "ChoiceKind":
        penalizes = options.repetition_penalty != 1
        if options.is_greedy:
            return cls(True, penalizes, None, False)
        top_k = None if options.top_k is None or options.top_k >= vocab_size else int(options.top_k)
        return cls(False, penalizes, top_k, options.top_p is not None and options.top_p < 1)


class ChoiceNumbers(typing.NamedTuple):
    """The numbers of `GenerationOptions`, float32 scalars."""

    repetition_penalty: tf.Tensor
    temperature: tf.Tensor
    top_p: tf.Tensor

    @classmethod
    def of(cls, options: GenerationOptions) -> "ChoiceNumbers":
        values = options.repetition_penalty, options.temperature, 1.0 if options.top_p is None else options.top_p
        return cls(*(tf.constant(value, tf.float32) for value in values))


def penalize(logits: tf.Tensor, is_seen: tf.Tensor, penalty: tf.Tensor) -> tf.Tensor:
    """Lowers logits [B, V] of tokens that were seen, bool [B, V], by the repetition penalty."""
    return tf.where(is_seen, tf.where(logits > 0, logits / penalty, logits * penalty), logits)


def choose_pieces(logits: tf.Tensor, draws: tf.Tensor, kind: ChoiceKind, numbers: ChoiceNumbers) -> tf.Tensor:
    """Returns a token for each row, int32 [B], given logits float32 [B, V] and draws float32 [B], uniform in [0, 1).

    A draw decides by the inverse of the distribution function. It is made where the batch is, so that a text's tokens
    don't depend on what else is computed.
    """
    if kind.is_greedy:
        return tf.argmax(logits, axis=-1, output_type=tf.int32)
    ids = None
    if kind.top_k is not None or kind.has_top_p:
        logits, ids = tf.math.top_k(logits, kind.top_k or logits.shape[-1])  # the most probable first
    # The largest is taken off first: a low temperature must not make it infinite.
    scaled = (logits - tf.reduce_max(logits, axis=-1, keepdims=True)) / numbers.temperature
    probabilities = tf.nn.softmax(scaled)
    ends = tf.cumsum(probabilities, axis=-1)
    if kind.has_top_p:
        # A piece is left out where those before it have the probability already; the first never is.
        is_kept = ends - probabilities < numbers.top_p
        probabilities = tf.where(is_kept, probabilities, 0.0)
        ends = tf.cumsum(probabilities, axis=-1)
    target = draws[:, None] * ends[:, -1:]
    place = tf.reduce_sum(tf.cast(ends <= target, tf.int32), axis=-1)
    # Rounding may carry it past the last that has a probability.
    last = tf.reduce_max(tf.where(probabilities > 0, tf.range(probabilities.shape[-1]), 0), axis=-1)
    place = tf.minimum(place, last)
    return place if ids is None else tf.gather(ids, place, batch_dims=1)


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
