"""Fine-tuning to find the answer to a question in a text."""

import tensorflow as tf

from albert_tf.training.metrics import weighted_cross_entropy


class QuestionAnsweringTask:
    """The mean of the cross-entropies of an answer's first and last position (original run_squad_v1.py)."""

    loss_names = ("span_loss",)
    metric_names = ("start_accuracy", "end_accuracy")
    selection_metric = "loss"

    def loss_weights(self, batch):
        """Returns the weight of the loss in one replica's batch; see `Task`."""
        return {"span_loss": tf.reduce_sum(batch["example_weights"])}

    def compute(self, model, batch, training, dropout_seed):
        """Returns (sum, weight) of the loss and of each metric; see `Task`.

        Args:
            model: `AlbertForQuestionAnswering`.
            batch: What the encoder takes, `start_positions` and `end_positions` int32 [B], and `example_weights`
                float32 [B].
            training: Whether dropout is on.
            dropout_seed: int32 [2], or None.
        """
        logits = model(batch, training=training, dropout_seed=dropout_seed)
        weights = batch["example_weights"]
        (start_loss, total), start_accuracy = weighted_cross_entropy(
            logits["start_logits"], batch["start_positions"], weights
        )
        (end_loss, _), end_accuracy = weighted_cross_entropy(logits["end_logits"], batch["end_positions"], weights)
        return {
            "span_loss": (0.5 * (start_loss + end_loss), total),
            "start_accuracy": start_accuracy,
            "end_accuracy": end_accuracy,
        }
