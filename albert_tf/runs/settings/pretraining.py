"""The settings of `run_pretraining.py`, with their defaults.

Those set by `changed` are declared in training/settings.py (how to train) or in training.py beside this (folder,
devices). cli/command.py makes flags of all, and runs/pretrain.py reads them; what is None here, such as the number of
masked pieces, follows from the manifest of the shards (pretraining_data/shards.py).
"""

import dataclasses
import typing

from albert_tf.base.errors import InputError
from albert_tf.base.settings import RARE, TRAINING, changed, free, place, setting
from albert_tf.objectives import OBJECTIVES
from albert_tf.objectives.registry import own_settings, settings_of_objectives
from albert_tf.pretraining_data.shards import ON_DAMAGED_SHARD_CHOICES
from albert_tf.runs.settings.training import TrainingSettings

LANGUAGE_SETTINGS = ("language_exponent", "one_language_per_batch")
_BATCH_SIZE = 4096


@dataclasses.dataclass(frozen=True, kw_only=True)
class ObjectiveSettings(*settings_of_objectives()):
    """The settings of all known objectives; each has an effect with its own alone."""

    def of_objective(self, name: str) -> dict[str, typing.Any]:
        """Returns the settings of an objective, and those that were given though another one has them."""
        known = own_settings(name)
        return {each: getattr(self, each) for each in ObjectiveSettings.names() if each in known or each in self.given}


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainingSettings(TrainingSettings, ObjectiveSettings):
    """A model, the shards that it is pre-trained on, and how."""

    command, main_place = "run_pretraining", "input_file"

    input_file: tuple[str, ...] | None = place(None, "Training shards; comma-separated paths or globs.")
    held_out_file: tuple[str, ...] | None = place(None, "Evaluation shards; by default those that manifest.json names.")
    init_checkpoint: str | None = changed(
        help="Checkpoint to start from, or the folder of a run or model, also of transformers.",
    )
    objective: str | None = free(
        None, "Objective; by default the one that the shards were built for.", choices=tuple(OBJECTIVES)
    )
    do_train: bool = changed(True)
    do_eval: bool = changed(help="Evaluate on held-out shards, before the first step and after the last.")
    max_seq_length: int | None = place(
        None, "Length of the shards' examples; by default taken from manifest.json.", least=8, group=TRAINING
    )
    max_predictions_per_seq: int | None = place(
        None, "Maximum number of masked pieces; by default taken from manifest.json.", least=1
    )
    on_damaged_shard: str = free(
        "fail",
        "What to do with damaged training shards: skip reads all shards first, and leaves out the damaged ones.",
        choices=tuple(ON_DAMAGED_SHARD_CHOICES),
    )
    phase2_input_file: tuple[str, ...] | None = place(
        None, "Training shards of the last steps, such as of longer sequences."
    )
    phase2_held_out_file: tuple[str, ...] | None = place(
        None, "Evaluation shards of the last steps; by default those of the manifest."
    )
    phase2_start_step: int | None = setting(
        None,
        "Step at which the data set of --phase2_input_file takes over; by default at 90% of the steps.",
        least=1,
        in_python=False,
    )
    phase2_gradient_accumulation_steps: int | None = setting(
        None, "Parts of a replica's batch in the last steps; by default as before.", least=1, in_python=False
    )
    word_embeddings: str = setting(
        "random",
        "How word embeddings are initialised without --init_checkpoint: at random, or from counts of the pieces that "
        "share a sentence of --input_file.",
        choices=("random", "cooccurrence"),
        search=True,
    )
    language_exponent: float = setting(
        0.7,
        "Languages are drawn by their share of the pieces raised to this power: with 1 by their text, with 0 all "
        "equally. XLM has 0.7, XLM-R 0.3.",
        group=RARE,
    )
    one_language_per_batch: bool = setting(False, "All examples of a batch are in one language, as in XLM.", group=RARE)
    read_own_shards: bool = setting(False, "Each of several hosts reads its own shards, not all: for many hosts.")
    num_train_steps: int = changed(125000)
    num_warmup_steps: int = changed(3125)
    train_batch_size: int = changed(_BATCH_SIZE)
    learning_rate: float = changed(0.00176)
    scale_learning_rate: str = changed(
        help=f"With sqrt --learning_rate belongs to a batch of {_BATCH_SIZE}, and is multiplied by the root of "
        f"--train_batch_size / {_BATCH_SIZE}."
    )
    # Of objectives that compare the examples of a batch; runs of others don't keep it.
    eval_batch_size: int = changed(same_on_resume=True)
    save_checkpoints_steps: int = changed(5000)
    eval_every_steps: int | None = changed(
        help="With --do_eval: steps between evaluations while training, each of which saves; by default "
        "--save_checkpoints_steps.",
    )
    head_learning_rate: float | None = changed(is_flag=False, in_python=False)

    def __post_init__(self):
        super().__post_init__()
        if self.phase2_input_file and "held_out_file" in self.given and "input_file" not in self.given:
            what = "the run is evaluated on the data of its last steps"
            raise InputError(f"`held_out_file`: {what}; pass `phase2_held_out_file` instead")

    @property
    def parts_of_batches(self) -> list[int]:
        """Parts that a replica's batch is computed in, in each phase."""
        first = self.gradient_accumulation_steps
        return [first, self.phase2_gradient_accumulation_steps or first] if self.phase2_input_file else [first]

    @property
    def starts_at(self) -> int:
        """The step at which the second phase's data take over."""
        step = self.phase2_start_step or self.num_train_steps * 9 // 10
        if not 0 < step < self.num_train_steps:
            raise InputError(f"`phase2_start_step={step}` must be less than `num_train_steps={self.num_train_steps}`")
        return step

    def kept(self):
        """Returns the settings that a resumed run must share, but for those of objectives and data."""
        return {
            name: value
            for name, value in super().kept().items()
            if name not in (*ObjectiveSettings.names(), *LANGUAGE_SETTINGS, "eval_batch_size")
        }
