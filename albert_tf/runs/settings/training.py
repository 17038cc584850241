"""The settings that all commands have that train, and the devices that they ask for."""

import dataclasses
import functools
import typing

import tensorflow as tf

from albert_tf.base.console import tell
from albert_tf.base.errors import InputError
from albert_tf.base.settings import DEVICE, MODEL, RARE, TO_DO, TRIALS, changed, free, setting
from albert_tf.base.startup import computes_in_bfloat16
from albert_tf.config import AlbertConfig
from albert_tf.modeling.kernels.flash_attention import ATTENTION_CHOICES
from albert_tf.modeling.kernels.rematerialization import REMATERIALIZATION_CHOICES
from albert_tf.training import devices
from albert_tf.training.attention_choice import choose_attention
from albert_tf.training.batches import per_replica_batch_size
from albert_tf.training.settings import RunSettings

_rare = functools.partial(free, group=RARE)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingSettings(RunSettings):
    """The actions in a folder, how to train, and on which devices."""

    command: typing.ClassVar[str]  # The script's name, by which the folder of a run tells whose it is.
    main_place: typing.ClassVar[str]  # The place without which those of the run are taken, too.

    output_dir: str | None = free(
        None, "Folder for checkpoints, logs and results; a run found there is resumed.", group=MODEL, in_python=False
    )
    albert_config_file: str | None = free(
        None, "JSON file of the model; by default that beside --init_checkpoint.", in_python=False
    )
    do_train: bool = free(False, "Train.", group=TO_DO, in_python=False)
    do_eval: bool = free(False, "", group=TO_DO, in_python=False)
    license: str | None = _rare(None, "Licence of the model, for the model card; such as apache-2.0 or cc-by-sa-4.0.")
    iterations_per_loop: int | None = changed(None)
    trackers: tuple[str, ...] = _rare(
        (),
        "Functions to call with what is measured, each as module:function, for Weights & Biases, MLflow and the like; "
        "docs/library.md has examples. TensorBoard finds everything in --output_dir.",
        in_python=False,
    )
    num_trials: int = free(
        1,
        "Number of trainings with different seeds, each in its own folder; the medians are written. With ranges in "
        "--trials: the total number of trainings.",
        least=1,
        group=TRIALS,
        in_python=False,
    )
    trials: tuple[str, ...] = free(
        (),
        "Settings to try with Optuna: 'learning_rate:1e-4..1e-3,num_train_epochs:2|4' draws --num_trials rates from a "
        "range; with lists only, each combination is tried --num_trials times.",
        group=TRIALS,
        in_python=False,
    )
    use_tpu: bool = free(False, "Run on a TPU; otherwise on all GPUs of this machine, or its CPU.", group=DEVICE)
    tpu_name: str | None = _rare(None, "Name or grpc:// address of a Cloud TPU; by default this machine's own TPU.")
    tpu_zone: str | None = _rare(None, "Zone of the Cloud TPU that --tpu_name names.")
    gcp_project: str | None = _rare(None, "Project of the Cloud TPU that --tpu_name names.")
    tpu_timeout: float = _rare(300.0, "Seconds to wait for a TPU to answer.", least=0)
    num_cpu_replicas: int = _rare(1, "Number of CPU replicas, where there is no TPU or GPU.", least=1)
    use_bfloat16: bool = setting(
        False,
        "Compute matrix products in bfloat16; variables stay float32.",
        group=DEVICE,
        is_free_in_use=True,
        search=True,
    )
    use_float16: bool = setting(
        False,
        "The same in float16, with a scaled loss: for GPUs before Ampere, such as a T4.",
        group=RARE,
        is_free_in_use=True,
        search=True,
    )
    jit_compile: str = _rare(
        "auto",
        "Whether XLA compiles whole steps, or TensorFlow runs one operation after the other; auto compiles them on one "
        "GPU, and always on a TPU.",
        choices=tuple(devices.JIT_COMPILE_CHOICES),
    )
    attention: str = _rare(
        "auto",
        "How attention is computed: plain operations, flash kernels (with jax installed), or what suits the device.",
        choices=tuple(ATTENTION_CHOICES),
    )
    remat: str = _rare(
        "none",
        "What the backward pass recomputes instead of keeping, to save memory.",
        choices=tuple(REMATERIALIZATION_CHOICES),
    )

    def __post_init__(self):
        if self.scale_learning_rate == "sqrt":  # of the batch that the rate is for, where nobody says another one
            reference = type(self).__dataclass_fields__["train_batch_size"].default
            object.__setattr__(self, "reference_batch_size", reference)
        super().__post_init__()

    def strategy(self) -> tf.distribute.Strategy:
        """Returns the strategy that is asked for, and tells what it computes on."""
        names = ("use_tpu", "tpu_name", "tpu_zone", "gcp_project", "num_cpu_replicas", "tpu_timeout", "jit_compile")
        strategy = devices.make_strategy(**{name: getattr(self, name) for name in names})
        if devices.is_chief(strategy):
            tell("\n".join([devices.describe_device(strategy), *devices.unused_device_warnings(strategy)]))
        return strategy

    def model_options(
        self, strategy: tf.distribute.Strategy, config: AlbertConfig, shapes: list[tuple[int, int]], **more
    ) -> dict[str, str]:
        """Returns the options of a model; arguments as for `choose_attention`, whose choice is told."""
        dtype = self._dtype(strategy)
        attention, line = choose_attention(strategy, self.attention, config, dtype, shapes, **more)
        if line:
            tell(line)
        return {"remat": self.remat, "attention": attention, "dtype": dtype}

    def _dtype(self, strategy):
        """Returns the Keras dtype policy; warns where the device has no such products."""
        if not self.use_float16:
            if self.use_bfloat16 and devices.is_chief(strategy):
                _warn_of_slow_bfloat16(strategy)
            return "mixed_bfloat16" if self.use_bfloat16 else "float32"
        if self.use_bfloat16:
            raise InputError("`use_bfloat16` and `use_float16` exclude one another; leave one out")
        if isinstance(strategy, tf.distribute.TPUStrategy):
            raise InputError("`use_float16`: a TPU computes in bfloat16; pass `use_bfloat16` instead")
        return "mixed_float16"

    def with_steps(self, num_train_steps: int, said_by: str):
        """Returns the settings of a training of so many steps, as `said_by` says; the warm-up must be shorter."""
        if self.do_train and self.num_warmup_steps >= num_train_steps:
            raise InputError(
                f"`num_warmup_steps={self.num_warmup_steps}` must be less than the number of training steps, "
                f"{num_train_steps} (`{said_by}`)"
            )
        return self.changed(
            num_train_steps=num_train_steps,
            iterations_per_loop=self.iterations_per_loop or (1000 if self.use_tpu else 50),
        )

    def check_batch_sizes(self, strategy: tf.distribute.Strategy, names: tuple[str, ...], parts: list[int]) -> None:
        """Checks that batches can be divided among the replicas; those that are learnt from, in so many parts."""
        for name in names:
            per_replica_batch_size(strategy, getattr(self, name), name)
        for count in parts if self.do_train else ():
            per_replica_batch_size(strategy, self.train_batch_size, "train_batch_size", count)


def _warn_of_slow_bfloat16(strategy):
    if devices.is_of_gpus(strategy):
        if not devices.has_ampere(strategy.extended.worker_devices[0]):
            tell("warning: this GPU has no products in bfloat16; `use_float16` would be faster")
    elif not isinstance(strategy, tf.distribute.TPUStrategy) and computes_in_bfloat16() is False:
        tell("warning: this processor has no products in bfloat16; without `use_bfloat16` it is faster")
