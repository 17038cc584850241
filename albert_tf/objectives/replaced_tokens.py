"""Replaced tokens: which tokens of a text a small masked language model has put there (ELECTRA, Clark et al. 2020).

As in the paper and google-research/electra, the losses have the weights 1 and usually 50, each an average over the
global batch; both models share embeddings, unless these are disentangled; and no gradient passes through the drawn
tokens. As in the paper, and unlike there, every chosen token is [MASK] before the generator guesses. Positions are
drawn without replacement, where the original draws some twice and then averages the ids of two tokens.
"""

import dataclasses
import math
import typing

import numpy as np
import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.base.settings import RARE, Settings, setting
from albert_tf.config import AlbertConfig
from albert_tf.modeling import AlbertForPreTraining, AlbertForReplacedTokens
from albert_tf.modeling.embeddings import positions_of_pieces
from albert_tf.modeling.kernels import piece_sampling
from albert_tf.modeling.kernels.elementwise import split_dropout_seed
from albert_tf.modeling.kernels.positions import with_first_position
from albert_tf.modeling.layers import named_variables
from albert_tf.modeling.replaced_tokens import generator_config
from albert_tf.objectives.language_models import MaskedLM
from albert_tf.objectives.losses import States
from albert_tf.objectives.objective import (
    TRAINING_FLOPS_PER_PRODUCT,
    Objective,
    encoder_batch_spec,
    encoder_products,
    refuse_causal,
    refuse_entities,
    refuse_languages,
)
from albert_tf.pretraining_data.masking import MaskingOptions

# The logits of having been replaced are counted in so many bins, of real pieces and of replaced ones. Bins are narrow
# where the logits of a model lie that tells nothing yet, about the log odds of one piece in nine, and become wider from
# there, as far as those of a model that is sure: equal parts of the probabilities would put most of these into one bin.
_BINS = 200
_UNSURE, _STEEPNESS = -2.0, 4.0
# Pieces of a bin from here on are called replaced: a logit of 0 begins it.
_FIRST_REPLACED = 150


@dataclasses.dataclass(frozen=True, kw_only=True)
class ElectraSettings(Settings):
    generator_size: float = setting(
        0.25, "Width of ELECTRA's generator, as a share of the model's.", above=0, group=RARE
    )
    share_generator: bool = setting(
        False, "Use ELECTRA's model as its own generator: no extra parameters, twice the time.", group=RARE
    )
    disentangled_embeddings: bool = setting(
        False,
        "Train ELECTRA's shared embeddings with the generator's loss only, and a difference that is added to them with "
        "the model's.",
        group=RARE,
    )
    replaced_token_weight: float = setting(
        50.0, "Weight of the loss of ELECTRA's model; its generator's has a weight of 1.", above=0, group=RARE
    )


