"""The command `run_ner.py`."""

from albert_tf.cli import app  # first: it keeps TensorFlow quiet at its start

# isort: split
import dataclasses

from absl import flags

from albert_tf.cli.finetuning_command import DEV, TEST, TRAIN, FinetuningCommand
from albert_tf.cli.finetuning_flags import define_baselines_flag, define_finetuning_flags
from albert_tf.errors import ON_BAD_ROW, InputError
from albert_tf.finetuning import Entities
from albert_tf.finetuning.datasets import find_files
from albert_tf.finetuning.defaults import default_character_ngrams
from albert_tf.finetuning.entities.decoding import BEST_SEQUENCE, DECODINGS, INDEPENDENT
from albert_tf.finetuning.entities.metrics import METRICS
from albert_tf.finetuning.entities.tagged_text import DATASETS, types_of


def define_flags():
    """Defines the flags of this command."""
    flags.DEFINE_enum(
        "task_name",
        None,
        sorted(DATASETS),
        "naver_ner: a sentence a line, a tab, a tag for each word; klue_ner: a character and its tag a line; conll: a "
        "word and its tag a line.",
    )
    flags.DEFINE_string("data_dir", None, "Folder of the task's files.")
    flags.DEFINE_list("types", None, "The types of entities, in order; by default those of the training file.")
    flags.DEFINE_list(
        "metrics", None, f"Measures, the first of which chooses the best checkpoint: {', '.join(METRICS)}."
    )
    flags.DEFINE_bool(
        "character_ngrams",
        None,
        "Also read the characters around the first and the last one of each word; the default in small models.",
    )
    flags.DEFINE_enum(
        "decoding",
        None,
        DECODINGS,
        "independent: each word or character gets its most probable tag; best_sequence, the default: a "
        "sentence gets its most probable sequence of tags in which every I- continues an entity.",
    )
    flags.DEFINE_enum("on_bad_row", "fail", ON_BAD_ROW, "Lines that can't be used: stop, or leave their sentences out.")
    define_finetuning_flags("longer ones are read in parts. By default 99.5% fit, if the model reads so much.")
    define_baselines_flag()


def find_paths(settings, part):
    """Returns the paths of the training file, the file for evaluation, or the one to predict."""
    app.require(task_name=settings.task_name, data_dir=settings.data_dir)
    files = DATASETS[settings.task_name]
    return find_files(settings.data_dir, {TRAIN: files.train, DEV: files.dev, TEST: files.test}[part])


def complete(settings, config, is_known):
    """Returns settings that say whether the head reads characters, and how tags are found."""
    reads_characters, decoding = settings.character_ngrams, settings.decoding
    if reads_characters is None:  # a head that is there reads what it was trained on
        reads_characters = default_character_ngrams(config) if settings.do_train else config.character_ngrams
    if decoding is None:  # a published model says it only where it is not independent
        decoding = INDEPENDENT if is_known else BEST_SEQUENCE
    return dataclasses.replace(settings, character_ngrams=reads_characters, decoding=decoding)


def make_task(settings, config):
    """Returns the task; its types are those set or the run's, or else those of the training file."""
    app.require(task_name=settings.task_name, data_dir=settings.data_dir)
    files = DATASETS[settings.task_name]
    metrics = tuple(settings.metrics or files.metrics)
    for metric in metrics:
        if metric not in METRICS:
            raise InputError(f"--metrics={metric} is not one of {', '.join(METRICS)}")
    types = tuple(settings.types or types_of(find_paths(settings, TRAIN), files.form, settings.on_bad_row))
    config = config.replace(character_ngrams=settings.character_ngrams)
    return Entities(config, types, files.form, metrics, settings.on_bad_row, settings.decoding)


SETTING_NAMES = ("task_name", "types", "metrics", "character_ngrams", "decoding")
COMMAND = FinetuningCommand("run_ner", SETTING_NAMES, ("data_dir",), find_paths, make_task, complete)


def run():
    """Runs the command."""
    COMMAND.run(define_flags)
