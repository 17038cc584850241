"""Masked and causal language modelling on one encoder (GPT-BERT, Charpentier and Samuel 2024).

Of the paper and ltgoslo/gpt-bert are the state before a masked piece, which tells it, so that both losses read one head
the same way; the share of causal examples; and that each loss is an average over its own pieces, weighted by its share.
There a share of the GPUs learns causally, here the same rows of every batch: whatever the number of devices, a step is
one program of one shape, and one call of the encoder, whose attention differs by row.
"""

import fractions

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.modeling.kernels.output_positions import with_first_position
from albert_tf.objectives.causal_lm import CausalLM
from albert_tf.objectives.flops import TRAINING_FLOPS_PER_PRODUCT, encoder_products
from albert_tf.objectives.masked_lm import MaskedLM
from albert_tf.objectives.objective import with_batch_size
from albert_tf.objectives.pretraining import Pretraining
from albert_tf.objectives.pretraining_loss import DataOptions, States
from albert_tf.objectives.refusals import refuse_entities, refuse_languages
from albert_tf.objectives.registry import Setting

_LONGEST_PERIOD = 100  # of rows after which causal and masked ones come in the same order again
_ROUNDING = 1e-3  # by how much a share such as 0.333 may miss a fraction

SETTINGS = (Setting("causal_share", 0.0625, "Share of hybrid's examples that are learnt causally."),)


