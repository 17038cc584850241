"""The command `run_race.py`."""

from albert_tf.cli import app  # first: it keeps TensorFlow quiet at its start

# isort: split

import tensorflow as tf
from absl import flags

from albert_tf.cli.finetuning_command import DEV, TEST, TRAIN, FinetuningCommand
from albert_tf.cli.finetuning_flags import define_finetuning_flags
from albert_tf.cli.original_flags import define_original_flags
from albert_tf.errors import ON_BAD_ROW, InputError
from albert_tf.finetuning import MultipleChoice
from albert_tf.finetuning.choice_files import LETTERS, LEVELS, read_questions
from albert_tf.finetuning.datasets import find_files
from albert_tf.finetuning.defaults import with_pooling_that_sees_the_text
from albert_tf.finetuning.multiple_choice import MAX_QA_LENGTH

RACE, JSON_LINES = "race", "jsonl"
RACE_CHOICES = 4
PARTS = {TRAIN: ("train",), DEV: ("dev",), TEST: ("test", "dev")}


def define_flags():
    """Defines the flags of this command."""
    flags.DEFINE_enum(
        "task_name",
        RACE,
        (RACE, JSON_LINES),
        "RACE as it is published, or train.jsonl, dev.jsonl and test.jsonl.",
        case_sensitive=False,
    )
    flags.DEFINE_string("data_dir", None, "Folder of the task's folders or files.")
    flags.DEFINE_integer(
        "max_qa_length",
        MAX_QA_LENGTH,
        "How many of the last pieces of question and option to keep; at most half of what fits.",
        lower_bound=1,
    )
    flags.DEFINE_integer(
        "num_choices",
        None,
        "Options of each question; by default as many as in the training file.",
        lower_bound=2,
        upper_bound=len(LETTERS),
    )
    flags.DEFINE_bool("middle_only", False, "Read only RACE's middle school questions.")
    flags.DEFINE_bool("high_only", False, "Read only RACE's high school questions.")
    flags.DEFINE_enum(
        "on_bad_row", "fail", ON_BAD_ROW, "Questions that can't be used: stop, or leave them out and count them."
    )
    define_finetuning_flags("the end of a passage is cut. By default 512, or the model's positions if fewer.")
    define_original_flags("train_file", "eval_file", "predict_file", "num_keep_checkpoint", "dropout_prob")


def levels(settings):
    """Returns which of RACE's levels to read, none of JSON lines."""
    only = [level for level, is_only in zip(LEVELS, (settings.middle_only, settings.high_only)) if is_only]
    if len(only) > 1:
        raise InputError("--middle_only and --high_only exclude each other; leave both out to read all")
    if settings.task_name == JSON_LINES:
        if only:
            raise InputError(f"--{only[0]}_only is for --task_name={RACE}; leave it out")
        return ()
    return tuple(only) or LEVELS


def find_paths(settings, part):
    """Returns the path of the folder, or the paths of the files, to train on, to evaluate on, or to predict."""
    app.require(data_dir=settings.data_dir)
    if settings.task_name == JSON_LINES:
        return find_files(settings.data_dir, tuple(f"{name}.jsonl" for name in PARTS[part]))
    (path,) = find_files(settings.data_dir, PARTS[part])
    if not tf.io.gfile.isdir(path):
        raise InputError(f"{path} must be a folder, as RACE is published; or choose --task_name={JSON_LINES}")
    return (path,)


def make_task(settings, config):
    """Returns the task; the number of options is the one set, the run's or RACE's, or else the training file's."""
    app.require(data_dir=settings.data_dir)
    config, chosen_levels = with_pooling_that_sees_the_text(config), levels(settings)
    num_choices = settings.num_choices or (RACE_CHOICES if chosen_levels else None)
    if num_choices is None:
        num_choices = len(read_questions(find_paths(settings, TRAIN)[0], on_bad_row=settings.on_bad_row)[0].options)
    return MultipleChoice(config, num_choices, settings.max_qa_length, chosen_levels, settings.on_bad_row)


COMMAND = FinetuningCommand(
    "run_race",
    ("task_name", "max_qa_length", "num_choices", "middle_only", "high_only"),
    ("data_dir",),
    find_paths,
    make_task,
)


def run():
    """Runs the command."""
    COMMAND.run(define_flags)