class ReplacedTokens(Objective):
    """The discriminator's binary cross-entropy, and the masked language model of the generator that it learns from."""

    # The config is that of the discriminator, the model that the run is for.

    metric_names = ("masked_lm_accuracy", "replaced_token_share", "replaced_token_scores")
    vector_metrics: typing.ClassVar = {"replaced_token_scores": 2 * _BINS}
    # A better generator makes the discriminator's task harder, whose figures can't be compared from step to step. The
    # accuracy of a small one stands still for long.
    selection_metric = "masked_lm_loss"
    title = "pre-training loss"
    carries_vocabulary = True
    # What is drawn for an example depends on its place in the batch.
    compares_examples = True

    def __init__(self, config: AlbertConfig, settings: ElectraSettings, masking: MaskingOptions, **others):
        self.config = config
        refuse_languages(config, "electra")
        refuse_entities(config, "electra")
        refuse_causal(config, "electra")
        self._settings, self._is_shared = settings, settings.share_generator
        self._is_disentangled = settings.disentangled_embeddings
        for name in ("generator_size", "disentangled_embeddings") if self._is_shared else ():
            if getattr(settings, name) != getattr(ElectraSettings(), name):
                raise InputError(
                    f"`share_generator` makes the model its own generator, so `{name}` has no meaning; leave one of "
                    "them out"
                )
        self.loss_coefficients = {"masked_lm_loss": 1.0, "replaced_token_loss": settings.replaced_token_weight}
        self.fills_masks = self._is_shared
        self._generator_config = config if self._is_shared else generator_config(config, settings.generator_size)
        self._masked_lm = MaskedLM(self._generator_config, masking)
        self._mask_id = masking.tokens.mask_id if masking.tokens else None

    def make_model(self, **options):
        return AlbertForReplacedTokens(self.config, guesses_pieces=self._is_shared, **options)

    def make_models(self, **options):
        model = self.make_model(**options)
        if self._is_shared:
            return {"model": model}
        embeddings = None if self._is_disentangled else model.encoder.embeddings
        generator = AlbertForPreTraining(self._generator_config, embeddings=embeddings, **options)
        return {"model": model, "generator": generator}

    def followers(self, models):
        # He et al. 2021 write the discriminator's as the generator's, through which no gradient passes, plus a
        # difference that begins with zeros. The sum itself is what is trained and saved here, so that whoever reads it
        # needs to know of nothing.
        if not self._is_disentangled:
            return {}
        names = [f"encoder/embeddings/{name}" for name in named_variables(models["model"].encoder.embeddings)]
        return {name: f"generator/{name}" for name in names}

    def prepare(self, features, seed):
        features = {**features, **self._masked_lm.prepare(features, seed)}
        if self._mask_id is not None:
            is_chosen = _at_positions(features, tf.cast(features["masked_lm_weights"], tf.int32)) > 0
            features["input_ids"] = tf.where(is_chosen, self._mask_id, features["input_ids"])
        draws_seed = tf.random.fold_in(seed, 1)
        draws = tf.random.stateless_uniform(tf.shape(features["masked_lm_ids"]), draws_seed)
        features["replacement_draws"] = tf.ensure_shape(draws, features["masked_lm_ids"].shape)
        return {name: features[name] for name in self.batch_spec(features["input_ids"].shape[1])}

    def batch_spec(self, max_seq_length):
        spec = encoder_batch_spec(max_seq_length) | self._masked_lm.batch_spec(max_seq_length)
        return {**spec, "replacement_draws": tf.TensorSpec(spec["masked_lm_ids"].shape, tf.float32)}

    def loss_weights(self, batch):
        num_pieces = tf.reduce_sum(tf.cast(batch["input_mask"], tf.float32))
        return {"masked_lm_loss": self._masked_lm.weight(batch), "replaced_token_loss": num_pieces}

    def compute(self, batch, training, dropout_seed, model, generator=None):
        generator = generator or model
        seeds = split_dropout_seed(dropout_seed, 2)
        inputs = {name: batch[name] for name in ("input_ids", "input_mask", "segment_ids")}
        outputs = generator.encoder(
            inputs,
            training=training,
            dropout_seed=seeds[0],
            output_positions=with_first_position(batch["masked_lm_positions"]),
        )
        states = States(outputs["sequence_output"], None, is_partial=True)
        masked_lm_loss, masked_lm_accuracy = self._masked_lm.compute(generator, states, batch)

        ids, is_replaced = self._replace(batch, generator, states.sequence_output[:, 1:])
        inputs["input_ids"] = ids
        if self.config.position_offset:
            # Positions count what is not [PAD], which the generator may have drawn.
            inputs["position_ids"] = positions_of_pieces(batch["input_ids"], self.config.position_offset)
        logits = model(inputs, training=training, dropout_seed=seeds[1])["replaced_token_logits"]
        weights = tf.cast(batch["input_mask"], tf.float32)
        labels = tf.cast(is_replaced, tf.float32)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels, logits) * weights
        num_pieces = tf.reduce_sum(weights)
        scores = _count_scores(logits, labels, weights)
        return {
            "masked_lm_loss": masked_lm_loss,
            "replaced_token_loss": (tf.reduce_sum(losses), num_pieces),
            "masked_lm_accuracy": masked_lm_accuracy,
            "replaced_token_share": (tf.reduce_sum(labels * weights), num_pieces),
            "replaced_token_scores": (scores, tf.ones_like(scores)),
        }

    def _replace(self, batch, generator, masked_states):
        """Returns ids int32 [B, S] with a token of the generator in place of each [MASK], and bool where it is new."""
        head, shape = generator.masked_lm_head, tf.shape(batch["masked_lm_ids"])
        states = head.states(masked_states)
        drawn = piece_sampling.sample_pieces(
            tf.reshape(states, [-1, states.shape[-1]]),
            tf.convert_to_tensor(generator.encoder.embeddings.word_embeddings),
            head.bias(),
            tf.reshape(batch["replacement_draws"], [-1]),
        )
        drawn = tf.reshape(drawn, shape)
        is_chosen = batch["masked_lm_weights"] > 0
        is_new = is_chosen & tf.not_equal(drawn, batch["masked_lm_ids"])
        # One sum over positions of both: the piece, and whether it is new, above all ids.
        above = self.config.vocab_size + 1
        packed = tf.where(is_chosen, drawn + 1 + above * tf.cast(is_new, tf.int32), 0)
        placed = _at_positions(batch, packed)
        ids = tf.where(placed > 0, placed % above - 1, batch["input_ids"])
        return ids, placed >= above

    def metrics_of_vectors(self, vectors):
        sums, _ = vectors["replaced_token_scores"]
        real, replaced = np.asarray(sums, np.float64).reshape([2, _BINS])
        said = replaced[_FIRST_REPLACED:].sum(), real[_FIRST_REPLACED:].sum()
        # The share of pairs of a replaced and a real piece in which the former has the higher score; ties count half.
        below = np.cumsum(real) - real / 2
        return {
            "replaced_token_auc": _ratio((replaced * below).sum(), replaced.sum() * real.sum(), 0.5),
            "replaced_token_precision": _ratio(said[0], sum(said), 0.0),
            "replaced_token_recall": _ratio(said[0], replaced.sum(), 0.0),
        }

    def identity(self):
        return {**super().identity(), **self._settings.kept()}

    def flops(self, batch_spec):
        batch_size, length = batch_spec["input_ids"].shape
        config, hidden = self.config, self.config.hidden_size
        predictions = batch_spec["masked_lm_positions"].shape[1]
        learnt = self._masked_lm.products(batch_spec)
        learnt += encoder_products(self._generator_config, length, predictions + 1)
        learnt += encoder_products(config, length, length) + length * hidden * (hidden + 1)
        drawn = predictions * config.embedding_size * config.vocab_size
        return batch_size * (TRAINING_FLOPS_PER_PRODUCT * learnt + 2 * drawn)

    def uncounted_flops(self, batch_spec):
        rows, config = batch_spec["masked_lm_positions"].shape.num_elements(), self.config
        drawn = piece_sampling.uncounted_flops(rows, config.embedding_size, config.vocab_size)
        return self._masked_lm.uncounted_flops(batch_spec) + drawn


