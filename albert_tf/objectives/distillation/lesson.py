"""What a student learns from a teacher: the seam between `Distillation` and the ways to compare two models."""

import abc
import collections.abc
import typing

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.modeling import AlbertEncoder
from albert_tf.modeling.heads import MaskedLMHead
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
        reads_last_states: Whether it compares what the last block computes, so that nothing of it may be left out.
        reads_guesses: Whether it compares what the masked language models guess.
    """

    coefficients: collections.abc.Mapping[str, float]
    masked_lm_coefficient: float
    metric_names: tuple[str, ...] = ()
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

    @abc.abstractmethod
    def compute(
        self, student: Reading, teacher: Reading, bias: tf.Tensor, weights: tf.Tensor
    ) -> dict[str, WeightedSum]:
        """Returns losses and metrics, each as (sum, weight).

        Args:
            student: What learns.
            teacher: What it learns from, of which nothing is differentiated.
            bias: float32 [B, 1, S] or [B, S, S], 0 where a position may see a key; see `kernels.visible_keys`.
            weights: float32 [B, S], 1 for pieces and 0 for padding; their sum is the weight of every loss.
        """

    @abc.abstractmethod
    def products(self, config: AlbertConfig, teacher: AlbertConfig, max_seq_length: int) -> tuple[int, int]:
        """Returns the multiplications for one example beside the student's whole encoder: differentiated and not.

        Of the teacher that includes the encoder, as far as it is read.
        """

    def uncounted_flops(self, config: AlbertConfig, teacher: AlbertConfig, batch_spec: BatchSpec) -> int:
        """Returns operations that XLA's cost analysis misses; see `Objective.uncounted_flops`."""
        return 0
