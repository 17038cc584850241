"""Distillation losses: ways to compare a student with its teacher, and their interface to `Distillation`."""

import abc
import collections.abc
import math
import types
import typing

import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.base.settings import Settings
from albert_tf.config import AlbertConfig
from albert_tf.modeling import AlbertEncoder
from albert_tf.modeling.heads import MaskedLMHead
from albert_tf.modeling.kernels import tied_cross_entropy
from albert_tf.modeling.kernels.attention import split_heads
from albert_tf.modeling.kernels.tied_cross_entropy import Scorer
from albert_tf.modeling.layers import Linear
from albert_tf.objectives.objective import BatchSpec, WeightedSum, encoder_products

# Columns of the teacher in a relation head where nobody says how many heads there are: as in the paper, 48 of 768.
_COLUMNS = 16
_TEMPERATURE = 2.0


class Reading(typing.NamedTuple):
    """A model, and its outputs for a batch."""

    encoder: AlbertEncoder
    outputs: dict[str, typing.Any]  # Of the encoder, `hidden_states` among them.
    masked_lm_head: MaskedLMHead | None  # None where no guesses are compared.

    @property
    def config(self) -> AlbertConfig:
        return self.encoder.config


class DistillationLoss(abc.ABC):
    """A distillation loss. In the methods `config` is that of the student and `teacher` that of the teacher."""

    coefficients: collections.abc.Mapping[str, float]  # Of the losses, by name.
    masked_lm_coefficient: float  # Of the masked language model that is learnt beside where nobody says another one.
    metric_names: tuple[str, ...] = ()
    own_settings: tuple[str, ...] = ()  # Of `Distillation`, which other ways don't read.
    auxiliary_models: tuple[str, ...] = ()  # What `make_auxiliary_models` may return.
    reads_last_states: bool = False  # Compares what the last block computes, so that nothing of it may be left out.
    reads_guesses: bool = False  # Compares what the masked language models guess.

    def __init__(self, settings: Settings):
        self.settings = settings

    @abc.abstractmethod
    def check(self, config: AlbertConfig, teacher: AlbertConfig, source: str) -> None:
        """Raises InputError, which calls the teacher `source`, if the two models can't be compared."""

    def make_auxiliary_models(
        self, config: AlbertConfig, teacher: AlbertConfig, dtype: typing.Any
    ) -> dict[str, tf.keras.layers.Layer]:
        """Returns trainable layers that only compare the two models, by name."""
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
        """Returns losses and metrics, each as (sum, weight); the teacher gets no gradient.

        The bias is float32 [B, 1, S] or [B, S, S], 0 for visible keys. Weights are float32 [B, S], 1 for tokens and 0
        for padding; their sum is the weight of every loss. Name the auxiliary models in the signature.
        """

    @abc.abstractmethod
    def products(self, config: AlbertConfig, teacher: AlbertConfig, max_seq_length: int) -> tuple[int, int]:
        """Returns the multiplications for one example besides the student's whole encoder: differentiated and not."""
        # Of the teacher that includes the encoder, as far as it is read.

    def uncounted_flops(self, config: AlbertConfig, teacher: AlbertConfig, batch_spec: BatchSpec) -> int:
        return 0


