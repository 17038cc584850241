"""Fine-tuning to give each text a vector, so that the cosine of two vectors says how alike the texts are."""

from types import MappingProxyType

import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.finetuning.datasets import COLUMN_TYPES, DATASETS, DataFiles, files_of
from albert_tf.finetuning.task import CUT, FinetuningTask, TaskKind
from albert_tf.finetuning.tasks.labelled_text import LabelledText, encode_and_count_cut, read_examples
from albert_tf.finetuning.tasks.regression import Regression
from albert_tf.modeling import AlbertForVectors
from albert_tf.objectives.losses import weighted_cross_entropy
from albert_tf.objectives.objective import encoder_batch_spec, encoder_products

# What vectors may be learnt from, and what chooses the best checkpoint where there are no numbers.
LEARNS_FROM = {"numbers": "loss", "pairs": "accuracy", "texts": "loss"}

# What cosines are divided by before a softmax (Gao et al. 2021, section 2).
_TEMPERATURE = 0.05
_IMPOSSIBLE = -1e9


class Vectors(Regression):
    """The cosine of the vectors of two texts, which are read apart. Examples are `LabelledText`s.

    A prediction is a dictionary of the "score", the cosine.

    Args:
        files: The meaning of the files' columns; `is_regression` says that they hold numbers to compare cosines with.
        learns_from: "numbers", labels whose order the cosines of pairs come to have (CoSENT); "pairs", of which each
            text is to find its partner among those of a replica's batch (InfoNCE; van den Oord et al. 2018); or
            "texts", of which each is its own partner, read with another dropout (SimCSE; Gao et al. 2021).
    """

    kind = TaskKind("vectors")
    loss_name = "contrastive_loss"
    setting_types = MappingProxyType({**COLUMN_TYPES, "vectors": str})  # the setting of the command, too
    # A vector is the mean of all last states, [CLS] and [SEP] among them.
    encoder_settings = MappingProxyType({"pooling": "all"})
    compares_examples = True
    error_columns = ()

    def __init__(self, config: AlbertConfig, files: DataFiles = DATASETS["sts-b"], learns_from: str = "numbers"):
        if learns_from not in LEARNS_FROM:
            raise InputError(f"`vectors` must be one of {', '.join(LEARNS_FROM)}. Received: {learns_from!r}")
        if learns_from != "texts" and files.text_pair_column is None:
            raise InputError(f"`vectors={learns_from}` reads pairs; name the second text with `text_pair_column`")
        if learns_from == "pairs" and files.is_regression:
            raise InputError("`vectors=pairs` takes all pairs for such as belong together; use `vectors=numbers`")
        super().__init__(config, files)
        self.learns_from, self._has_numbers = learns_from, files.is_regression
        self.metric_names = () if learns_from == "numbers" else ("accuracy",)
        self.scores_predictions = self._has_numbers and files.text_pair_column is not None
        self.selection_metric = files.metrics[0] if self.scores_predictions else LEARNS_FROM[learns_from]
        self.may_hide_pieces = False  # for it changes what a text says

    def make_model(self, **options):
        return AlbertForVectors(self.config, **options)

    def batch_spec(self, max_seq_length):
        """Returns the encoder's inputs [None, texts, S], the numbers and the weights [None]."""
        shape = [None, len(self._files.text_columns), max_seq_length]
        return {
            **{name: tf.TensorSpec(shape, spec.dtype) for name, spec in encoder_batch_spec(max_seq_length).items()},
            self.label_name: tf.TensorSpec([None], self.label_type),
            "example_weights": tf.TensorSpec([None], tf.float32),
        }

    def products(self, batch_spec):
        _, num_texts, max_seq_length = batch_spec["input_ids"].shape
        views = 2 if self.learns_from == "texts" else 1
        return views * num_texts * encoder_products(self.config, max_seq_length, max_seq_length)

    def read(self, path, needs_labels=True):
        if not needs_labels:
            self._check_compares()
        if self._has_numbers:
            return super().read(path, needs_labels)
        examples = read_examples(path, self._files, needs_label=False)
        labelled = next((example for example in examples if example.label), None)
        if labelled and self.learns_from == "pairs":
            raise InputError(
                f"{path}, line {labelled.line}: labels under {self._files.label_column}, but `vectors=pairs` takes all "
                "pairs for such as belong together; leave only these in the file, without labels"
            )
        return examples

    def examples_of(self, inputs):
        self._check_compares()
        return super().examples_of(inputs)

    def _check_compares(self):
        """Raises InputError if there is nothing to predict: the cosine of a text and itself is 1."""
        if self._files.text_pair_column is None:
            raise InputError("single texts were learnt, so there is no pair to predict; use encode and similarity")

    def encode(self, examples, tokenizer, max_seq_length):
        """Returns the encoder's inputs, int32 [N, texts, S], and the numbers [N], 0 where there is none."""
        texts = [LabelledText(text, None, None, 0) for example in examples for text in example.columns.values()]
        features = encode_and_count_cut(tokenizer, texts, max_seq_length)
        shaped = {name: values.reshape(len(examples), -1, *values.shape[1:]) for name, values in features.items()}
        return {**shaped, self.label_name: self.label_values(examples)}

    def compute(self, batch, training, dropout_seed, model):
        inputs = _texts_apart(batch)
        weights = self.weights(batch)
        if self.learns_from == "texts":
            views = {name: tf.tile(values, [2, 1]) for name, values in inputs.items()}
            vectors = model(views, training=training, dropout_seed=dropout_seed)["vectors"]
            ids, weights = inputs["input_ids"], tf.repeat(weights, batch["input_ids"].shape[1])
            return _told_apart(*tf.split(vectors, 2), ids, ids, weights)
        vectors = model(inputs, training=training, dropout_seed=dropout_seed)["vectors"]
        if self.learns_from == "numbers":
            losses = order_loss(cosines(*_halves(vectors)), batch[self.label_name], weights)
            count = tf.reduce_sum(weights)
            return {self.loss_name: (losses * count, count)}
        return _told_apart(*_halves(vectors), *_halves(inputs["input_ids"]), weights)

    def outputs(self, batch, model):
        """Returns `scores` float32 [B]: of a text by itself 1."""
        vectors = model(_texts_apart(batch), training=False)["vectors"]
        vectors = tf.reshape(vectors, [-1, batch["input_ids"].shape[1], vectors.shape[-1]])
        return {"scores": cosines(vectors[:, 0], vectors[:, -1])}

    def predict(self, examples, features, outputs):
        return [{"score": float(score)} for score in outputs["scores"]]

    def describe(self, path, examples, features):
        if self.learns_from == "numbers":
            return super().describe(path, examples, features)
        return [f"{len(examples):,} {self.learns_from} in {path}"]

    def linear_model(self):
        return super().linear_model() if self.learns_from == "numbers" else None

    def blind_scores(self, examples):
        if not self.scores_predictions:
            return "", {}
        rule, scores = super().blind_scores(examples)
        return rule, {name: score for name, score in scores.items() if name in self._files.metrics}

    def describe_cuts(self, features, max_seq_length, where=""):
        return super().describe_cuts({**features, CUT: features[CUT].ravel()}, max_seq_length, where)

    # A vector has no answer that another model's could be compared with.
    taught = FinetuningTask.taught

    @classmethod
    def from_head(cls, config, labels, gives_probability):
        return cls(config)

    @classmethod
    def from_settings(cls, config, settings):
        return cls(config, files_of(settings), settings["vectors"])

    def settings(self):
        return {**super().settings(), "vectors": self.learns_from}


