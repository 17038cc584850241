"""The commands that write a model for others: to be asked, or in another library's format."""

from albert_tf.cli.app import command  # first: it keeps TensorFlow quiet at its start

# isort: split
import dataclasses
import os

from albert_tf.base.console import tell
from albert_tf.base.settings import MODEL, Settings, setting
from albert_tf.base.shipped_files import or_shipped
from albert_tf.finetuning import TASKS
from albert_tf.interchange import conversion
from albert_tf.interchange.ours import WEIGHT_DTYPES
from albert_tf.interchange.portable_model import ReadOptions
from albert_tf.serving import exporting
from albert_tf.serving.formats import FORMATS
from albert_tf.tokenization import SentencePieceTokenizer

_WEIGHT_TYPES = tuple(dict.fromkeys(kind for each in FORMATS.values() for kind in each.weight_types))


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportSettings(Settings):
    """The model to export, and its form."""

    model_dir: str | None = setting(None, "Folder of a fine-tuned or pre-trained model, also one of transformers.")
    output_dir: str | None = setting(
        None, "Folder to write; each export is a new version below it: 1, 2 and so on.", group=MODEL
    )
    format: str = setting(
        "saved_model",
        "saved_model takes strings, for TensorFlow and TensorFlow Serving; litert and onnx take ids.",
        choices=FORMATS,
    )
    weights: str = setting(
        "float32",
        "Type in which large weights are stored, to make the export smaller: bfloat16 of a SavedModel, which is "
        "computed in, too; float16 or int8 of LiteRT.",
        choices=_WEIGHT_TYPES,
    )
    spm_model_file: str | None = setting(None, "SentencePiece model, where --model_dir has no tokenizer.")
    do_lower_case: bool = setting(True, "With --spm_model_file: lower-case letters.")


@command(ExportSettings)
def export_model(settings):
    """The command `export_model.py`."""
    settings.require("model_dir", "output_dir")
    tokenizer = None
    if settings.spm_model_file:
        tokenizer = SentencePieceTokenizer.from_model_file(settings.spm_model_file, lower_case=settings.do_lower_case)
    with conversion.as_ours(settings.model_dir, needs_tokenizer=tokenizer is None) as ours:
        path = exporting.export_model(ours.path, settings.output_dir, settings.weights, settings.format, tokenizer)
    size = sum(os.path.getsize(os.path.join(folder, file)) for folder, _, files in os.walk(path) for file in files)
    print(f"wrote {path}: {size / 1e6:.1f} MB")
    for name, signature in FORMATS[settings.format].read_card(path)["signatures"].items():
        print(f"  {name}({', '.join(signature['inputs'])}) returns {', '.join(signature['outputs'])}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConvertSettings(Settings):
    """The conversion to make; `ReadOptions` has fields of the same names."""

    from_: str = setting("albert_tf", "What is read.", choices=conversion.FORMATS)
    to: str = setting("albert_tf", "Format to write; --init_checkpoint accepts albert_tf.", choices=conversion.FORMATS)
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
        None,
        "What a fine-tuned head is for, if the checkpoint doesn't say.",
        choices=tuple(name for name, task in TASKS.items() if task.kind.head.layers),
    )
    albert_config_file: str | None = setting(
        None, "Config of Google's checkpoint, if it is not next to the checkpoint."
    )


@command(ConvertSettings)
def convert_checkpoint(settings):
    """The command `convert_checkpoint.py`."""
    settings.require("input_path", "output_dir")
    options = ReadOptions(**{field.name: getattr(settings, field.name) for field in dataclasses.fields(ReadOptions)})
    input_path = or_shipped(settings.input_path)
    for sentence in conversion.convert_checkpoint(
        settings.from_, settings.to, input_path, settings.output_dir, options, settings.weights_dtype
    ):
        tell(sentence)