class Relations(DistillationLoss):
    """The similarity of each token to each other one, in queries, keys and values (MiniLMv2; Wang et al. 2021).

    All heads of one application of a block are laid side by side and cut anew into relation heads, so the two models
    may differ in width, in heads and in depth. For X of queries, keys and values the relations are softmax(X X^T /
    sqrt(d)), with d columns of a head; the loss is KL(teacher || student), the mean over relation heads and over all
    tokens.
    """

    coefficients = types.MappingProxyType({f"{name}_relation_loss": 1.0 for name in ("query", "key", "value")})
    masked_lm_coefficient = 0.0
    own_settings = ("relation_heads", "teacher_layer")

    def check(self, config, teacher, source):
        self._num_heads(config, teacher)
        layer = self.settings.teacher_layer
        if not -1 <= layer < teacher.num_blocks:
            raise InputError(
                f"`teacher_layer={layer}` must be a layer of {source}, 0 to {teacher.num_blocks - 1}, or -1, the last"
            )

    def compute(self, student, teacher, bias, weights):
        layers = student.config.num_blocks - 1, self.settings.teacher_layer % teacher.config.num_blocks
        learnt, taught = (
            reading.encoder.query_key_value(reading.outputs["hidden_states"], layer)
            for reading, layer in zip((student, teacher), layers)
        )
        num_heads, total = self._num_heads(student.config, teacher.config), tf.reduce_sum(weights)
        return {
            name: (relation_divergence(tf.stop_gradient(known), found, num_heads, bias, weights), total)
            for name, known, found in zip(self.coefficients, taught, learnt)
        }

    def products(self, config, teacher, max_seq_length):

        def of_layer(width):
            return 3 * max_seq_length * width * (width + max_seq_length)

        number = self.settings.teacher_layer % teacher.num_blocks
        below = teacher.replace(num_hidden_layers=number + 1, num_hidden_groups=1, inner_group_num=1)
        return of_layer(config.hidden_size), encoder_products(below, max_seq_length, 0) + of_layer(teacher.hidden_size)

    def _num_heads(self, config: AlbertConfig, teacher: AlbertConfig) -> int:
        """Returns the number of relation heads, which divides both widths."""
        widths, number = (config.hidden_size, teacher.hidden_size), self.settings.relation_heads
        common = math.gcd(*widths)
        if number == 0:
            return max(each for each in range(1, max(1, widths[1] // _COLUMNS) + 1) if common % each == 0)
        if number < 0 or common % number:
            raise InputError(
                f"`relation_heads={number}` must divide the width of the student, {widths[0]}, and that of the "
                f"teacher, {widths[1]}; use a divisor of {common}, or 0 to have it chosen"
            )
        return number


def relation_divergence(
    taught: tf.Tensor, learnt: tf.Tensor, num_heads: int, bias: tf.Tensor, weights: tf.Tensor
) -> tf.Tensor:
    """Returns the weighted sum over positions of KL(teacher || student), averaged over relation heads."""
    # States are [B, S, H], and H may differ; bias and weights as for `DistillationLoss.compute`.
    known, found = (scores_of_heads(states, states, num_heads) + bias[:, None] for states in (taught, learnt))
    divergences = _divergence(tf.nn.log_softmax(known), found)
    return tf.reduce_sum(tf.reduce_mean(divergences, axis=1) * weights)


def _divergence(known, scores):
    """Returns KL of log-probabilities and the softmax of scores; the gradient is 0 to the bit where they are equal."""

    @tf.custom_gradient
    def apply(scores):
        found, probabilities = tf.nn.log_softmax(scores), tf.exp(known)

        def gradient(upstream):
            return (tf.exp(found) - probabilities) * upstream[..., None]

        return tf.reduce_sum(probabilities * (known - found), axis=-1), gradient

    return apply(scores)


class Logits(DistillationLoss):
    """The teacher's probabilities at all tokens, masked or not, and the cosine of the last hidden states (DistilBERT).

    Losses and weights are those of the recipe in transformers' research projects: T^2 KL at a temperature T of 2,
    averaged over tokens, and 1 - cosine likewise. `agreement` is the share of tokens at which both models guess the
    same one.
    """

    coefficients = types.MappingProxyType({"logit_loss": 5.0, "cosine_loss": 1.0})
    masked_lm_coefficient = 2.0
    metric_names = ("agreement",)
    reads_last_states = reads_guesses = True

    def check(self, config, teacher, source):
        check_equal("logits", {"hidden_size": "states", "vocab_size": "guesses"}, config, teacher, source)

    def compute(self, student, teacher, bias, weights):
        learnt, taught = (_scorer(reading) for reading in (student, teacher))
        taught = Scorer(*map(tf.stop_gradient, taught))
        divergence, agreement = tied_cross_entropy.tied_distillation(
            learnt, taught, tf.reshape(weights, [-1]), _TEMPERATURE
        )
        states = (tf.cast(reading.outputs["sequence_output"], tf.float32) for reading in (student, teacher))
        found, known = (tf.math.l2_normalize(each, axis=-1) for each in states)
        distances = 1.0 - tf.reduce_sum(found * tf.stop_gradient(known), axis=-1)
        total = tf.reduce_sum(weights)
        return {
            "logit_loss": (divergence, total),
            "cosine_loss": (tf.reduce_sum(distances * weights), total),
            "agreement": (agreement, total),
        }

    def products(self, config, teacher, max_seq_length):
        of_student, of_teacher = (
            max_seq_length * each.embedding_size * (each.hidden_size + each.vocab_size) for each in (config, teacher)
        )
        return of_student, encoder_products(teacher, max_seq_length, max_seq_length) + of_teacher

    def uncounted_flops(self, config, teacher, batch_spec):
        rows = batch_spec["input_ids"].shape.num_elements()
        return tied_cross_entropy.uncounted_distillation_flops(
            rows, config.embedding_size, teacher.embedding_size, config.vocab_size
        )


def _scorer(reading):
    head, table = reading.masked_lm_head, tf.convert_to_tensor(reading.encoder.embeddings.word_embeddings)
    states = head.states(reading.outputs["sequence_output"])
    return Scorer(tf.reshape(states, [-1, states.shape[-1]]), table, head.bias())


class Layers(DistillationLoss):
    """The scores of attention before the softmax, and the hidden states, layer by layer (TinyBERT; Jiao et al. 2020).

    A layer is one application of a block, whoever shares the block. Of the student's L_s and the teacher's L_t layers
    the m-th learns from layer m L_t / L_s, and embeddings from embeddings. Both losses are those of the paper's general
    stage: sums over layers of mean squared distances.

    The mean of the scores is over heads, visible keys and tokens. The published code takes it over all S keys and S
    queries, with 0 for hidden keys in both models, so that a short text with much padding weighs next to nothing there.

    States of another width than the teacher's pass through one linear layer, the same for all layers. Of the same width
    they are compared as they are, where the published code has a linear layer, too: a teacher teaches itself nothing.
    """

    coefficients = types.MappingProxyType({"attention_loss": 1.0, "hidden_state_loss": 1.0})
    masked_lm_coefficient = 0.0
    auxiliary_models = ("projection",)
    reads_last_states = True

    def check(self, config, teacher, source):
        check_equal("layers", {"num_attention_heads": "heads"}, config, teacher, source)
        if (config.relative_attention, teacher.relative_attention) != ("none", "none"):
            raise InputError(
                "`distillation=layers` can't compare scores of relative_attention; use `distillation=relations`"
            )
        if teacher.num_blocks % config.num_blocks:
            raise InputError(
                f"`distillation=layers`: {source} has {teacher.num_blocks} layers, no multiple of the student's "
                f"{config.num_blocks}; give the student others, or use `distillation=relations`"
            )

    def make_auxiliary_models(self, config, teacher, dtype):
        if config.hidden_size == teacher.hidden_size:
            return {}
        return {"projection": Linear(config.hidden_size, teacher.hidden_size, config.initializer_range, dtype=dtype)}

    def compute(self, student, teacher, bias, weights, projection=None):
        is_seen = tf.cast(tf.equal(bias, 0.0), tf.float32)
        shares = tf.math.divide_no_nan(is_seen, tf.reduce_sum(is_seen, axis=-1, keepdims=True)) * weights[:, :, None]

        def distance_of_scores(own, other):
            learnt, taught = _scores_of_layer(student, own - 1), tf.stop_gradient(_scores_of_layer(teacher, other - 1))
            return tf.reduce_sum(tf.reduce_mean(tf.square(learnt - taught), axis=1) * shares)

        def distance_of_states(own, other):
            learnt, taught = student.outputs["hidden_states"][own], teacher.outputs["hidden_states"][other]
            learnt = learnt if projection is None else projection(learnt)
            squares = tf.square(tf.cast(learnt, tf.float32) - tf.cast(taught, tf.float32))
            return tf.reduce_sum(tf.reduce_mean(squares, axis=-1) * weights)

        distance, total = teacher.config.num_blocks // student.config.num_blocks, tf.reduce_sum(weights)
        layers = [(number, number * distance) for number in range(student.config.num_blocks + 1)]  # 0 for embeddings
        return {
            "attention_loss": (tf.add_n([distance_of_scores(*pair) for pair in layers[1:]]), total),
            "hidden_state_loss": (tf.add_n([distance_of_states(*pair) for pair in layers]), total),
        }

    def products(self, config, teacher, max_seq_length):
        # Of the teacher these are its whole encoder and the same for the layers that are learnt.
        of_student, of_teacher = (
            config.num_blocks * max_seq_length * each.hidden_size * (2 * each.hidden_size + max_seq_length)
            for each in (config, teacher)
        )
        if config.hidden_size != teacher.hidden_size:
            of_student += (config.num_blocks + 1) * max_seq_length * config.hidden_size * teacher.hidden_size
        return of_student, encoder_products(teacher, max_seq_length, max_seq_length) + of_teacher


def _scores_of_layer(reading, number):
    """Returns the scores of one application of a block, from 0; float32 [B, heads, S, S]."""
    query, key, _ = reading.encoder.query_key_value(reading.outputs["hidden_states"], number)
    return scores_of_heads(query, key, reading.config.num_attention_heads)


DISTILLATION_LOSSES: dict[str, type[DistillationLoss]] = {"relations": Relations, "logits": Logits, "layers": Layers}


def check_equal(
    name: str, compared: collections.abc.Mapping[str, str], config: AlbertConfig, teacher: AlbertConfig, source: str
) -> None:
    """Raises InputError if two models differ in keys of the config that a distillation loss needs equal."""
    for key, what in compared.items():
        own, other = getattr(config, key), getattr(teacher, key)
        if own != other:
            raise InputError(
                f"`distillation={name}` compares {what} one by one, and {key} is {own} in the student and {other} "
                f"in {source}; make them equal, or use `distillation=relations`"
            )


def scores_of_heads(queries: tf.Tensor, keys: tf.Tensor, num_heads: int) -> tf.Tensor:
    """Returns Q K^T / sqrt(d) of each head, with d columns, float32 [B, heads, S, S], of Q and K [B, S, H]."""
    hidden_size = queries.shape[-1]
    size = hidden_size // num_heads
    (query,), (key,) = (split_heads(states, hidden_size, size) for states in (queries, keys))
    return tf.cast(tf.matmul(query, key, transpose_b=True), tf.float32) * size**-0.5
