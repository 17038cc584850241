"""The command `export_model.py`."""

from albert_tf.cli import app  # first: it keeps TensorFlow quiet at its start

# isort: split
import contextlib
import dataclasses
import os

from albert_tf.base.settings import MODEL, Settings, setting
from albert_tf.interchange.foreign_folder import as_ours, format_of
from albert_tf.serving.exporting import export_model
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

    def named_tokenizer(self) -> SentencePieceTokenizer | None:
        """Returns the tokenizer of `spm_model_file`, None where that is not set."""
        if not self.spm_model_file:
            return None
        return SentencePieceTokenizer.from_model_file(self.spm_model_file, lower_case=self.do_lower_case)


SETTINGS = ExportSettings


@contextlib.contextmanager
def our_model(folder, needs_tokenizer):
    """Yields the folder, or in its place a temporary one of ours for the model of another library."""
    source = format_of(folder)
    if source is None:
        yield folder
        return
    with as_ours(folder, source, needs_tokenizer) as ours:
        yield ours.path


def main(settings):
    settings.require("model_dir", "output_dir")
    tokenizer = settings.named_tokenizer()
    with our_model(settings.model_dir, needs_tokenizer=tokenizer is None) as model_dir:
        path = export_model(model_dir, settings.output_dir, settings.weights, settings.format, tokenizer)
    size = sum(os.path.getsize(os.path.join(folder, file)) for folder, _, files in os.walk(path) for file in files)
    print(f"wrote {path}: {size / 1e6:.1f} MB")
    for name, signature in FORMATS[settings.format].read_card(path)["signatures"].items():
        print(f"  {name}({', '.join(signature['inputs'])}) returns {', '.join(signature['outputs'])}")


def run():
    app.run(main, SETTINGS)
