"""The command `run_squad.py`."""

from albert_tf.cli import app  # first: it keeps TensorFlow quiet at its start

# isort: split
import dataclasses
import os

import tensorflow as tf
from absl import flags

from albert_tf.checkpoint_files import EVAL_RESULTS_FILE
from albert_tf.cli.finetuning_command import DEV, TRAIN, FinetuningCommand
from albert_tf.cli.finetuning_flags import define_finetuning_flags
from albert_tf.cli.flag_groups import in_helpfull
from albert_tf.cli.original_flags import define_original_flags
from albert_tf.cli.run_flags import AUTO
from albert_tf.config import QUESTION_ALIGNMENT_CHOICES
from albert_tf.errors import ON_BAD_ROW
from albert_tf.files import read_json
from albert_tf.finetuning import runner
from albert_tf.finetuning.defaults import default_question_alignment
from albert_tf.finetuning.question_answering import ConditionalQuestionAnswering, QuestionAnswering
from albert_tf.finetuning.question_answering.metrics import DEFAULT_METRICS, METRICS, rules_named_by
from albert_tf.finetuning.question_answering.spans import SpanOptions
from albert_tf.finetuning.question_answering.squad import read_version
from albert_tf.finetuning.question_answering.task import EVAL_SETTINGS_FILE
from albert_tf.finetuning.question_answering.windows import WindowOptions
from albert_tf.json_types import check_types
from albert_tf.training.run_folder.results import results_path

_HEADS = {kind.head: kind for kind in (QuestionAnswering, ConditionalQuestionAnswering)}


def define_flags():
    """Defines the flags of this command."""
    flags.DEFINE_string("train_file", None, "JSON file to train on, in the form of SQuAD, KorQuAD 1.0 or KLUE-MRC.")
    flags.DEFINE_string("predict_file", None, "JSON file to evaluate on and to predict.")
    flags.DEFINE_integer(
        "doc_stride",
        128,
        "In a text too long for one window, a new one begins after this many pieces; at most half of the "
        "room for the text.",
        lower_bound=1,
    )
    flags.DEFINE_integer(
        "max_query_length", 64, "Longest question in pieces; at most half of --max_seq_length.", lower_bound=1
    )
    flags.DEFINE_integer("max_answer_length", 30, "Longest answer in pieces.", lower_bound=1)
    flags.DEFINE_bool("version_2_with_negative", False, "Questions may have no answer, as in SQuAD 2.0 and KLUE-MRC.")
    flags.DEFINE_enum(
        "head",
        None,
        list(_HEADS),
        "How to find both ends of an answer: independent, each by itself, as the original's run_squad_v1; conditional, "
        "the end given the beginning, and whether there is an answer, as run_squad_v2. By default conditional with "
        "--version_2_with_negative, else independent.",
    )
    flags.DEFINE_enum(
        "question_alignment",
        None,
        QUESTION_ALIGNMENT_CHOICES,
        "Whether each piece of a text comes with the words of the question that are similar to it. By "
        "default words in small models.",
    )
    with in_helpfull():
        flags.DEFINE_integer("n_best_size", 20, "How many answers to write for each question.", lower_bound=1)
        flags.DEFINE_integer(
            "start_n_top", 5, "With --head=conditional: how many beginnings to consider in a window.", lower_bound=1
        )
        flags.DEFINE_integer(
            "end_n_top", 5, "With --head=conditional: how many ends to consider for each beginning.", lower_bound=1
        )
    flags.DEFINE_float(
        "null_score_diff_threshold",
        0.0,
        'No answer is given if the log odds of "no answer" are above this; see best_*_thresh.',
    )
    flags.DEFINE_enum(
        "metrics",
        AUTO,
        [AUTO, *METRICS],
        "Rules of the evaluation; auto: the run's, or those of the data set that the file's version or "
        "name says, else KorQuAD's.",
    )
    flags.DEFINE_enum(
        "on_bad_row", "fail", ON_BAD_ROW, "Questions that can't be used: stop, or leave them out and count them."
    )
    define_finetuning_flags("what is longer is read in several windows. By default 384, or as long as the model reads.")
    define_original_flags(
        "dropout_prob",
        "predict_feature_file",
        "predict_feature_left_file",
        "train_feature_file",
        "use_einsum",
        "warmup_proportion",
    )


def find_paths(settings, part):
    """Returns the path of the training file, or else of the one to evaluate on and to predict."""
    if part == TRAIN:
        app.require(train_file=settings.train_file)
        return (settings.train_file,)
    app.require(predict_file=settings.predict_file)
    return (settings.predict_file,)


def complete(settings, config, is_known):
    """Returns settings that name the head, whether questions are aligned, and the metrics."""
    # A head that is there reads what it was trained on.
    aligned = default_question_alignment(config) if settings.do_train else config.question_alignment
    metrics = _choose_metrics(settings) if settings.do_eval else settings.metrics
    return dataclasses.replace(
        settings,
        head=settings.head or ("conditional" if settings.version_2_with_negative else "independent"),
        question_alignment=settings.question_alignment or aligned,
        metrics=None if metrics == AUTO else metrics,
    )


def make_task(settings, config):
    """Returns the task that the settings ask for."""
    return _HEADS[settings.head](
        config.replace(question_alignment=settings.question_alignment),
        WindowOptions(settings.doc_stride, settings.max_query_length),
        SpanOptions(settings.n_best_size, settings.max_answer_length, settings.start_n_top, settings.end_n_top),
        settings.version_2_with_negative,
        settings.null_score_diff_threshold,
        settings.metrics or DEFAULT_METRICS,
        settings.on_bad_row,
    )


def _choose_metrics(settings):
    """Returns the rules to evaluate by, the same for a file and its half, and prints them where no flag says them."""
    is_settled = settings.metrics not in (None, AUTO)
    if is_settled and "metrics" in settings.given:
        return settings.metrics
    (path,), share = COMMAND.find(settings, DEV)
    name = os.path.basename(path)
    named = rules_named_by(read_version(path), name)
    earlier = settings.metrics if is_settled else _read_metrics(settings, runner.identity_of(path, share))
    if earlier is not None:
        chosen, reason = earlier, "as before"
        if named is not None and named[0] != earlier:
            reason += f", though {name} calls itself {named[1]}"
    elif named is not None:
        chosen, reason = named[0], f"because {name} calls itself {named[1]}"
    else:
        chosen, reason = DEFAULT_METRICS, f"because {name} doesn't say which rules it follows"
    others = " or ".join(f"--metrics={other}" for other in METRICS if other != chosen)
    print(f"--metrics={chosen}, {reason}; for other rules pass {others}", flush=True)
    return chosen


def _read_metrics(settings, data):
    """Returns the rules by which data were evaluated last, None if they never were."""
    path, _ = results_path(settings.output_dir, EVAL_SETTINGS_FILE, data, beside=EVAL_RESULTS_FILE)
    if not tf.io.gfile.exists(path):
        return None
    return check_types(read_json(path, "the settings of the evaluation"), {"metrics": str}, path, ("metrics",))[
        "metrics"
    ]


SETTING_NAMES = ("doc_stride", "max_query_length", "version_2_with_negative", "head", "question_alignment", "metrics")
COMMAND = FinetuningCommand("run_squad", SETTING_NAMES, ("train_file", "predict_file"), find_paths, make_task, complete)


def run():
    """Runs the command."""
    COMMAND.run(define_flags)
