"""The settings of a run, and the optimizer that they ask for."""

import collections.abc
import dataclasses
import functools
import re

import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.base.settings import LOGARITHMIC, MODEL, RARE, TRAINING, Settings, free, setting
from albert_tf.modeling.pretrained import HEAD
from albert_tf.objectives.objective import BatchSpec, batch_sizes
from albert_tf.optimization import AdamW, LearningRateSchedule, make_optimizer
from albert_tf.optimization.optimizers import OPTIMIZERS
from albert_tf.optimization.schedule import SCHEDULE_CHOICES
from albert_tf.training.batches import per_replica_batch_size

# Parts of an encoder, of the main model or of a further one, whose name stands before.
_OF_BLOCK = re.compile(r"(?:\w+/)?encoder/(?:attention|feed_forward)_layers/(\d+)/")
_BELOW_BLOCKS = re.compile(r"(?:\w+/)?encoder/(?:embedding(?:s|_hidden_mapping_in)|relative_embeddings)/")

LARGEST_SEED = 2**31 - 1  # seeds of dropout are int32
_rare = functools.partial(setting, group=RARE)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSettings(Settings):
    """How to train and evaluate; each setting has help. InputError if values are out of range or don't go together.

    Where this class has no default, those of the commands stand in runs/settings/.

    Attributes:
        reference_batch_size: The batch that `learning_rate` belongs to, which `scale_learning_rate=sqrt` multiplies by
            the root of `train_batch_size` / `reference_batch_size`.
        evaluates_first: Whether to evaluate before the first step too.
    """

    num_train_steps: int = setting(help="Number of training steps.", least=1, group=TRAINING, search=True)
    train_batch_size: int = setting(
        help="Examples in one update, over all replicas.", least=1, group=TRAINING, search=True
    )
    learning_rate: float = setting(help="Peak learning rate.", above=0, group=TRAINING, search=LOGARITHMIC)
    num_warmup_steps: int = setting(0, "Number of steps in which the learning rate rises.", least=0, search=True)
    gradient_accumulation_steps: int = setting(
        1,
        "Parts of a replica's batch, computed one after the other to save memory.",
        least=1,
        group=TRAINING,
        search=True,
    )
    optimizer: str = _rare("lamb", "Optimizer.", choices=tuple(sorted(OPTIMIZERS)), search=True)
    scale_learning_rate: str = _rare("none", "", choices=("none", "sqrt"), search=True)
    reference_batch_size: int | None = setting(None, least=1, is_flag=False, in_python=False)
    poly_power: float = _rare(1.0, "Power of the learning rate's decay; 1 is linear.", least=0, search=True)
    schedule: str = _rare(
        "continuous",
        "Learning rate: without jumps, or as the original's.",
        choices=tuple(SCHEDULE_CHOICES),
        search=True,
    )
    weight_decay: float = _rare(0.01, "Weight decay; LayerNorm and biases have none.", least=0, search=LOGARITHMIC)
    bias_correction: bool = _rare(False, "Correct the bias of the optimizer's moments.", search=True)
    ema_decay: float = _rare(
        0.0,
        "Decay of a moving average of the weights, which is then evaluated, such as 0.999; 0 for none.",
        least=0,
        below=1,
        search=True,
    )
    freeze: tuple[str, ...] = _rare(
        (), "Regular expressions of variables to leave as they are, such as encoder/embeddings."
    )
    init_checkpoint: str | None = setting(None, "", group=MODEL, in_python=False)
    random_seed: int = setting(
        12345, "Seed of weights, order, masks and dropout.", least=0, most=LARGEST_SEED, group=TRAINING
    )
    head_learning_rate: float | None = _rare(
        None,
        "Peak learning rate of the head alone; by default that of the encoder.",
        least=0,
        above=0,
        search=LOGARITHMIC,
    )
    layer_decay: float = _rare(
        1.0,
        "Factor by which the learning rate falls from each block to the one below it; 0.8 in ELECTRA, 1 for no decay.",
        least=0,
        most=1,
        above=0,
        search=True,
    )
    beta_2: float = _rare(0.999, "Decay of the second moment; 0.98 in RoBERTa.", least=0, most=1, below=1, search=True)
    clip_norm: float = _rare(
        1.0, "Largest global norm of the gradients; 0 for any, as in RoBERTa.", least=0, search=True
    )
    eval_batch_size: int = free(64, "Batch size of evaluation, all replicas.", least=1, group=RARE)
    max_eval_steps: int | None = free(
        None, "Maximum number of evaluation batches; by default all.", least=1, group=RARE
    )
    eval_every_steps: int | None = free(
        None,
        "Steps between evaluations while training, each of which saves; by default the last step only.",
        least=1,
        group=RARE,
    )
    evaluates_first: bool = free(False, is_flag=False, in_python=False)
    early_stopping: int = free(
        0,
        "With --do_eval: end training after this many evaluations in a row without an improvement; 0 for never.",
        least=0,
        group=TRAINING,
        search=True,
    )
    eval_checkpoint: str | None = free(
        None,
        "Checkpoint to evaluate at the end: best, latest, or a path; by default the best on held-out data, or else the "
        "latest.",
        group=RARE,
    )
    save_checkpoints_steps: int = free(1000, "Steps between checkpoints.", least=1, group=RARE)
    keep_checkpoint_max: int = free(5, "Number of checkpoints to keep, not counting the best one.", least=1, group=RARE)
    max_skipped_steps: int = free(
        10, "Maximum number of steps to skip if loss or gradient is not finite.", least=0, group=RARE
    )
    iterations_per_loop: int = free(
        50, "Most steps between two progress lines; by default 1000 on TPU, else 50.", least=1, group=RARE
    )
    profile_steps: tuple[int, ...] | None = free(
        None, "Two steps a,b: write a TensorBoard profile of the steps from a to b.", group=RARE
    )
    peak_tflops: float | None = free(
        None, "Peak of one replica in 1e12 operations a second, to show what share of it is used.", least=0, group=RARE
    )

    def __post_init__(self):
        super().__post_init__()
        if (self.scale_learning_rate == "sqrt") != (self.reference_batch_size is not None):
            raise InputError(
                'scale_learning_rate="sqrt" and reference_batch_size go together. '
                f"Received: {self.scale_learning_rate} and {self.reference_batch_size}"
            )
        if self.profile_steps and not (
            len(self.profile_steps) == 2 and 0 <= self.profile_steps[0] < self.profile_steps[1]
        ):
            raise InputError(
                f"`profile_steps={','.join(map(str, self.profile_steps))}` must be two steps, the first and the one to "
                "end before, such as 100,110"
            )

    def make_schedule(self) -> LearningRateSchedule:
        """Returns the learning rate of each step; InputError if a value is out of range."""
        peak = self.learning_rate
        if self.scale_learning_rate == "sqrt":
            peak *= (self.train_batch_size / self.reference_batch_size) ** 0.5
        return LearningRateSchedule(peak, self.num_train_steps, self.num_warmup_steps, self.poly_power, self.schedule)

    def make_optimizer(
        self, variables: dict[str, tf.Variable], compute_dtype: str = "float32", followers: dict[str, str] | None = None
    ) -> AdamW:
        """Returns the optimizer of all variables, by name, that are not frozen; call it in the strategy's scope.

        `compute_dtype` is that of the models' products of matrices, and `followers` are as of `Objective.followers`.
        InputError if a setting is out of range, or `freeze` names no variable or all of them.
        """
        return make_optimizer(
            self.optimizer,
            _without_frozen(variables, self.freeze),
            self.make_schedule(),
            weight_decay=self.weight_decay,
            bias_correction=self.bias_correction,
            beta_2=self.beta_2,
            clip_norm=self.clip_norm,
            ema_decay=self.ema_decay,
            compute_dtype=compute_dtype,
            rate_factors=self._rate_factors(variables),
            followers=followers,
        )

    def _rate_factors(self, variables):
        factors = layer_rate_factors(variables, self.layer_decay) if self.layer_decay != 1.0 else {}
        if self.head_learning_rate is not None:
            factor = self.head_learning_rate / self.learning_rate
            factors |= {name: factor for name in variables if name.startswith(HEAD)}
        return factors


