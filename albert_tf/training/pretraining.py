"""The pre-training task: masked language model and sentence order prediction."""

import tensorflow as tf

from albert_tf.training.metrics import weighted_cross_entropy

# What each head of the model answers to, and how much each answer weighs.
_LABELS_AND_WEIGHTS = {
    "masked_lm": ("masked_lm_ids", "masked_lm_weights"),
    "sentence_order": ("sentence_order_labels", "example_weights"),
}


class PretrainingTask:
    """Adds the losses of the heads with equal weight, as the original does (run_pretraining.py).

    Args:
        has_pairs: Whether the examples are pairs of segments. If not, there is no loss of sentence order, and the
            variables that serve it alone, the pooler's and that head's, are left as they are.
    """

    def __init__(self, has_pairs: bool = True):
        self._heads = ("masked_lm", "sentence_order") if has_pairs else ("masked_lm",)
        self.loss_names = tuple(f"{head}_loss" for head in self._heads)
        self.metric_names = tuple(f"{head}_accuracy" for head in self._heads)
        self.selection_metric = "loss"

    def loss_weights(self, batch):
        """Returns the weight of each loss in one replica's batch; see `Task`."""
        return {f"{head}_loss": tf.reduce_sum(batch[_LABELS_AND_WEIGHTS[head][1]]) for head in self._heads}

    def compute(self, model, batch, training, dropout_seed):
        """Returns (sum, weight) of each loss and metric; see `Task`. The batch is that of `eval_dataset`."""
        weights = batch["masked_lm_weights"]
        loss, right, sentence_order_logits = model.masked_lm_cross_entropy(
            batch, batch["masked_lm_ids"], weights, training=training, dropout_seed=dropout_seed
        )
        total = tf.reduce_sum(weights)
        results = {"masked_lm_loss": (loss, total), "masked_lm_accuracy": (right, total)}
        if "sentence_order" in self._heads:
            results["sentence_order_loss"], results["sentence_order_accuracy"] = weighted_cross_entropy(
                sentence_order_logits, batch["sentence_order_labels"], batch["example_weights"]
            )
        return results
