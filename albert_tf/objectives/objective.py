"""The interface between an objective and everything that trains, evaluates, plans or compiles it."""

import abc
import collections.abc
import types
import typing

import numpy as np
import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.modeling.kernels.attention import num_distances

# Only matrix products count, as usual in the literature. A product of an [m, k] and a [k, n] matrix takes 2 m k n
# operations, and a training step takes each product once forward and twice backward.
TRAINING_FLOPS_PER_PRODUCT = 3 * 2


def encoder_products(config: AlbertConfig, max_seq_length: int, positions_read: int) -> int:
    """Returns the multiplications of the encoder for one example.

    With hidden size H, embedding size E, intermediate size I and L blocks, an example of S tokens of which the heads
    read R takes

        S (E H + (L - 1) (4 H^2 + 2 H I + 2 S H) + 2 H^2) + R (2 H^2 + 2 H I + 2 S H)

    because the last block computes only keys and values for all positions, and the rest for those that are read; it is
    not applied where there are none. Entity vectors of F numbers add S (2 H + F) H. With `relative_attention` the last
    block attends from all positions, and each position is multiplied once or twice with M distances, M H; putting
    scores in their place, and projecting distances once a batch, is not counted.
    """
    hidden, blocks = config.hidden_size, config.num_hidden_layers * config.inner_group_num
    keys_and_values = 2 * hidden**2
    rest_of_a_position = 2 * hidden**2 + 2 * hidden * config.intermediate_size + 2 * max_seq_length * hidden
    if config.relative_attention != "none":
        attending = hidden**2 + 2 * max_seq_length * hidden
        rest_of_a_position -= attending
        num_terms = len(config.relative_attention.split("|"))
        keys_and_values += attending + num_terms * min(num_distances(config), 2 * max_seq_length) * hidden
    mapping = 0 if config.embedding_size == hidden else config.embedding_size * hidden
    fusion = hidden * (2 * hidden + config.entity_size) if config.num_entities else 0
    every_position = mapping + fusion + (blocks - 1) * rest_of_a_position
    every_position += (blocks if positions_read else blocks - 1) * keys_and_values
    return max_seq_length * every_position + positions_read * rest_of_a_position


def classifier_products(config: AlbertConfig, max_seq_length: int, num_outputs: int) -> int:
    """Returns the multiplications of a classifier, encoder and head, for one example."""
    # The head's are a pooler's H^2 and H for each output if it reads the first state; H each for the average or the
    # last; and for aligned pairs S^2 (2 E + H) + S H (4 H + 2 E + 3) and 2 H for each output.
    hidden, length = config.hidden_size, max_seq_length
    if config.classifier_pooling == "first":
        return encoder_products(config, length, 1) + hidden**2 + num_outputs * hidden
    head = num_outputs * hidden
    if config.classifier_pooling == "last":
        return encoder_products(config, length, 2) + head
    if config.classifier_pooling == "aligned":
        embedding = config.embedding_size
        aligning, comparing = length**2 * (2 * embedding + hidden), length * hidden * (4 * hidden + 2 * embedding + 3)
        head = aligning + comparing + 2 * num_outputs * hidden
    return encoder_products(config, length, length) + head


Batch = collections.abc.Mapping[str, tf.Tensor]
BatchSpec = dict[str, tf.TensorSpec]
# The sum of a loss or metric over some examples, and the sum of their weights; two float32 scalars.
# Of a metric that is a vector, two vectors.
WeightedSum = tuple[tf.Tensor, tf.Tensor]
# The beginning of the names of the pooler's variables.
POOLER = "encoder/pooler/"


