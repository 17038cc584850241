"""Fine-tuning to give a text one of several labels."""

import numpy as np
import tensorflow as tf

from albert_tf.files import write_text
from albert_tf.pretraining_data.input_pipeline import pad_batch
from albert_tf.tasks.labelled_text import LabelledText
from albert_tf.training.devices.distribution import distribute_batches, read_batches
from albert_tf.training.metrics import weighted_cross_entropy

PREDICTIONS_FILE = "predictions.tsv"


class ClassificationTask:
    """Cross-entropy over the labels."""

    loss_names = ("classification_loss",)
    metric_names = ("accuracy",)
    selection_metric = "accuracy"

    def loss_weights(self, batch):
        """Returns the weight of the loss in one replica's batch; see `Task`."""
        return {"classification_loss": tf.reduce_sum(batch["example_weights"])}

    def compute(self, model, batch, training, dropout_seed):
        """Returns (sum, weight) of loss and accuracy; see `Task`. The batch is one of this module's data sets."""
        logits = model(batch, training=training, dropout_seed=dropout_seed)["logits"]
        loss, accuracy = weighted_cross_entropy(logits, batch["label_ids"], batch["example_weights"])
        return {"classification_loss": loss, "accuracy": accuracy}


def train_dataset(
    features: dict[str, np.ndarray], global_batch_size: int, seed: int, start_step: int = 0
) -> tf.data.Dataset:
    """Returns endless batches; each epoch is a new permutation of all examples.

    Args:
        features: By name, [N, ...]; with `label_ids` int32 [N].
        global_batch_size: Batch size B over all replicas.
        seed: Seed of the order.
        start_step: Number of batches to leave out: where a resumed run goes on.

    Returns:
        Dataset of dictionaries: the features, [B, ...], and `example_weights` float32 [B], all 1.
    """
    num_examples = len(features["label_ids"])
    tensors = {name: tf.constant(values) for name, values in features.items()}

    def epoch(number):
        order = tf.random.experimental.stateless_shuffle(tf.range(num_examples), tf.stack([number, seed]))
        return tf.data.Dataset.from_tensor_slices(order)

    def gather(rows):
        batch = {name: tf.gather(values, rows) for name, values in tensors.items()}
        return {**batch, "example_weights": tf.ones([global_batch_size])}

    rows = tf.data.Dataset.counter().flat_map(epoch).batch(global_batch_size, drop_remainder=True)
    return rows.skip(start_step).map(gather).prefetch(tf.data.AUTOTUNE)


def eval_dataset(features: dict[str, np.ndarray], global_batch_size: int) -> tf.data.Dataset:
    """Returns every example once, in order; examples that fill up the last batch weigh zero.

    Arguments and result as for `train_dataset`.
    """
    weights = np.ones(len(features["label_ids"]), np.float32)
    batches = tf.data.Dataset.from_tensor_slices({**features, "example_weights": weights}).batch(global_batch_size)
    return batches.map(lambda batch: pad_batch(batch, global_batch_size)).prefetch(tf.data.AUTOTUNE)


def predict(strategy: tf.distribute.Strategy, model: tf.keras.Model, dataset: tf.data.Dataset) -> np.ndarray:
    """Returns float32 [N, labels], the probability of each label of every example of an `eval_dataset`, in order."""

    def replica_step(batch):
        return tf.nn.softmax(model(batch, training=False)["logits"]), batch["example_weights"]

    @tf.function
    def step(batch):
        return strategy.run(replica_step, args=(batch,))

    def predict_all(batches):
        rows = []
        for batch in batches:
            probabilities, weights = (strategy.gather(values, axis=0).numpy() for values in step(batch))
            rows.append(probabilities[weights > 0])
        return np.concatenate(rows)

    return read_batches(distribute_batches(strategy, dataset), predict_all)


def write_predictions(
    path: str, examples: list[LabelledText], labels: tuple[str, ...], probabilities: np.ndarray
) -> None:
    """Writes a line for each example: text(s), the label given (empty if none), predicted label, probabilities."""
    has_pair = examples[0].text_pair is not None
    lines = [["text", *(["text_pair"] if has_pair else []), "label", "prediction", *(f"p({x})" for x in labels)]]
    for example, row in zip(examples, probabilities):
        texts = [example.text, example.text_pair] if has_pair else [example.text]
        lines.append([*texts, example.label or "", labels[row.argmax()], *(f"{value:.4f}" for value in row)])
    write_text(path, "".join("\t".join(line) + "\n" for line in lines))
