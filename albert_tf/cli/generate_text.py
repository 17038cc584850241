"""Goes on with texts, or with every line of a file, as a causal language model does.

albert-tf generate-text --model_dir=run/gpt --text="이 영화는" --top_p=0.9
"""

import warnings

from absl import flags

import albert_tf
from albert_tf.cli import answered_file, app, command
from albert_tf.cli.flag_parsing import resolved_flags
from albert_tf.errors import InputError
from albert_tf.generation.text_generator import POSITIONS, count_stopped
from albert_tf.rows.bad_rows import counted
from albert_tf.serving.generated_rows import GeneratedRows

flags.disclaim_key_flags()

_SETTINGS = ("max_pieces", "top_k", "top_p", "temperature", "repetition_penalty", "seed")
# What is said of files.
_OF_FILES = ("output_file", "input_fields", "on_bad_row", "overwrite")
# A part of the file takes as long as there are pieces, not texts, in it.
_BATCHES_PER_PART = 4


def define_flags():
    """Defines the flags of this command."""
    flags.DEFINE_string("model_dir", None, "Folder of a model that was pre-trained to predict the next piece.")
    flags.DEFINE_multi_string(
        "text", [], "A text to continue; the result is printed. Give the flag several times for several texts."
    )
    answered_file.define_flags(
        "Instead of --text, a file of texts to continue, one per row: lines of text, or .jsonl, .csv, .tsv "
        "or .parquet; .gz too.",
        "JSON lines to write, one for each line of the input, in its order.",
        'The column to read, or several that are joined; by default "text".',
        "Number of texts in a batch.",
        default_batch_size=16,
        answers_hold_inputs=True,
    )
    flags.DEFINE_integer(
        "max_pieces", 64, "Maximum number of pieces to generate; a text also ends where its document does.", 1
    )
    flags.DEFINE_integer(
        "top_k", None, "Draw from this many of the most probable pieces; 1: take the first (greedy).", 1
    )
    flags.DEFINE_float(
        "top_p", None, "Draw from the smallest set of most probable pieces whose probabilities add up to this."
    )
    flags.DEFINE_float(
        "temperature", 1.0, "Below 1, probable pieces are drawn more often; 0: take the most probable one (greedy)."
    )
    flags.DEFINE_float("repetition_penalty", 1.0, "Above 1, pieces that are already in the text become less probable.")
    flags.DEFINE_integer("seed", 0, "Random seed; a different seed continues a text differently.", lower_bound=0)


def main():
    given = resolved_flags()
    command.require_folder(model_dir=given.model_dir)
    settings = {name: getattr(given, name) for name in _SETTINGS}
    if given.text:
        _check_no_file(given)
        _print(given, settings)
        return
    if not given.input_file:
        raise InputError("--text and --input_file are missing; give one of them")
    app.require(output_file=given.output_file)

    def print_stopped_short(answers):
        if count := count_stopped(answers, POSITIONS):
            where = "at the model's last position"
            print(f"{counted(count, 'text')} stopped before --max_pieces={given.max_pieces}, {where}")

    answered_file.answer(
        given,
        answered_file.find_input(given),
        lambda: GeneratedRows(albert_tf.load(given.model_dir), **settings),
        print_stopped_short,
        batches_per_part=_BATCHES_PER_PART,
    )


def _check_no_file(given):
    found = [name for name in ("input_file", *_OF_FILES) if name in given.given]
    if found:
        raise InputError(
            f"--{found[0]} can't be used with --text, whose continuations are printed; leave one of them out"
        )


def _print(given, settings):
    model = albert_tf.load(given.model_dir)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UserWarning)
        answers = model.generate(given.text, **settings, batch_size=given.predict_batch_size)
    for answer in answers:
        print(answer["text"])
    for warning in told:
        print(f"warning: {warning.message}")


def run():
    """Runs the command."""
    app.run(main, define_flags)
