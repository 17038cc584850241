"""The command `export_model.py`."""

from albert_tf.cli import app  # first: it keeps TensorFlow quiet at its start

# isort: split
import contextlib
import os

from absl import flags

from albert_tf.cli.flag_parsing import resolved_flags
from albert_tf.interchange.foreign_folder import as_ours, format_of
from albert_tf.serving.exported import read_card
from albert_tf.serving.exporting import FORMATS, WEIGHT_TYPES, export_model
from albert_tf.tokenization import SentencePieceTokenizer

flags.disclaim_key_flags()


def define_flags():
    """Defines the flags of this command."""
    flags.DEFINE_string("model_dir", None, "Folder of a fine-tuned or pre-trained model, also one of transformers.")
    flags.DEFINE_string("output_dir", None, "Folder to write; each export is a new version below it: 1, 2 and so on.")
    flags.DEFINE_enum(
        "format",
        "saved_model",
        FORMATS,
        "saved_model takes strings, for TensorFlow and TensorFlow Serving; litert and onnx take ids.",
    )
    flags.DEFINE_enum(
        "weights",
        "float32",
        WEIGHT_TYPES,
        "Type in which large weights are stored, to make the export smaller: bfloat16 of a SavedModel, which is "
        "computed in, too; float16 or int8 of LiteRT.",
    )
    flags.DEFINE_string("spm_model_file", None, "SentencePiece model, where --model_dir has no tokenizer.")
    flags.DEFINE_bool("do_lower_case", True, "With --spm_model_file: lower-case letters.")


def tokenizer_from_flags(given):
    if not given.spm_model_file:
        return None
    return SentencePieceTokenizer.from_model_file(given.spm_model_file, lower_case=given.do_lower_case)


@contextlib.contextmanager
def our_model(folder, needs_tokenizer):
    """Gives the folder, or while it lasts one of ours with the model of another library."""
    source = format_of(folder)
    if source is None:
        yield folder
        return
    with as_ours(folder, source, needs_tokenizer) as ours:
        yield ours.path


def main():
    given = resolved_flags()
    app.require(model_dir=given.model_dir, output_dir=given.output_dir)
    tokenizer = tokenizer_from_flags(given)
    with our_model(given.model_dir, needs_tokenizer=tokenizer is None) as model_dir:
        path = export_model(model_dir, given.output_dir, given.weights, given.format, tokenizer)
    size = sum(os.path.getsize(os.path.join(folder, file)) for folder, _, files in os.walk(path) for file in files)
    print(f"wrote {path}: {size / 1e6:.1f} MB")
    for name, signature in read_card(path)["signatures"].items():
        print(f"  {name}({', '.join(signature['inputs'])}) returns {', '.join(signature['outputs'])}")


def run():
    """Runs the command."""
    app.run(main, define_flags)
