"""The command `augment_texts.py`."""

import dataclasses
import os
import time

from absl import flags

import albert_tf
from albert_tf.api import SHIPPED_MODEL
from albert_tf.batch_prediction import hold_output
from albert_tf.batch_prediction.prediction import PARTS_ENDING
from albert_tf.cli import app, command
from albert_tf.cli.flag_parsing import resolved_flags
from albert_tf.errors import ON_BAD_ROW, InputError
from albert_tf.files import gfile_for, match_files, replacing
from albert_tf.finetuning.datasets import DATASETS
from albert_tf.progress_line import ProgressLine, format_seconds
from albert_tf.rows.bad_rows import counted
from albert_tf.serving.augmentation.augmenter import AugmentationOptions, Augmenter
from albert_tf.serving.augmentation.files import distinct_copies, read_rows, write_table

flags.disclaim_key_flags()

# What names the columns of a table.
_OF_COLUMNS = ("task_name", "text_column", "text_pair_column")


def define_flags():
    """Defines the flags of this command."""
    flags.DEFINE_string(
        "model_dir", SHIPPED_MODEL, "Folder of a model that can fill masks; by default the included small one."
    )
    flags.DEFINE_string(
        "input_file",
        None,
        "Texts: a file of the task, with labels or without, as run_classifier.py reads it; or a text a line.",
    )
    flags.DEFINE_string("output_file", None, "Table to write, a .tsv, for --unlabelled_file of run_classifier.py.")
    flags.DEFINE_enum(
        "task_name", None, sorted(DATASETS), "The public data set that the file is of; see run_classifier.py."
    )
    flags.DEFINE_string("text_column", None, "Column of the text, or title,text, joined; by default document.")
    flags.DEFINE_string("text_pair_column", None, "Column of a second text; both of a pair are changed.")
    options = AugmentationOptions()
    flags.DEFINE_integer("num_copies", options.num_copies, "Copies of each text.")
    flags.DEFINE_float("replaced_share", options.replaced_share, "Probability that a word is replaced.")
    flags.DEFINE_integer(
        "num_candidates", options.num_candidates, "Number of most probable pieces from which a replacement is drawn."
    )
    flags.DEFINE_integer("random_seed", options.random_seed, "Random seed; a different seed gives different copies.")
    flags.DEFINE_enum("on_bad_row", None, ON_BAD_ROW, "Rows that can't be read: stop, or leave them out.")
    flags.DEFINE_bool("overwrite", False, "Replace the --output_file.")


def main():
    given = resolved_flags()
    app.require(model_dir=given.model_dir, input_file=given.input_file, output_file=given.output_file)
    options = AugmentationOptions(**{name: getattr(given, name) for name in AugmentationOptions.__dataclass_fields__})
    path, files = _find_input(given), _data_files(given)
    with hold_output(given.output_file):
        command.refuse_to_overwrite([given.output_file], given.overwrite)
        rows = read_rows(path, files, any(name in given.given for name in _OF_COLUMNS))
        augmenter = Augmenter(albert_tf.load(given.model_dir), options)
        report = _Report(len(rows))
        # It lies there until it is whole, so that a command that is killed leaves nothing else.
        unfinished = os.path.join(f"{given.output_file}{PARTS_ENDING}", "copies")
        with replacing(unfinished) as file:
            count, first = write_table(file, distinct_copies(augmenter, rows, report.update), files)
        report.finish()
        gfile_for(unfinished).rename(unfinished, given.output_file, overwrite=True)
    left_out = len(rows) * options.num_copies - count
    print(f"wrote {given.output_file}: {count:,} copies of {counted(len(rows), 'text')}\n  the first: {first}")
    print(
        f"left out because they equal a text or another copy: {left_out:,}; labels are not copied, "
        "because a replaced word may change them"
    )


def _find_input(given):
    """Returns the path of the file to read, after checking what can be checked without a model."""
    files = match_files([given.input_file], "input_file")
    if len(files) > 1:
        raise InputError(f"--input_file={given.input_file} names {len(files)} files; process one at a time")
    if not given.output_file.lower().endswith(".tsv"):
        raise InputError(
            f"--output_file={given.output_file}: the output is a tab-separated table; use a name such as something.tsv"
        )
    if gfile_for(given.output_file).isdir(given.output_file):
        raise InputError(f"--output_file={given.output_file} is a folder; name a file in it")
    return files[0]


def _data_files(given):
    """Returns what the columns of the file mean."""
    names = ("text_column", "text_pair_column", "on_bad_row")
    return dataclasses.replace(
        DATASETS[given.task_name or "tsv"], **{name: getattr(given, name) for name in names if getattr(given, name)}
    )


class _Report:
    """Tells how far the copies are; the first batch, with what is compiled for it, is left out of the rate."""

    def __init__(self, num_texts):
        self._line, self._num_texts, self._first = ProgressLine(), num_texts, None

    def update(self, num_done):
        """Tells of how many texts the work is done, if the last time is long enough ago."""
        now = time.monotonic()
        if self._first is None:
            self._first = now, num_done
        seconds, done = now - self._first[0], num_done - self._first[1]
        if done and self._line.is_due:
            eta = format_seconds(seconds * (self._num_texts - num_done) / done)
            share = num_done / self._num_texts
            self._line.show(
                f"{int(num_done):,} of {self._num_texts:,} texts {share:.0%} | {done / seconds:,.1f} texts/s ETA {eta}"
            )

    def finish(self):
        """Leaves the last line where it is."""
        self._line.finish()


def run():
    """Runs the command."""
    app.run(main, define_flags)
