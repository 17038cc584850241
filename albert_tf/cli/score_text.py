"""Scores the lines of a file by how probable they are to a pre-trained model, or labels them without any training.

albert-tf score-text --input_file=reviews.txt.gz --output_file=scores.jsonl
albert-tf score-text --template_file=template.txt --input_file=reviews.tsv --output_file=labels.jsonl
"""

import dataclasses

import albert_tf
from albert_tf.api import SHIPPED_MODEL
from albert_tf.asking.input_rows import AskedTexts
from albert_tf.base.errors import InputError
from albert_tf.base.settings import TRAINING, changed, setting
from albert_tf.cli import answered_file, app
from albert_tf.cli.answered_file import AnsweredFileSettings
from albert_tf.serving.choosing import COMPARISONS, GIVEN_LABEL, PMI, describe_accuracy, draw_examples, read_template
from albert_tf.serving.scoring import METHODS

# Settings that go with a template, or with examples in it.
_OF_TEMPLATES = ("train_file", "num_examples", "random_seed", "label_field", "compare")
_OF_EXAMPLES = ("num_examples", "random_seed")
# A part of the file takes about as long as there are pieces, not texts, in it.
_BATCHES_PER_PART = 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScoreSettings(AnsweredFileSettings):
    """The texts to score or to label, and how."""

    model_dir: str = setting(SHIPPED_MODEL, "Folder of a pre-trained model; by default the included small one.")
    input_file: str | None = changed(
        help="What to score, a text a row: lines of text, or .jsonl, .csv, .tsv or .parquet; .gz too.",
    )
    output_file: str | None = changed(
        help="Lines of JSON to write, or a .tsv: one for each line of the input, in its order.",
    )
    predict_batch_size: int = changed(
        help="Number of inputs computed at once; with a masked model, each is a text with one piece masked.",
    )
    method: str | None = setting(
        None,
        "With a masked model, what is masked together with a piece: the later pieces of its word (default), or "
        "nothing.",
        choices=METHODS,
    )
    template_file: str | None = setting(
        None,
        "Label the texts, without training: a file whose first line is as '{text} 한마디로 {answer}', and each other "
        "one a label with its answer, as 'positive: 재밌다'.",
    )
    train_file: str | None = setting(None, "With a template: labelled texts to draw examples from.")
    num_examples: int = setting(4, "With --train_file: how many examples to put in front of a text.", least=1)
    random_seed: int = setting(0, "With --train_file: random seed of the examples.", least=0, group=TRAINING)
    label_field: str = setting(
        "label", "With a template: the column with the right labels; prints how often they are chosen."
    )
    compare: str = setting(
        PMI,
        "With a template: choose the answer with the highest score, score per character, or pmi, its score minus that "
        "without the text.",
        choices=COMPARISONS,
    )


SETTINGS = ScoreSettings


def main(settings):
    settings.require("model_dir", "input_file", "output_file")
    _check_together(settings)
    input_file = answered_file.find_input(settings, writes_tables=True)
    if settings.template_file:
        _label(settings, input_file)
        return
    answered_file.answer(
        settings,
        input_file,
        lambda: AskedTexts(albert_tf.load(settings.model_dir), "score", method=settings.method),
        batches_per_part=_BATCHES_PER_PART,
    )


def _label(settings, input_file):
    template, answers = read_template(settings.template_file)
    examples = []
    if settings.train_file:
        columns = ",".join(settings.input_fields or ["text"]), settings.label_field
        examples = draw_examples(settings.train_file, *columns, answers, settings.num_examples, settings.random_seed)
    options = {"template": template, "answers": answers, "examples": examples, "compare": settings.compare}

    def print_accuracy(found):
        accuracy = describe_accuracy(found)
        if accuracy is not None:
            print(accuracy)
        elif "label_field" in settings.given:
            print(f"warning: no row has a column {settings.label_field}, so it is not known how many labels are right")

    answered_file.answer(
        settings,
        input_file,
        lambda: AskedTexts(albert_tf.load(settings.model_dir), "choose", **options),
        print_accuracy,
        kept_columns={settings.label_field: GIVEN_LABEL},
        batches_per_part=_BATCHES_PER_PART,
    )


def _check_together(settings):
    """Checks that no setting is given without those that it goes with."""
    for names, needed in ((_OF_TEMPLATES, "template_file"), (_OF_EXAMPLES, "train_file")):
        alone = [name for name in names if name in settings.given and not getattr(settings, needed)]
        if alone:
            raise InputError(f"`{alone[0]}` has no effect without `{needed}`; leave it out, or name the file")
    if settings.template_file and settings.method:
        raise InputError(
            "`method` can't be used with `template_file`, which always masks the later pieces of a word; leave it out"
        )


def run():
    app.run(main, SETTINGS)