def _at_positions(batch, values):
    """Returns int32 [B, S] with values int32 [B, P] at their `masked_lm_positions`, 0 elsewhere."""
    # Positions differ, but for those of unused predictions, whose value is 0. A sum over a comparison is one pass that
    # a compiler fuses, where a TPU would scatter one after the other.
    positions = tf.range(tf.shape(batch["input_ids"])[1])
    is_here = tf.equal(batch["masked_lm_positions"][:, :, None], positions)
    return tf.reduce_sum(tf.where(is_here, values[:, :, None], 0), axis=1)


def _count_scores(logits, labels, weights):
    """Returns how many real and how many replaced tokens have a logit in each bin, float32 [2 x bins]."""
    distances = tf.stop_gradient(logits) - _UNSURE
    bins_a_unit = (_FIRST_REPLACED - _BINS // 2) / math.log1p(_STEEPNESS * -_UNSURE)
    places = bins_a_unit * tf.sign(distances) * tf.math.log1p(_STEEPNESS * tf.abs(distances))
    bins = tf.cast(tf.floor(tf.clip_by_value(places + _BINS // 2, 0, _BINS - 1)), tf.int32)
    bins += _BINS * tf.cast(labels, tf.int32)
    return tf.math.unsorted_segment_sum(tf.reshape(weights, [-1]), tf.reshape(bins, [-1]), 2 * _BINS)


def _ratio(part, whole, otherwise):
    return float(part / whole) if whole else otherwise