def layer_rate_factors(variables: collections.abc.Iterable[str], layer_decay: float) -> dict[str, float]:
    """Returns the factor of each variable's learning rate: below the heads the decay once a block, from the top down.

    Of N blocks the last has the factor d, the first d^N, and embeddings and their projection d^(N + 1); heads and the
    pooler have 1. An additional model, such as ELECTRA's generator, is as deep, and has the same. ELECTRA's code (Clark
    et al. 2020, `get_layer_lrs`) gives all but the heads one factor d more, by a slip: to repeat it, multiply
    `learning_rate` by d and keep the heads' by `head_learning_rate`.
    """
    numbers = {name: int(found[1]) for name in variables if (found := _OF_BLOCK.match(name))}
    num_blocks = max(numbers.values(), default=-1) + 1
    depths = {name: number + 1 for name, number in numbers.items()}
    depths |= dict.fromkeys(filter(_BELOW_BLOCKS.match, variables), 0)
    return {name: layer_decay ** (num_blocks + 1 - depth) for name, depth in depths.items()}


def _without_frozen(variables, freeze):
    for pattern in freeze:
        try:
            is_found = any(re.search(pattern, name) for name in variables)
        except re.error as error:
            raise InputError(f"`freeze`: {pattern} is not a regular expression ({error})") from error
        if not is_found:
            names = sorted({"/".join(name.split("/")[:2]) for name in variables})
            raise InputError(f"`freeze`: no variable matches {pattern}; their names begin with {', '.join(names)}")
    trained = {
        name: variable
        for name, variable in variables.items()
        if not any(re.search(pattern, name) for pattern in freeze)
    }
    if not trained:
        raise InputError(f"`freeze={','.join(freeze)}` leaves nothing to train")
    return trained


