"""The command `convert_checkpoint.py`."""

from albert_tf.cli import app  # first: it keeps TensorFlow quiet at its start

# isort: split
import dataclasses

from albert_tf.base.console import tell
from albert_tf.base.settings import MODEL, Settings, setting
from albert_tf.base.shipped_files import or_shipped
from albert_tf.finetuning import TASKS
from albert_tf.interchange.conversion import FORMATS, convert_checkpoint
from albert_tf.interchange.portable_model import ReadOptions
from albert_tf.interchange.publishing import WEIGHT_DTYPES


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConvertSettings(Settings):
    """The conversion to make; `ReadOptions` has fields of the same names."""

    from_: str = setting("albert_tf", "What is read.", choices=FORMATS)
    to: str = setting("albert_tf", "Format to write; --init_checkpoint accepts albert_tf.", choices=FORMATS)
    input_path: str | None = setting(None, "Folder to read, or of albert_tf and google a checkpoint.")
    output_dir: str | None = setting(None, "Folder to write; must be missing or empty.", group=MODEL)
    weights_dtype: str | None = setting(
        None, "Of what stays in our format: float16 by default, half the size.", choices=WEIGHT_DTYPES
    )
    vocab_file: str | None = setting(None, "WordPiece vocabulary, if not the one beside the checkpoint.")
    spm_model_file: str | None = setting(None, "SentencePiece model, if not the one beside the checkpoint.")
    do_lower_case: bool | None = setting(
        None, "Lower-case letters; by default as the tokenizer's files say, or else yes."
    )
    strip_accents: bool | None = setting(
        None, "Drop accents; by default as the tokenizer's files say, or else if letters are lower-cased."
    )
    split_number_commas: bool | None = setting(
        None,
        "With SentencePiece: split a piece that ends in a digit and a comma before the comma, as the original does.",
    )
    task: str | None = setting(
        None, "What a fine-tuned head is for, if the checkpoint doesn't say.", choices=tuple(TASKS)
    )
    albert_config_file: str | None = setting(
        None, "Config of Google's checkpoint, if it is not next to the checkpoint."
    )


SETTINGS = ConvertSettings


def main(settings):
    settings.require("input_path", "output_dir")
    options = ReadOptions(**{field.name: getattr(settings, field.name) for field in dataclasses.fields(ReadOptions)})
    input_path = or_shipped(settings.input_path)
    for sentence in convert_checkpoint(
        settings.from_, settings.to, input_path, settings.output_dir, options, settings.weights_dtype
    ):
        tell(sentence)


def run():
    app.run(main, SETTINGS)
