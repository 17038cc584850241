"""Scores the lines of a file by how probable they are to a pre-trained model, or labels them without any training.

albert-tf score-text --input_file=reviews.txt.gz --output_file=scores.jsonl
albert-tf score-text --template_file=template.txt --input_file=reviews.tsv --output_file=labels.jsonl
"""

from absl import flags

import albert_tf
from albert_tf.api import SHIPPED_MODEL
from albert_tf.cli import answered_file, app
from albert_tf.cli.flag_parsing import resolved_flags
from albert_tf.errors import InputError
from albert_tf.serving.scoring.asked_rows import ChosenRows, ScoredRows
from albert_tf.serving.scoring.choosing import COMPARISONS, GIVEN_LABEL, PMI, describe_accuracy
from albert_tf.serving.scoring.examples import draw_examples
from albert_tf.serving.scoring.queries import METHODS
from albert_tf.serving.scoring.template import read_template

flags.disclaim_key_flags()

# What is said of a template, or of examples in it.
_OF_TEMPLATES = ("train_file", "num_examples", "random_seed", "label_field", "compare")
_OF_EXAMPLES = ("num_examples", "random_seed")
# A part of the file takes about as long as there are pieces, not texts, in it.
_BATCHES_PER_PART = 4


def define_flags():
    """Defines the flags of this command."""
    flags.DEFINE_string("model_dir", SHIPPED_MODEL, "Folder of a pre-trained model; by default the included small one.")
    answered_file.define_flags(
        "What to score, a text a row: lines of text, or .jsonl, .csv, .tsv or .parquet; .gz too.",
        "Lines of JSON to write, or a .tsv: one for each line of the input, in its order.",
        'The column to read, or several that are joined; by default "text".',
        "Number of inputs computed at once; with a masked model, each is a text with one piece masked.",
    )
    flags.DEFINE_enum(
        "method",
        None,
        METHODS,
        "With a masked model, what is masked together with a piece: the later pieces of its word "
        "(default), or nothing.",
    )
    flags.DEFINE_string(
        "template_file",
        None,
        "Label the texts, without training: a file whose first line is as '{text} 한마디로 {answer}', and each other "
        "one a label with its answer, as 'positive: 재밌다'.",
    )
    flags.DEFINE_string("train_file", None, "With a template: labelled texts to draw examples from.")
    flags.DEFINE_integer(
        "num_examples", 4, "With --train_file: how many examples to put in front of a text.", lower_bound=1
    )
    flags.DEFINE_integer("random_seed", 0, "With --train_file: random seed of the examples.", lower_bound=0)
    flags.DEFINE_string(
        "label_field", "label", "With a template: the column with the right labels; prints how often they are chosen."
    )
    flags.DEFINE_enum(
        "compare",
        PMI,
        COMPARISONS,
        "With a template: choose the answer with the highest score, score per character, or pmi, its "
        "score minus that without the text.",
    )


def main():
    given = resolved_flags()
    app.require(model_dir=given.model_dir, input_file=given.input_file, output_file=given.output_file)
    _check_together(given)
    input_file = answered_file.find_input(given, writes_tables=True)
    if given.template_file:
        _label(given, input_file)
        return
    answered_file.answer(
        given,
        input_file,
        lambda: ScoredRows(albert_tf.load(given.model_dir), given.method),
        batches_per_part=_BATCHES_PER_PART,
    )


def _label(given, input_file):
    template, answers = read_template(given.template_file)
    examples = []
    if given.train_file:
        columns = ",".join(given.input_fields or ["text"]), given.label_field
        examples = draw_examples(given.train_file, *columns, answers, given.num_examples, given.random_seed)
    options = {"template": template, "answers": answers, "examples": examples, "compare": given.compare}

    def print_accuracy(found):
        accuracy = describe_accuracy(found)
        if accuracy is not None:
            print(accuracy)
        elif "label_field" in given.given:
            print(f"warning: no row has a column {given.label_field}, so it is not known how many labels are right")

    answered_file.answer(
        given,
        input_file,
        lambda: ChosenRows(albert_tf.load(given.model_dir), **options),
        print_accuracy,
        kept_columns={given.label_field: GIVEN_LABEL},
        batches_per_part=_BATCHES_PER_PART,
    )


def _check_together(given):
    """Checks that nothing is given that has no meaning without what is not given."""
    for names, needed in ((_OF_TEMPLATES, "template_file"), (_OF_EXAMPLES, "train_file")):
        alone = [name for name in names if name in given.given and not getattr(given, needed)]
        if alone:
            raise InputError(f"--{alone[0]} has no effect without --{needed}; leave it out, or name the file")
    if given.template_file and given.method:
        raise InputError(
            "--method can't be used with --template_file, which always masks the later pieces of a word; leave it out"
        )


def run():
    """Runs the command."""
    app.run(main, define_flags)