class Objective(abc.ABC):
    """Which model learns, from which batches, by which losses, and what is measured on the way.

    Training, evaluation, the TPU planner and the compile tests know an objective by this interface alone. A new one
    implements the abstract methods below and is registered with `objectives.register`, or in `finetuning.TASKS`. In the
    methods, `batch` is one replica's, as in `batch_spec`, and `models` are those of `make_models`, by name.

    Attributes:
        config: Hyper-parameters of the model.
        loss_coefficients: The losses by name; training minimises the sum of each loss times its coefficient.
        metric_names: Metrics besides the losses.
        selection_metric: The held-out metric that decides which checkpoint is best: the lowest if it ends in "loss", as
            "loss" itself, the sum above, else the highest.
        frozen_models: Those of `make_models` that are neither trained nor saved, such as a teacher, with the folder, of
            our format, that holds the weights of each, "" for none. A run is resumed only as long as their content is
            the same.
        auxiliary_models: Those that are trainable but only of use in training; checkpoints hold them.
        vector_metrics: The lengths of those of `metric_names` that are vectors, such as scores counted in bins.
        compares_examples: Whether an example's loss depends on the others of its batch, or on its place there, so that
            evaluations are equal only with batches of one size, and the cores of a CPU can't share one.
        blind_metric: The metric that a packing's rule which reads no text also has a value of; None if there is none.
        carries_vocabulary: Whether a run may begin with a model of another vocabulary than its data's, by carrying over
            the embeddings of tokens.
        fills_masks: Whether `make_model`'s model has learnt to fill in [MASK].
        predicts_next: Whether it has learnt to predict the next token.
        name: Its name in registries and runs; None for that of its class.
        title: Title of the plot of the losses.
    """

    config: AlbertConfig
    loss_coefficients: collections.abc.Mapping[str, float]
    metric_names: tuple[str, ...] = ()
    selection_metric: str = "loss"
    frozen_models: collections.abc.Mapping[str, str] = types.MappingProxyType({})
    auxiliary_models: tuple[str, ...] = ()
    vector_metrics: collections.abc.Mapping[str, int] = types.MappingProxyType({})
    compares_examples: bool = False
    blind_metric: str | None = None
    carries_vocabulary: bool = False
    fills_masks: bool = True
    predicts_next: bool = False
    name: str | None = None
    title: str = "loss"

    @abc.abstractmethod
    def make_model(self, **options) -> tf.keras.Model:
        """Returns a new model; options are `remat`, `attention` and `dtype` of `AlbertEncoder`."""

    def make_models(self, **options) -> dict[str, tf.keras.Model]:
        """Returns all models that a step needs, by name; "model" is the one that the run is for.

        Override it where there are several. The names are the keyword arguments of `compute`.
        """
        return {"model": self.make_model(**options)}

    def begin(self, model: tf.keras.Model) -> tuple[str, list[str]] | None:
        """Assigns the initial weights of `make_model`'s model where no checkpoint gives them.

        Returns:
            A line that describes them, and the names of variables that stay random; None if nothing is assigned.
        """
        return None

    def prepare(self, features: dict[str, tf.Tensor], seed: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the batch, as in `batch_spec`, for B records, in the graph of the input pipeline; draws masks, too.

        Args:
            features: Those of `input_pipeline.parse`.
            seed: int64 [2], for random draws: a function of the run's seed, the step and the host.
        """
        return features

    @abc.abstractmethod
    def batch_spec(self, max_seq_length: int) -> BatchSpec:
        """Returns shape [None, ...] and dtype of every feature of a batch; None is the number of examples."""

    def separates_documents(self, batch_spec: BatchSpec) -> bool:
        """Returns whether tokens see only their own document: here, whether the batch has `document_ids`."""
        return "document_ids" in batch_spec

    @abc.abstractmethod
    def loss_weights(self, batch: Batch) -> dict[str, tf.Tensor]:
        """Returns the weight of each loss in one replica's batch, a float32 scalar, from the batch alone."""

    @abc.abstractmethod
    def compute(
        self, batch: Batch, training: bool, dropout_seed: tf.Tensor | None, **models: tf.keras.Model
    ) -> dict[str, WeightedSum]:
        """Returns (sum, weight) of each loss and metric over the batch, float32 scalars, or [n] for a vector of n.

        Args:
            batch: As in `batch_spec`.
            training: Whether dropout is on.
            dropout_seed: int32 [2], the seed of every dropout in this step; None outside training.
            **models: To be named in the signature: `compute(self, batch, ..., model)`.
        """

    def metrics_of_vectors(self, vectors: dict[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, float]:
        """Returns metrics by name, computed from the sums and weights of `vector_metrics` over all examples."""
        return {}

    def identity(self) -> dict[str, typing.Any]:
        """Returns JSON values by name that tell it from others; a run is resumed only with the same ones."""
        return {"objective": self.name or type(self).__name__}

    def followers(self, models: dict[str, tf.keras.Model]) -> dict[str, str]:
        """Returns which trainable variables follow which others, by their names in `learnt_variables`.

        Both begin with the same values. From then on each update of the followed one, from its own gradient, is also
        added to the follower, beside the follower's own. So the follower is the sum of the other and of a part that
        only its own gradient trains.
        """
        return {}

    def untouched(self, model: tf.keras.Model) -> tuple[str, ...]:
        """Returns the beginnings of the names of `make_model`'s variables that no loss depends on.

        Where they began at random they still are, which a run writes down for those who go on with its weights.
        """
        return () if getattr(model, "reads_pooler", True) else (POOLER,)

    def order_of_head(self, settings: dict[str, typing.Any], source: str) -> tuple[int, ...] | None:
        """Returns which output of another run's head each output of `make_model`'s is, to begin with that head.

        Args:
            settings: Of the run that the head is from.
            source: Their file, named in errors.

        Returns:
            Numbers of outputs, none where they are the same or have no names; None if that head is for something else.
        """
        return ()

    def products(self, batch_spec: BatchSpec) -> int:
        """Returns the multiplications of all matrix products for one example, forward; 0 if unknown.

        Args:
            batch_spec: With the number of examples in place of None.
        """
        return 0

    def flops(self, batch_spec: BatchSpec) -> int:
        """Returns the floating-point operations of a training step's matrix products."""
        return TRAINING_FLOPS_PER_PRODUCT * batch_sizes(batch_spec).examples * self.products(batch_spec)

    def uncounted_flops(self, batch_spec: BatchSpec) -> int:
        """Returns how many operations XLA's cost analysis misses, because it counts a loop's body once."""
        return 0


def with_batch_size(batch_spec: BatchSpec, batch_size: int) -> BatchSpec:
    return {name: tf.TensorSpec([batch_size, *spec.shape[1:]], spec.dtype) for name, spec in batch_spec.items()}


def encoder_batch_spec(max_seq_length: int) -> BatchSpec:
    """Returns the spec of every encoder's inputs: int32 [None, S] ids, mask and segments."""
    return {
        name: tf.TensorSpec([None, max_seq_length], tf.int32) for name in ("input_ids", "input_mask", "segment_ids")
    }


class Sized(typing.NamedTuple):
    """The numbers of examples and tokens in a batch."""

    examples: int
    tokens: int  # Padding included; 0 where a batch holds no `input_ids`.


def batch_sizes(batch_spec: BatchSpec) -> Sized:
    examples = next(iter(batch_spec.values())).shape[0]
    ids = batch_spec.get("input_ids")
    return Sized(examples, ids.shape.num_elements() if ids is not None else 0)


# Refuses models that need to know more of a text than an objective tells them.


def check_languages(config: AlbertConfig, languages: tuple[str, ...]) -> None:
    """Raises InputError if a model has language embeddings, but not as many as the data have languages."""
    if config.num_languages and config.num_languages != len(languages):
        told = (
            f"are in {len(languages)} languages ({', '.join(languages)})" if languages else "don't say their language"
        )
        raise InputError(
            f"the model has embeddings of {config.num_languages} languages (num_languages), and the data {told}; name "
            "as many with create_pretraining_data.py --languages, or change `albert_config_file`"
        )


def refuse_languages(config: AlbertConfig, objective: str, whose: str = "this model") -> None:
    """Raises InputError if a model has language embeddings, which an objective doesn't use."""
    if config.num_languages:
        raise InputError(
            f"`objective={objective}` doesn't tell {whose} what language a text is in (num_languages="
            f"{config.num_languages}); use a model without language embeddings, or `objective=roberta`"
        )


def refuse_entities(config: AlbertConfig, objective: str, whose: str = "this model") -> None:
    """Raises InputError if a model knows entities, whose names can't be found in an objective's inputs."""
    if config.num_entities:
        raise InputError(
            f"`objective={objective}` doesn't find the entities that {whose} knows (num_entities="
            f"{config.num_entities}); use a model without entities, or `objective=entities`"
        )


_NOT_CAUSAL = "use `objective=causal`, or set is_causal to false in `albert_config_file`"


def refuse_causal(config: AlbertConfig, learner: str, whose: str = "this model", remedy: str = _NOT_CAUSAL) -> None:
    """Raises InputError if tokens see only those before them, where both sides are needed."""
    if config.is_causal:
        raise InputError(
            f"{learner} reads pieces from both sides, and those of {whose} see only what comes before them "
            f"(is_causal=true); {remedy}"
        )
