"""The settings that all commands have that fine-tune, and the files that they name."""

import abc
import contextlib
import dataclasses
import functools
import os
import typing

from albert_tf.base.errors import ON_BAD_ROW, InputError
from albert_tf.base.settings import RARE, TO_DO, TRAINING, changed, free, place, setting
from albert_tf.config import AlbertConfig
from albert_tf.finetuning.datasets import Share
from albert_tf.finetuning.task import FinetuningTask
from albert_tf.runs.settings.tokenizer import AnyTokenizerSettings
from albert_tf.runs.settings.training import TrainingSettings

TRAIN, DEV, TEST = "train", "dev", "test"
_BATCH_SIZE = 32
# Settings that say how to learn from a teacher.
OF_TEACHER = ("teacher_weight", "teacher_temperature")
_rare = functools.partial(setting, group=RARE)


def bad_rows(help: str, default: str | None = "fail", in_python: bool = False) -> typing.Any:
    """Returns the field of a setting that says what to do with what can't be used."""
    return free(default, help, choices=tuple(ON_BAD_ROW), in_python=in_python)


def linear_baselines() -> typing.Any:
    """Returns the field of a setting that says whether a linear model is trained, too."""
    return free(
        True,
        "After training, train a linear model on the same file, in seconds, and print its score, too; needs "
        "scikit-learn.",
        group=RARE,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuningSettings(TrainingSettings, AnyTokenizerSettings, abc.ABC):
    """A model to begin from, how to fine-tune it, and, in the classes of the tasks, for what and on which files."""

    main_place = "data_dir"

    init_checkpoint: str | None = changed(
        help="Pre-trained checkpoint or folder, also of transformers; random weights if left out."
    )
    albert_config_file: str | None = changed(group=RARE)
    vocab_file: str | None = changed(group=RARE)
    spm_model_file: str | None = changed(group=RARE)
    teacher: str | None = _rare(
        None,
        "Folder of a model fine-tuned for the same task, of albert_tf or transformers, whose answers are learnt "
        "besides the labels.",
    )
    unlabelled_file: tuple[str, ...] = place(
        (), "With --teacher: files of texts without labels to train on as well.", group=RARE
    )
    teacher_weight: float = _rare(0.5, "Share of the teacher's answers in the loss on labelled texts.", least=0, most=1)
    teacher_temperature: float = _rare(
        2.0, "Temperature by which the logits of teacher and student are divided.", least=0, above=0
    )
    do_eval: bool = changed(help="Evaluate on the dev file; writes eval_results.json.")
    dev_fraction: float | None = setting(
        None,
        "Share of the training file to hold out for evaluation, if there is no dev file; the same rows each time.",
        least=0,
        most=1,
        group=TO_DO,
    )
    do_predict: bool = free(False, "Predict the test file; writes the predictions.", group=TO_DO, in_python=False)
    max_seq_length: int | None = setting(None, "Longest input in pieces.", least=8, group=TRAINING, search=True)
    num_train_steps: int | None = changed(
        None,
        help="Number of training steps, instead of --num_train_epochs.",
        aliases=("train_step",),  # of the original's commands, as the one below
    )
    num_train_epochs: float | None = free(
        None,  # `default_num_train_epochs`
        "Epochs over the training file; by default fewer for a larger file.",
        least=0,
        above=0,
        group=TRAINING,
        search=True,
    )
    num_warmup_steps: int | None = changed(
        None, help="Steps of warm-up; by default 10% of all.", group=RARE, aliases=("warmup_step",)
    )
    dropout: float | None = free(
        None,
        "Dropout of hidden states and attention; by default the config's, but in small models at least 0.1, or 0.2 for "
        "few examples; for multiple choice always the config's.",
        least=0,
        most=1,
        below=1,
        group=TRAINING,
        search=True,
    )
    token_dropout: float | None = _rare(
        None,
        "Share of the pieces of training texts to hide, different ones each time; by default, in small models, 0.15 "
        "for single texts and for similarity scores, and 0.25 for paraphrases; otherwise 0.",
        least=0,
        most=1,
        below=1,
        search=True,
    )
    train_batch_size: int = changed(_BATCH_SIZE)
    predict_batch_size: int = free(64, "Batch size of prediction, all replicas.", least=1, group=RARE, in_python=False)
    optimizer: str = changed("adamw")
    learning_rate: float | None = changed(
        None,
        help="Peak learning rate; by default 5e-5 for models of hidden size 768 and more, and the smaller the model "
        "the higher, up to 1.5e-4; up to 5e-4 without checkpoint (less in more than 4 layers), for answers to "
        "questions and for aligned pairs, and up to 1e-3 for entities.",
    )
    scale_learning_rate: str = changed(
        help=f"With sqrt --learning_rate belongs to a batch of {_BATCH_SIZE}, and is multiplied by the root of "
        f"--train_batch_size / {_BATCH_SIZE}."
    )
    bias_correction: bool = changed(True)
    eval_every_steps: int | None = changed(
        help="With --do_eval: steps between evaluations while training, each of which saves; by default only the last, "
        "or with --early_stopping 10 to 20 times a run, without --save_checkpoints_steps."
    )
    max_eval_steps: int | None = changed(is_flag=False)

    @abc.abstractmethod
    def find_paths(self, part: str) -> tuple[str, ...]:
        """Returns the paths of the files of `TRAIN`, `DEV` or `TEST`, which are read as one; there must be one."""

    def placed(self, paths: list[str]) -> "FinetuningSettings":
        """Returns settings that name a training file and, if there is such, one to evaluate on, of one folder."""
        return self.changed(data_dir=os.path.dirname(paths[0]))

    @abc.abstractmethod
    def make_task(self, config: AlbertConfig) -> FinetuningTask:
        """Returns the task that is asked for, given the model's config."""

    def completed(self, config: AlbertConfig, is_known: bool) -> "FinetuningSettings":
        """Returns the settings with the task's own that nobody gave."""
        # `is_known`: the config is that of a run that is resumed or used.
        return self

    def find(self, part: str) -> tuple[tuple[str, ...], Share | None]:
        """Returns the paths of a part of the data, and which share of it that is, None for all of it."""
        fraction = self.dev_fraction
        if part == TRAIN:
            return self.find_paths(TRAIN), None if fraction is None else Share(fraction, is_dev=False)
        try:
            paths = self.find_paths(part)
        except InputError as error:
            if fraction is not None:
                with contextlib.suppress(InputError):  # without a training file the missing one is what there is to say
                    return self.find_paths(TRAIN), Share(fraction, is_dev=True)
            if part == DEV and self.do_train:
                raise InputError(
                    f"{error}; or hold out a share of the training file, for example with `dev_fraction=0.1`"
                ) from error
            raise
        if fraction is not None and part == DEV and (self.do_train or "dev_fraction" in self.given):
            raise InputError(
                f"`dev_fraction={fraction:g}`: there is already a file to evaluate on, {' and '.join(paths)}; "
                "leave out one of the two"
            )
        return paths, None

    def kept(self):
        left_out = () if self.teacher else ("teacher", *OF_TEACHER)
        return {name: value for name, value in super().kept().items() if name not in left_out}
