"""ALBERT's objective: masked language model and sentence order prediction (paper, section 3.1)."""

import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.modeling.kernels import tied_cross_entropy
from albert_tf.objectives.flops import TRAINING_FLOPS_PER_PRODUCT, encoder_products
from albert_tf.objectives.losses import weighted_cross_entropy
from albert_tf.objectives.objective import POOLER, Objective, encoder_batch_spec
from albert_tf.pretraining_data.masking import default_max_predictions

_MASKED_LM_PROB = 0.15
_LABEL_WEIGHTS = {"masked_lm_loss": "masked_lm_weights", "sentence_order_loss": "example_weights"}


class AlbertPretraining(Objective):
    """Adds both losses with equal weight, as the original does (run_pretraining.py).

    Args:
        config: Hyper-parameters.
        has_pairs: Whether the examples are pairs of segments. If not, there is no loss of sentence order, and the
            variables that serve it alone, those of the pooler and of that head, stay as they are.
        max_predictions_per_seq: Masked pieces P of an example; None for 15% of its length.
    """

    title = "pre-training loss"

    def __init__(self, config: AlbertConfig, has_pairs: bool = True, max_predictions_per_seq: int | None = None):
        self.config = config
        self._has_pairs, self._max_predictions_per_seq = has_pairs, max_predictions_per_seq
        heads = ("masked_lm", "sentence_order") if has_pairs else ("masked_lm",)
        self.loss_coefficients = {f"{head}_loss": 1.0 for head in heads}
        self.metric_names = tuple(f"{head}_accuracy" for head in heads)

    def make_model(self, **options):
        """Returns an `AlbertForPreTraining`; see `Objective`."""
        return AlbertForPreTraining(self.config, **options)

    def batch_spec(self, max_seq_length):
        """Returns what `pretraining_data.input_pipeline` gives; see `Objective`."""
        predictions = self._max_predictions_per_seq or default_max_predictions(max_seq_length, _MASKED_LM_PROB)
        return {
            **encoder_batch_spec(max_seq_length),
            "masked_lm_positions": tf.TensorSpec([None, predictions], tf.int32),
            "masked_lm_ids": tf.TensorSpec([None, predictions], tf.int32),
            "sentence_order_labels": tf.TensorSpec([None], tf.int32),
            "example_weights": tf.TensorSpec([None], tf.float32),
            "masked_lm_weights": tf.TensorSpec([None, predictions], tf.float32),
        }

    def loss_weights(self, batch):
        """Returns the number of masked pieces, and of pairs; see `Objective`."""
        return {name: tf.reduce_sum(batch[_LABEL_WEIGHTS[name]]) for name in self.loss_coefficients}

    def compute(self, batch, training, dropout_seed, model):
        """Returns losses and accuracies of both heads; see `Objective`."""
        weights = batch["masked_lm_weights"]
        loss, right, sentence_order_logits = model.masked_lm_cross_entropy(
            batch, batch["masked_lm_ids"], weights, training=training, dropout_seed=dropout_seed
        )
        total = tf.reduce_sum(weights)
        results = {"masked_lm_loss": (loss, total), "masked_lm_accuracy": (right, total)}
        if self._has_pairs:
            results["sentence_order_loss"], results["sentence_order_accuracy"] = weighted_cross_entropy(
                sentence_order_logits, batch["sentence_order_labels"], batch["example_weights"]
            )
        return results

    def untouched(self, model):
        """Returns what serves sentence order alone, if that is not learnt; see `Objective`."""
        return () if self._has_pairs else (POOLER, "sentence_order_head/")

    def flops(self, batch_spec):
        """Returns the operations of a step; see `Objective`.

        To those of the encoder the heads add P (H E + E V) + H^2 + 2 H multiplications for each example.
        """
        config = self.config
        batch_size, predictions = batch_spec["masked_lm_positions"].shape
        encoder = encoder_products(config, batch_spec["input_ids"].shape[1], predictions + 1)
        masked_lm = predictions * config.embedding_size * (config.hidden_size + config.vocab_size)
        sentence_order = config.hidden_size**2 + 2 * config.hidden_size
        return TRAINING_FLOPS_PER_PRODUCT * batch_size * (encoder + masked_lm + sentence_order)

    def uncounted_flops(self, batch_spec):
        """Returns what the loop over chunks of logits hides; see `Objective`."""
        rows = batch_spec["masked_lm_positions"].shape.num_elements()
        return tied_cross_entropy.uncounted_flops(rows, self.config.embedding_size, self.config.vocab_size)
