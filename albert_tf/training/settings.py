"""The settings of a run, as data: each says whether it changes what the run computes."""

import collections.abc
import dataclasses
import re
import typing

import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.modeling.pretrained import HEAD
from albert_tf.optimization import AdamW, LearningRateSchedule, make_optimizer

# Parts of an encoder as `layer_rate_factors` sees them.
# Of the main model, or of a further one, whose name stands before.
_OF_BLOCK = re.compile(r"(?:\w+/)?encoder/(?:attention|feed_forward)_layers/(\d+)/")
_BELOW_BLOCKS = re.compile(r"(?:\w+/)?encoder/embedding(?:s|_hidden_mapping_in)/")

LARGEST_SEED = 2**31 - 1  # seeds of dropout are int32

_AT_LEAST_ONE = (
    "num_train_steps",
    "train_batch_size",
    "gradient_accumulation_steps",
    "eval_batch_size",
    "save_checkpoints_steps",
    "keep_checkpoint_max",
    "iterations_per_loop",
)


def _changes_result(default: typing.Any = dataclasses.MISSING, **options):
    """Returns a field that resuming a run compares: with another value the run would compute something else."""
    return dataclasses.field(default=default, metadata={"changes_result": True}, **options)


def _free(default: typing.Any = dataclasses.MISSING):
    """Returns a field that may change whenever a run is resumed."""
    return dataclasses.field(default=default, metadata={"changes_result": False})


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSettings:
    """How to train and evaluate. The names are those of the commands' flags.

    What `_changes_result` declares must be the same when a run is resumed; what `_free` declares may change.

    Attributes:
        num_train_steps: Length of the training.
        train_batch_size: Examples in one update, over all replicas.
        learning_rate: Peak learning rate.
        num_warmup_steps: Steps in which the learning rate rises.
        head_learning_rate: Peak learning rate of the head that a task adds; None for that of the encoder.
        layer_decay: What the learning rate is multiplied by from each block to the one below it; see
            `layer_rate_factors`.
        beta_2: Decay of the second moment.
        clip_norm: Largest global norm of the gradients; 0 for any.
        gradient_accumulation_steps: Parts of a replica's batch, computed one after the other to save memory.
        optimizer: "lamb", "adamw" or "muon".
        scale_learning_rate: "none", or "sqrt": `learning_rate` belongs to a batch of `reference_batch_size`, and is
            multiplied by the root of `train_batch_size` / `reference_batch_size`.
        reference_batch_size: See there; None without scaling.
        poly_power: Power of the learning rate's decay; 1 is linear.
        schedule: "continuous" or "original"; see `LearningRateSchedule`.
        weight_decay: Share of a weight that is added to its update.
        bias_correction: Whether to correct the bias of the optimizer's moments.
        ema_decay: Decay of a moving average of the weights, which is then evaluated and used; 0 for none.
        freeze: Regular expressions of variables to leave as they are.
        init_checkpoint: Checkpoint or run folder to start from; None for random weights.
        random_seed: Seed of dropout, and of order and masks of the data.
        eval_batch_size: Batch size of evaluation, over all replicas; it decides the loss of halves of sentences.
        max_eval_steps: Most batches of an evaluation; None for all.
        eval_every_steps: Steps between evaluations while training; None for the last step only.
        evaluates_first: Whether to evaluate before the first step too.
        early_stopping: How many evaluations in succession, neither with a better score nor with a lower loss than all
            before, end the training; 0 for none.
        eval_checkpoint: What to evaluate and use in the end: "latest", "best", or the path of a checkpoint; None for
            the best, or the latest where no held-out data told which is best.
        save_checkpoints_steps: Steps between checkpoints.
        keep_checkpoint_max: Checkpoints to keep, besides the best one.
        max_skipped_steps: Most steps to skip because loss or gradient is not finite.
        iterations_per_loop: Most steps between two looks of the host at the device; use 1000 on a TPU.
        profile_steps: First step of a TensorBoard profile and the one to end before; None for no profile.
        peak_tflops: Peak of one replica in 1e12 operations a second, to report the share that is used.

    Raises:
        InputError: A value is out of range, or two values do not go together.
    """

    num_train_steps: int = _changes_result()
    train_batch_size: int = _changes_result()
    learning_rate: float = _changes_result()
    num_warmup_steps: int = _changes_result(0)
    gradient_accumulation_steps: int = _changes_result(1)
    optimizer: str = _changes_result("lamb")
    scale_learning_rate: str = _changes_result("none")
    reference_batch_size: int | None = _changes_result(None)
    poly_power: float = _changes_result(1.0)
    schedule: str = _changes_result("continuous")
    weight_decay: float = _changes_result(0.01)
    bias_correction: bool = _changes_result(False)
    ema_decay: float = _changes_result(0.0)
    freeze: tuple[str, ...] = _changes_result(())
    init_checkpoint: str | None = _changes_result(None)
    random_seed: int = _changes_result(12345)
    head_learning_rate: float | None = _changes_result(None)
    layer_decay: float = _changes_result(1.0)
    beta_2: float = _changes_result(0.999)
    clip_norm: float = _changes_result(1.0)
    eval_batch_size: int = _free(64)
    max_eval_steps: int | None = _free(None)
    eval_every_steps: int | None = _free(None)
    evaluates_first: bool = _free(False)
    early_stopping: int = _free(0)
    eval_checkpoint: str | None = _free(None)
    save_checkpoints_steps: int = _free(1000)
    keep_checkpoint_max: int = _free(5)
    max_skipped_steps: int = _free(10)
    iterations_per_loop: int = _free(50)
    profile_steps: tuple[int, int] | None = _free(None)
    peak_tflops: float | None = _free(None)

    def __post_init__(self):
        for name in _AT_LEAST_ONE:
            if getattr(self, name) < 1:
                raise InputError(f"`{name}` must be at least 1. Received: {getattr(self, name)}")
        if self.head_learning_rate is not None and not self.head_learning_rate > 0:
            raise InputError(f"`head_learning_rate` must be greater than 0. Received: {self.head_learning_rate}")
        if not 0 < self.layer_decay <= 1:
            raise InputError(f"`layer_decay` must be greater than 0 and at most 1. Received: {self.layer_decay}")
        if not 0 <= self.random_seed <= LARGEST_SEED:
            raise InputError(f"`random_seed` must be from 0 to {LARGEST_SEED}. Received: {self.random_seed}")
        if self.early_stopping < 0:
            raise InputError(f"`early_stopping` must not be negative. Received: {self.early_stopping}")
        if self.scale_learning_rate not in ("none", "sqrt"):
            raise InputError(f"`scale_learning_rate` must be none or sqrt. Received: {self.scale_learning_rate}")
        if (self.scale_learning_rate == "sqrt") != (self.reference_batch_size is not None):
            raise InputError(
                'scale_learning_rate="sqrt" and reference_batch_size go together. '
                f"Received: {self.scale_learning_rate} and {self.reference_batch_size}"
            )

    def fixed_on_resume(self) -> dict[str, typing.Any]:
        """Returns the settings that a resumed run must share, JSON values by name."""
        return {name: _as_json(getattr(self, name)) for name in result_settings()}

    def make_schedule(self) -> LearningRateSchedule:
        """Returns the learning rate of each step.

        Raises:
            InputError: A value is out of range.
        """
        peak = self.learning_rate
        if self.scale_learning_rate == "sqrt":
            peak *= (self.train_batch_size / self.reference_batch_size) ** 0.5
        return LearningRateSchedule(peak, self.num_train_steps, self.num_warmup_steps, self.poly_power, self.schedule)

    def make_optimizer(
        self,
        variables: dict[str, tf.Variable],
        compute_dtype: str = "float32",
        followers: dict[str, str] | None = None,
    ) -> AdamW:
        """Returns the optimizer of all variables that are not frozen; call it in the strategy's scope.

        Args:
            variables: By name.
            compute_dtype: Of the models' products of matrices.
            followers: See `Objective.followers`.

        Raises:
            InputError: A setting is out of range, or `freeze` names no variable or all of them.
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
    """Returns what the learning rate is multiplied by below the heads: once by the decay a block, from the top down.

    Of N blocks the last has the factor d, the first d^N, and embeddings and their projection d^(N + 1); heads and the
    pooler have 1. A further model, such as ELECTRA's generator, is as deep, and has the same. ELECTRA's code (Clark et
    al. 2020, `get_layer_lrs`) gives all but the heads one factor d more, by a slip: to repeat it, multiply
    `learning_rate` by d and keep the heads' by `head_learning_rate`.

    Args:
        variables: Names.
        layer_decay: d.
    """
    numbers = {name: int(found[1]) for name in variables if (found := _OF_BLOCK.match(name))}
    num_blocks = max(numbers.values(), default=-1) + 1
    depths = {name: number + 1 for name, number in numbers.items()}
    depths |= dict.fromkeys(filter(_BELOW_BLOCKS.match, variables), 0)
    return {name: layer_decay ** (num_blocks + 1 - depth) for name, depth in depths.items()}


def result_settings() -> tuple[str, ...]:
    """Returns the names of the settings that change what a run computes."""
    return tuple(field.name for field in dataclasses.fields(RunSettings) if field.metadata["changes_result"])


def _as_json(value):
    return list(value) if isinstance(value, tuple) else value


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
