"""Goes on with texts, or with every line of a file, as a causal language model does.

albert-tf generate-text --model_dir=run/gpt --text="이 영화는" --top_p=0.9
"""

import dataclasses
import warnings

import albert_tf
from albert_tf.asking.input_rows import AskedTexts
from albert_tf.base.console import tell
from albert_tf.base.errors import InputError
from albert_tf.base.settings import changed, setting
from albert_tf.cli import answered_file, app, command
from albert_tf.cli.answered_file import AnsweredFileSettings
from albert_tf.reading.bad_rows import counted
from albert_tf.serving.text_generator import POSITIONS, count_stopped

_OF_GENERATION = ("max_pieces", "top_k", "top_p", "temperature", "repetition_penalty", "seed")
# Settings that go with files.
_OF_FILES = ("output_file", "input_fields", "on_bad_row", "overwrite")
# A part of the file takes as long as there are pieces, not texts, in it.
_BATCHES_PER_PART = 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class GenerateSettings(AnsweredFileSettings):
    """Which texts are to be continued, and how."""

    model_dir: str | None = setting(None, "Folder of a model that was pre-trained to predict the next piece.")
    text: tuple[str, ...] = setting(
        (), "A text to continue; the result is printed. Give the flag several times for several texts.", repeats=True
    )
    input_file: str | None = changed(
        help="Instead of --text, a file of texts to continue, one per row: lines of text, or .jsonl, .csv, .tsv or "
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


SETTINGS = GenerateSettings


def main(settings):
    command.require_folder(settings, "model_dir")
    options = {name: getattr(settings, name) for name in _OF_GENERATION}
    if settings.text:
        found = [name for name in ("input_file", *_OF_FILES) if name in settings.given]
        if found:
            raise InputError(
                f"`{found[0]}` can't be used with `text`, whose continuations are printed; leave one of them out"
            )
        _print(settings, options)
        return
    if not settings.input_file:
        raise InputError("`text` and `input_file` are missing; give one of them")
    settings.require("output_file")

    def print_stopped_short(answers):
        if count := count_stopped(answers, POSITIONS):
            where = "at the model's last position"
            tell(f"{counted(count, 'text')} stopped before `max_pieces={settings.max_pieces}`, {where}")

    answered_file.answer(
        settings,
        answered_file.find_input(settings),
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


def run():
    app.run(main, SETTINGS)
