"""The commands that ask a pre-trained model about every row of a file: how probable it is, or what comes after it."""

from albert_tf.cli.app import command  # first: it keeps TensorFlow quiet at its start

# isort: split
import dataclasses
import warnings

import albert_tf
from albert_tf.api import SHIPPED_MODEL
from albert_tf.asking.input_rows import AskedTexts
from albert_tf.base.console import tell
from albert_tf.base.errors import InputError
from albert_tf.base.settings import TRAINING, changed, setting
from albert_tf.cli.command import require_folder
from albert_tf.cli.predict import AnsweredFileSettings, answer_file, find_input
from albert_tf.reading.rows import counted
from albert_tf.serving.choosing import COMPARISONS, GIVEN_LABEL, PMI, describe_accuracy, draw_examples, read_template
from albert_tf.serving.scoring import METHODS
from albert_tf.serving.text_generator import POSITIONS, count_stopped

# A part of the file takes about as long as there are pieces, not texts, in it.
_BATCHES_PER_PART = 4
# Settings that go with a template, or with examples in it.
_OF_TEMPLATES = ("train_file", "num_examples", "random_seed", "label_field", "compare")
_OF_EXAMPLES = ("num_examples", "random_seed")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScoreSettings(AnsweredFileSettings):
    """The texts to score or to label, and how."""

    model_dir: str = setting(SHIPPED_MODEL, "Folder of a pre-trained model; by default the included small one.")
    input_file: str | None = setting(
        None, "What to score, a text a row: lines of text, or .jsonl, .csv, .tsv or .parquet; .gz too."
    )
    output_file: str | None = setting(
        None, "Lines of JSON to write, or a .tsv: one for each line of the input, in its order."
    )
    predict_batch_size: int = setting(
        64, "Number of inputs computed at once; with a masked model, each is a text with one piece masked.", least=1
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


@command(ScoreSettings)
def score_text(settings):
    """Scores the lines of a file by how probable they are to a pre-trained model, or labels them without any training.

    albert-tf score-text --input_file=reviews.txt.gz --output_file=scores.jsonl
    albert-tf score-text --template_file=template.txt --input_file=reviews.tsv --output_file=labels.jsonl
    """
    settings.require("model_dir", "input_file", "output_file")
    _check_together(settings)
    input_file = find_input(settings, writes_tables=True)
    if settings.template_file:
        _label(settings, input_file)
        return
    answer_file(
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

    answer_file(
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
        raise InputError("`method` can't be used with `template_file`, which masks within words; leave it out")


_OF_GENERATION = ("max_pieces", "top_k", "top_p", "temperature", "repetition_penalty", "seed")
# Settings that go with files.
_OF_FILES = ("output_file", "input_fields", "on_bad_row", "overwrite")


@dataclasses.dataclass(frozen=True, kw_only=True)
class GenerateSettings(AnsweredFileSettings):
    """Which texts are to be continued, and how."""

    model_dir: str | None = setting(None, "Folder of a model that was pre-trained to predict the next piece.")
    text: tuple[str, ...] = setting(
        (), "A text to continue; the result is printed. Give the flag several times for several texts.", repeats=True
    )
    input_file: str | None = setting(
        None,
        "Instead of --text, a file of texts to continue, one per row: lines of text, or .jsonl, .csv, .tsv or "
        ".parquet; .gz too.",
    )
    predict_batch_size: int = changed(16)
    with_inputs: bool = changed(is_flag=False)  # answers begin with them
    max_pieces: int = setting(
        64, "Maximum number of pieces to generate; a text also ends where its document does.", least=1
    )
    top_k: int | None = setting(
        None, "Draw from this many of the most probable pieces; 1: take the first (greedy).", least=1
    )
    top_p: float | None = setting(
        None, "Draw from the smallest set of most probable pieces whose probabilities add up to this."
    )
    temperature: float = setting(
        1.0, "Below 1, probable pieces are drawn more often; 0: take the most probable one (greedy)."
    )
    repetition_penalty: float = setting(1.0, "Above 1, pieces that are already in the text become less probable.")
    seed: int = setting(0, "Random seed; a different seed continues a text differently.", least=0)


@command(GenerateSettings)
def generate_text(settings):
    """Goes on with texts, or with every line of a file, as a causal language model does.

    albert-tf generate-text --model_dir=run/gpt --text="이 영화는" --top_p=0.9
    """
    require_folder(settings, "model_dir")
    options = {name: getattr(settings, name) for name in _OF_GENERATION}
    if settings.text:
        found = [name for name in ("input_file", *_OF_FILES) if name in settings.given]
        if found:
            raise InputError(f"`{found[0]}` can't be used with `text`, whose continuations are printed; leave one out")
        _print(settings, options)
        return
    if not settings.input_file:
        raise InputError("`text` and `input_file` are missing; give one of them")
    settings.require("output_file")

    def print_stopped_short(answers):
        if count := count_stopped(answers, POSITIONS):
            where = "at the model's last position"
            tell(f"{counted(count, 'text')} stopped before `max_pieces={settings.max_pieces}`, {where}")

    answer_file(
        settings,
        find_input(settings),
        lambda: AskedTexts(albert_tf.load(settings.model_dir), "generate", **options),
        print_stopped_short,
        batches_per_part=_BATCHES_PER_PART,
    )


def _print(settings, options):
    model = albert_tf.load(settings.model_dir)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UserWarning)
        answers = model.generate(list(settings.text), **options, batch_size=settings.predict_batch_size)
    for answer in answers:
        print(answer["text"])
    for warning in told:
        print(f"warning: {warning.message}")
