"""A fine-tuning task of its own: what somebody who adds one has to write."""

import numpy as np
import tensorflow as tf

from albert_tf.base.files import read_text, write_text
from albert_tf.finetuning.task import FinetuningTask
from albert_tf.finetuning.tasks.labelled_text import LabelledText, encode_examples
from albert_tf.modeling import AlbertForSequenceClassification
from albert_tf.objectives.losses import weighted_cross_entropy
from albert_tf.objectives.objective import encoder_batch_spec


class AsksSomething(FinetuningTask):
    """Tells whether a line of text ends with a question mark that it was robbed of."""

    metric_names = ("accuracy",)
    scores_predictions = True

    def __init__(self, config):
        self.config = config
        self.loss_coefficients = {"question_loss": 1.0}

    def make_model(self, **options):
        return AlbertForSequenceClassification(self.config, 2, **options)

    def batch_spec(self, max_seq_length):
        labels = {"label_ids": tf.TensorSpec([None], tf.int32), "example_weights": tf.TensorSpec([None], tf.float32)}
        return {**encoder_batch_spec(max_seq_length), **labels}

    def compute(self, batch, training, dropout_seed, model):
        logits = model(batch, training=training, dropout_seed=dropout_seed)["logits"]
        loss, accuracy = weighted_cross_entropy(logits, batch["label_ids"], batch["example_weights"])
        return {"question_loss": loss, "accuracy": accuracy}

    def read(self, path, needs_labels=True):
        return read_text(path, "the texts").splitlines()

    def encode(self, examples, tokenizer, max_seq_length):
        texts = [LabelledText(line.rstrip("?"), None, None, 0) for line in examples]
        asks = np.array([line.endswith("?") for line in examples], np.int32)
        return {**encode_examples(tokenizer, texts, max_seq_length), "label_ids": asks}

    def outputs(self, batch, model):
        return {"logits": model(batch)["logits"]}

    def predict(self, examples, features, outputs):
        return [bool(row.argmax()) for row in outputs["logits"]]

    def score(self, examples, predictions):
        return {"found": sum(guess for line, guess in zip(examples, predictions) if line.endswith("?"))}

    def write_predictions(self, path, examples, predictions):
        write_text(path, "".join(f"{line}\t{asks}\n" for line, asks in zip(examples, predictions)))