def cosines(first: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
    """Returns the cosines of vectors [B, H] each, float32 [B]."""
    first, second = (tf.math.l2_normalize(tf.cast(vectors, tf.float32), axis=-1) for vectors in (first, second))
    return tf.reduce_sum(first * second, axis=-1)


def order_loss(scores: tf.Tensor, labels: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Returns log(1 + the sum of exp((s_j - s_i) / T) over all pairs of examples with labels y_i > y_j), a scalar.

    That is CoSENT's loss (Su 2022, kexue.fm/archives/8847), of scores and labels float32 [B]; those of weight 0 count
    for nothing.
    """
    counts = weights > 0
    is_wrong_way = (labels[:, None] > labels[None]) & counts[:, None] & counts[None]
    differences = (scores[None] - scores[:, None]) / _TEMPERATURE
    terms = tf.reshape(tf.where(is_wrong_way, differences, _IMPOSSIBLE), [-1])
    return tf.reduce_logsumexp(tf.concat([[0.0], terms], axis=0))


def _told_apart(first, second, first_ids, second_ids, weights):
    """Returns loss and accuracy of finding each vector's own partner among those of the batch, either way.

    Partners with the same text, of ids int32 [M, S], are no wrong ones, and those of weight 0 are none.
    """
    first, second = (tf.math.l2_normalize(tf.cast(vectors, tf.float32), axis=-1) for vectors in (first, second))
    own = tf.range(tf.shape(first)[0])
    is_own = own[:, None] == own[None]
    is_out = (_are_equal(first_ids) | _are_equal(second_ids) | (weights == 0.0)[None]) & ~is_own
    scores = tf.where(is_out, _IMPOSSIBLE, tf.matmul(first, second, transpose_b=True) / _TEMPERATURE)
    back = tf.where(is_out, _IMPOSSIBLE, tf.matmul(second, first, transpose_b=True) / _TEMPERATURE)
    found = [weighted_cross_entropy(each, own, weights) for each in (scores, back)]
    (loss, accuracy), (loss_back, accuracy_back) = found

    def both(one, other):
        return tuple(map(tf.add, one, other))

    return {Vectors.loss_name: both(loss, loss_back), "accuracy": both(accuracy, accuracy_back)}


def _are_equal(ids):
    """Returns which rows of ids [M, S] are equal, bool [M, M]."""
    return tf.reduce_all(ids[:, None] == ids[None], axis=-1)


def _texts_apart(batch):
    """Returns the encoder's inputs [B texts, S]: the texts of the first example, then those of the second."""
    length = tf.shape(batch["input_ids"])[-1]
    return {name: tf.reshape(batch[name], [-1, length]) for name in encoder_batch_spec(1)}


def _halves(values):
    """Returns the first and the second text's rows of values [2 B, ...]."""
    return values[::2], values[1::2]