class Hybrid(Pretraining):
    """The losses of `CausalLM`, of a share of the rows, and of `MaskedLM`, of the others; held out, both of all rows.

    Args:
        config: Hyper-parameters of the model.
        options: Of the data, and the values of `SETTINGS`.

    Raises:
        InputError: The model reads masked pieces off their own states, is causal, has embeddings of languages or knows
            entities, or the share is none.
    """

    # Which pieces are masked depends on an example's place in the batch, also held out.
    compares_examples = True

    def __init__(self, config: AlbertConfig, options: DataOptions):
        refuse_entities(config, "hybrid")
        if not config.masked_lm_is_shifted:
            raise InputError(
                "hybrid learns each masked piece from the state before it, and this model reads another one "
                "(masked_lm_is_shifted=false); set masked_lm_is_shifted to true, and is_causal to false, in "
                "`albert_config_file`"
            )
        refuse_languages(config, "hybrid")
        self._share = _as_fraction(options.settings["causal_share"])
        as_causal = config.replace(is_causal=True, masked_lm_is_shifted=False)
        self._causal_lm, self._masked_lm = CausalLM(as_causal, options), MaskedLM(config, options)
        super().__init__(config, [self._causal_lm, self._masked_lm])
        shares = float(self._share), float(1 - self._share)
        self.loss_coefficients = dict(zip(self.loss_coefficients, shares))
        self.blind_metric = None

    def check_batch_size(self, batch_size):
        """Checks that the share of a batch is a whole number of rows; see `Objective`."""
        period = self._share.denominator
        if batch_size % period:
            raise InputError(
                f"`causal_share={float(self._share):.4g}` of {batch_size} examples, which are learnt from at "
                "once, is not a whole number of them; make `train_batch_size`, divided by the number of "
                f"replicas and by `gradient_accumulation_steps`, a multiple of {period}, or choose another share"
            )

    def prepare(self, features, seed):
        """Returns every example as it is and masked; see `Objective`."""
        masked = self._masked_lm.prepare(features, seed)
        made = {**features, **masked, **self._causal_lm.prepare(features, seed)}
        made |= {"input_ids": features["input_ids"], "masked_input_ids": masked["input_ids"]}
        return {name: made[name] for name in self.batch_spec(features["input_ids"].shape[1])}

    def batch_spec(self, max_seq_length):
        """Returns what both losses read, and ids as they are and masked; see `Objective`."""
        ids = tf.TensorSpec([None, max_seq_length], tf.int32)
        of_losses = self._causal_lm.batch_spec(max_seq_length) | self._masked_lm.batch_spec(max_seq_length)
        return {"input_ids": ids, "masked_input_ids": ids, **of_losses}

    def loss_weights(self, batch):
        """Returns how many pieces each loss predicts in its rows; see `Objective`."""
        causal, masked = self._split(batch)
        return {"causal_lm_loss": self._causal_lm.weight(causal), "masked_lm_loss": self._masked_lm.weight(masked)}

    def compute(self, batch, training, dropout_seed, model):
        """Returns losses and metrics, in training each of its own rows; see `Objective`."""
        states_of = self._states_of_rows if training else self._states_of_all
        (causal, causal_states), (masked, masked_states) = states_of(batch, training, dropout_seed, model)
        results = {}
        for loss, states, rows in (
            (self._causal_lm, causal_states, causal),
            (self._masked_lm, masked_states, masked),
        ):
            results |= zip([loss.loss_name, *loss.metric_names], loss.compute(model, states, rows), strict=True)
        return results

    def _states_of_rows(self, batch, training, dropout_seed, model):
        """Returns the rows that each loss learns from, and their states: one call of the encoder for both."""
        period, num_causal = self._period_of(batch)
        rows = batch["input_ids"].shape[0] or tf.shape(batch["input_ids"])[0]
        is_causal = tf.range(rows) % period < num_causal
        ids = tf.where(is_causal[:, None], batch["input_ids"], batch["masked_input_ids"])
        states = self._encode(model, batch, ids, training=training, dropout_seed=dropout_seed, is_causal=is_causal)
        return [(rows, States(rows["states"], None, False)) for rows in self._split({**batch, "states": states})]

    def _states_of_all(self, batch, training, dropout_seed, model):
        """Returns the whole batch for each loss, and the states of a call of the encoder for each."""
        positions = with_first_position(model.masked_lm_head.positions_read(batch["masked_lm_positions"]))
        causal = self._encode(model, batch, batch["input_ids"], is_causal=True)
        masked = self._encode(model, batch, batch["masked_input_ids"], is_causal=False, output_positions=positions)
        return (batch, States(causal, None, False)), (batch, States(masked, None, True))

    def _encode(self, model, batch, ids, **options):
        inputs = {"input_ids": ids, "document_ids": batch["document_ids"], "position_ids": batch["position_ids"]}
        return model.encoder(inputs, **options)["sequence_output"]

    def _split(self, batch):
        """Returns the causal rows of a batch, and the others: slices, which a TPU takes without looking rows up."""
        period, num_causal = self._period_of(batch)

        def rows(values, part):
            groups = tf.reshape(values, [-1, period, *values.shape[1:]])[:, part]
            return tf.reshape(groups, [-1, *values.shape[1:]])

        parts = slice(None, num_causal), slice(num_causal, None)
        return [{name: rows(values, part) for name, values in batch.items()} for part in parts]

    def _period_of(self, batch):
        """Returns the number of rows after which their kinds repeat, and how many of these come first and are causal.

        A batch that `check_batch_size` refuses can be planned all the same, as one period.
        """
        rows, share = batch["input_ids"].shape[0], self._share
        is_one_period = rows is not None and rows % share.denominator
        return (rows, max(1, int(rows * share))) if is_one_period else (share.denominator, share.numerator)

    def identity(self):
        """Returns name and share; see `Objective`."""
        return {**super().identity(), "causal_share": float(self._share)}

    def flops(self, batch_spec):
        """Returns the operations of a step: of the encoder at all positions, and of the head; see `Objective`."""
        batch_size, length = batch_spec["input_ids"].shape
        products = batch_size * encoder_products(self.config, length, length)
        products += sum(rows["input_ids"].shape[0] * loss.products(rows) for loss, rows in self._specs(batch_spec))
        return TRAINING_FLOPS_PER_PRODUCT * products

    def uncounted_flops(self, batch_spec):
        """Returns what loops of the losses hide; see `Objective`."""
        return sum(loss.uncounted_flops(rows) for loss, rows in self._specs(batch_spec))

    def _specs(self, batch_spec):
        """Returns each loss with the spec of its rows."""
        period, num_causal = self._period_of(batch_spec)
        causal = batch_spec["input_ids"].shape[0] // period * num_causal
        sizes = causal, batch_spec["input_ids"].shape[0] - causal
        return [(loss, with_batch_size(batch_spec, size)) for loss, size in zip(self._losses, sizes)]


def _as_fraction(share):
    fraction = fractions.Fraction(share).limit_denominator(_LONGEST_PERIOD) if 0 < share < 1 else 0  # of NaN, too
    if not 0 < fraction < 1 or abs(fraction - share) > _ROUNDING:
        raise InputError(
            "`causal_share` must be more than 0 and less than 1, and a fraction of at most "
            f"{_LONGEST_PERIOD} parts, such as 0.0625 or 0.333. Received: {share:g}"
        )
    return fraction
