"""The pre-training task: masked language model and sentence order prediction."""

from albert_tf.training.metrics import weighted_cross_entropy


class PretrainingTask:
    """Adds the two losses with equal weight, as the original does (run_pretraining.py)."""

    loss_names = ("masked_lm_loss", "sentence_order_loss")
    metric_names = ("masked_lm_accuracy", "sentence_order_accuracy")

    def compute(self, model, batch, training, dropout_seed):
        """Returns (sum, weight) of each loss and metric; see `Task`. The batch is that of `eval_dataset`."""
        outputs = model(batch, training=training, dropout_seed=dropout_seed)
        masked_lm = weighted_cross_entropy(
            outputs["masked_lm_logits"], batch["masked_lm_ids"], batch["masked_lm_weights"]
        )
        sentence_order = weighted_cross_entropy(
            outputs["sentence_order_logits"], batch["sentence_order_labels"], batch["example_weights"]
        )
        return {
            "masked_lm_loss": masked_lm[0],
            "masked_lm_accuracy": masked_lm[1],
            "sentence_order_loss": sentence_order[0],
            "sentence_order_accuracy": sentence_order[1],
        }
