"""What a student learns from a teacher: the seam between `Distillation` and the ways to compare two models."""

import abc
import collections.abc
import typing

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.modeling import AlbertEncoder
from albert_tf.modeling.heads import MaskedLMHead
from albert_tf.modeling.kernels.plain_attention import split_heads
from albert_tf.objectives.objective import BatchSpec, WeightedSum


class Reading(typing.NamedTuple):
    """A model, and what it made of a batch.

    Attributes:
        encoder: Its encoder.
        outputs: Of the encoder, `hidden_states` among them.
        masked_lm_head: What guesses pieces; None where no guesses are compared.
    """

    encoder: AlbertEncoder
    outputs: dict[str, typing.Any]
    masked_lm_head: MaskedLMHead | None

    @property
    def config(self) -> AlbertConfig:
        """Its hyper-parameters."""
        return self.encoder.config


class Lesson(abc.ABC):
    """A way to compare two models.

    Args:
        settings: Values of the settings of `Distillation`, by name.

    Attributes:
        coefficients: Of the losses, by name.
        masked_lm_coefficient: Of the masked language model that is learnt beside where nobody says another one.
        metric_names: Metrics besides.
        own_settings: The names of settings of `Distillation` that other ways don't read.
        auxiliary_models: The names of what `make_auxiliary_models` may return.
        reads_last_states: Whether it compares what the last block computes, so that nothing of it may be left out.
        reads_guesses: Whether it compares what the masked language models guess.
    """

    coefficients: collections.abc.Mapping[str, float]
    masked_lm_coefficient: float
    metric_names: tuple[str, ...] = ()
    own_settings: tuple[str, ...] = ()
    auxiliary_models: tuple[str, ...] = ()
    reads_last_states: bool = False
    reads_guesses: bool = False

    def __init__(self, settings: collections.abc.Mapping[str, typing.Any]):
        self.settings = settings

    @abc.abstractmethod
    def check(self, config: AlbertConfig, teacher: AlbertConfig, source: str) -> None:
        """Checks that two models can be compared.

        Args:
            config: Of the student.
            teacher: Of the teacher.
            source: What errors call the latter.

        Raises:
            InputError: They can't.
        """

    def make_auxiliary_models(
        self, config: AlbertConfig, teacher: AlbertConfig, dtype: typing.Any
    ) -> dict[str, tf.keras.layers.Layer]:
        """Returns what is learnt beside the student, and only to compare the two models, by name.

        Args:
            config: Of the student.
            teacher: Of the teacher.
            dtype: As for `AlbertEncoder`.
        """
        return {}

    @abc.abstractmethod
    def compute(
        self,
        student: Reading,
        teacher: Reading,
        bias: tf.Tensor,
        weights: tf.Tensor,
        **auxiliary_models: tf.keras.layers.Layer,
    ) -> dict[str, WeightedSum]:
        """Returns losses and metrics, each as (sum, weight).

        Args:
            student: What learns.
            teacher: What it learns from, of which nothing is differentiated.
            bias: float32 [B, 1, S] or [B, S, S], 0 where a position may see a key; see `kernels.visible_keys`.
            weights: float32 [B, S], 1 for pieces and 0 for padding; their sum is the weight of every loss.
            **auxiliary_models: Those of `make_auxiliary_models`. Name them in the signature.
        """

    @abc.abstractmethod
    def products(self, config: AlbertConfig, teacher: AlbertConfig, max_seq_length: int) -> tuple[int, int]:
        """Returns the multiplications for one example beside the student's whole encoder: differentiated and not.

        Of the teacher that includes the encoder, as far as it is read.
        """

    def uncounted_flops(self, config: AlbertConfig, teacher: AlbertConfig, batch_spec: BatchSpec) -> int:
        """Returns operations that XLA's cost analysis misses; see `Objective.uncounted_flops`."""
        return 0


def check_equal(
    lesson: str, compared: collections.abc.Mapping[str, str], config: AlbertConfig, teacher: AlbertConfig, source: str
) -> None:
    """Checks that two models are equal in what is compared one by one.

    Args:
        lesson: The name of the way to compare.
        compared: What is compared, by the key of the config that has to be equal.
        config: Of the student.
        teacher: Of the teacher.
        source: What errors call the latter.

    Raises:
        InputError: They aren't.
    """
    for name, what in compared.items():
        own, other = getattr(config, name), getattr(teacher, name)
        if own != other:
            raise InputError(
                f"`distillation={lesson}` compares {what} one by one, and {name} is {own} in the student and {other} "
                f"in {source}; make them equal, or use `distillation=relations`"
            )


def scores_of_heads(queries: tf.Tensor, keys: tf.Tensor, num_heads: int) -> tf.Tensor:
    """Returns Q K^T / sqrt(d) of each head, d columns of it, float32 [B, heads, S, S].

    Args:
        queries: [B, S, H].
        keys: [B, S, H].
        num_heads: Number of heads.
    """
    hidden_size = queries.shape[-1]
    size = hidden_size // num_heads
    (query,), (key,) = (split_heads(states, hidden_size, size) for states in (queries, keys))
    return tf.cast(tf.matmul(query, key, transpose_b=True), tf.float32) * size**-0.5