@dataclasses.dataclass(frozen=True)
class Phase:
    """A stretch of training on batches of one shape: a data set, and the step to end at.

    Attributes:
        end_step: Counted from the begin of the whole run.
        batch_spec: Of a global batch: as `Objective.batch_spec` returns it, with the number of examples. Where batches
            are of several lengths, the usual one.
        make_dataset: Given the number of steps of this phase already done, a host's index and the number of hosts,
            returns that host's part of each batch.
        make_eval_dataset: Returns the held-out batches; None to evaluate nothing.
        gradient_accumulation_steps: How many micro-batches a replica's batch is cut into.
        hosts_read_apart: Whether each of several hosts makes its own part of a batch. If not, each makes all batches
            and keeps its part, so that the batches do not depend on the number of hosts.
        num_examples: Of the data; None if unknown.
        score_held_out: Given `Evaluator.compute_outputs`, returns measures of the held-out data that no sum over
            batches gives; None for none.
    """

    end_step: int
    batch_spec: BatchSpec
    make_dataset: collections.abc.Callable[[int, int, int], tf.data.Dataset]
    make_eval_dataset: collections.abc.Callable[[], tf.data.Dataset] | None = None
    gradient_accumulation_steps: int = 1
    hosts_read_apart: bool = False
    num_examples: int | None = None
    score_held_out: collections.abc.Callable[[collections.abc.Callable], dict[str, float]] | None = None

    @property
    def examples(self) -> int:
        """Global batch size."""
        return batch_sizes(self.batch_spec).examples

    @property
    def tokens(self) -> int:
        """Pieces in a global batch, padding included; 0 where batches are not of pieces."""
        return batch_sizes(self.batch_spec).tokens

    @property
    def sequence_length(self) -> int:
        """Pieces of each sequence, of which an example may have several; 0 where batches are not of pieces."""
        ids = self.batch_spec.get("input_ids")
        return ids.shape[-1] if ids is not None else 0

    def check_batch_size(self, strategy: tf.distribute.Strategy) -> None:
        """Raises InputError if the replicas can't share a batch."""
        per_replica_batch_size(strategy, self.examples, "train_batch_size", self.gradient_accumulation_steps)

    def check_batches(self, dataset: tf.data.Dataset) -> None:
        """Raises InputError if a feature is missing, or has another shape or dtype than `batch_spec` says."""
        for name, spec in self.batch_spec.items():
            found = dataset.element_spec.get(name)
            if found is None:
                raise InputError(f"the batches hold no {name}, which the objective's batch_spec requires")
            if found.dtype != spec.dtype or not found.shape[1:].is_compatible_with(spec.shape[1:]):
                raise InputError(
                    f"{name} is {found.dtype.name} {found.shape} in the batches, and {spec.dtype.name} "
                    f"{spec.shape} in the objective's batch_spec; make them agree"
                )
