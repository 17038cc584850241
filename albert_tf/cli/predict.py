"""The command `predict.py`: with TensorFlow, or without it where the model is a LiteRT export."""

import time

from absl import flags

import albert_tf
from albert_tf.batch_prediction import BatchOptions, hold_output, predict_file
from albert_tf.cli import command
from albert_tf.cli.flag_parsing import resolved_flags
from albert_tf.errors import ON_BAD_ROW, InputError
from albert_tf.files import gfile_for, match_files
from albert_tf.litert import find_litert

flags.disclaim_key_flags()


def define_flags():
    """Defines the flags of this command."""
    flags.DEFINE_string(
        "model_dir", None, "Folder of a fine-tuned model, or what export_model.py --format=litert has written."
    )
    flags.DEFINE_string(
        "input_file",
        None,
        "What to predict, an input a row: lines of text, or .jsonl, .csv, .tsv, .parquet or .arrow with the columns "
        "of the training file; .gz too.",
    )
    flags.DEFINE_string("output_file", None, "JSON lines to write, one for each line of the input, in its order.")
    flags.DEFINE_list("input_fields", None, "Columns to read; by default the training file's, or else the task's.")
    flags.DEFINE_integer("predict_batch_size", 64, "Number of texts in a batch.", lower_bound=1)
    flags.DEFINE_enum("on_bad_row", "fail", ON_BAD_ROW, "Lines that can't be read: stop, or write why and continue.")
    flags.DEFINE_bool("with_inputs", False, "Write the input next to each answer.")
    flags.DEFINE_bool("overwrite", False, "Replace the --output_file, and what other predictions have left behind.")


def main():
    given = resolved_flags()
    command.require_folder(model_dir=given.model_dir)
    command.require(input_file=given.input_file, output_file=given.output_file)
    if find_litert(given.model_dir) is None or any("://" in path for path in (given.input_file, given.output_file)):
        from albert_tf.cli import app  # noqa: F401  (it keeps TensorFlow quiet at its start)
    files = match_files([given.input_file], "input_file")
    if len(files) > 1:
        raise InputError(f"--input_file={given.input_file} names {len(files)} files; predict one after the other")
    if given.output_file.lower().endswith((".csv", ".tsv", ".parquet", ".arrow", ".gz")):
        raise InputError(f"--output_file={given.output_file}: lines of JSON are written; call it something.jsonl")
    if given.output_file.endswith("/") or gfile_for(given.output_file).isdir(given.output_file):
        raise InputError(f"--output_file={given.output_file} is a folder; name a file in it")
    with hold_output(given.output_file):
        command.refuse_to_overwrite([given.output_file], given.overwrite)
        predictor = albert_tf.load(given.model_dir)
        options = BatchOptions(
            given.predict_batch_size, given.input_fields, given.on_bad_row == "skip", given.with_inputs
        )
        began_at = time.monotonic()
        counts = predict_file(predictor, files[0], given.output_file, options, given.overwrite)
    num_lines, num_bad_lines, num_lines_before = counts
    seconds = max(time.monotonic() - began_at, 1e-9)
    before = f", {num_lines_before:,} of them by an earlier run" if num_lines_before else ""
    bad = f", {num_bad_lines:,} of them an error in place of an answer" if num_bad_lines else ""
    rate = (num_lines - num_lines_before) / seconds
    print(f"wrote {given.output_file}: {num_lines:,} lines{before}{bad}; {rate:,.0f} texts/s")


def run():
    """Runs the command."""
    command.run(main, define_flags)
