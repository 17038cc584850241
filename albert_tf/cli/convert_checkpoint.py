"""The command `convert_checkpoint.py`."""

from albert_tf.cli import app  # first: it keeps TensorFlow quiet at its start

# isort: split
import dataclasses

from absl import flags

from albert_tf.cli.command import with_flags
from albert_tf.interchange.conversion import FORMATS, convert_checkpoint
from albert_tf.interchange.portable_model import ReadOptions
from albert_tf.interchange.publishing import WEIGHT_DTYPES
from albert_tf.interchange.variables import HEADS
from albert_tf.shipped_files import or_shipped

FLAGS = flags.FLAGS

flags.disclaim_key_flags()


def define_flags():
    """Defines the flags of this command."""
    flags.DEFINE_enum("from", "albert_tf", list(FORMATS), "What is read.")
    flags.DEFINE_enum("to", "albert_tf", list(FORMATS), "Format to write; --init_checkpoint accepts albert_tf.")
    flags.DEFINE_string("input_path", None, "Folder to read, or of albert_tf and google a checkpoint.")
    flags.DEFINE_string("output_dir", None, "Folder to write; must be missing or empty.")
    flags.DEFINE_enum(
        "weights_dtype", None, WEIGHT_DTYPES, "Of what stays in our format: float16 by default, half the size."
    )
    flags.DEFINE_string("vocab_file", None, "WordPiece vocabulary, if not the one beside the checkpoint.")
    flags.DEFINE_string("spm_model_file", None, "SentencePiece model, if not the one beside the checkpoint.")
    flags.DEFINE_bool(
        "do_lower_case", None, "Lower-case letters; by default as the tokenizer's files say, or else yes."
    )
    flags.DEFINE_bool(
        "strip_accents",
        None,
        "Drop accents; by default as the tokenizer's files say, or else if letters are lower-cased.",
    )
    flags.DEFINE_bool(
        "split_number_commas",
        None,
        "With SentencePiece: split a piece that ends in a digit and a comma before the comma, as the original does.",
    )
    flags.DEFINE_enum("task", None, list(HEADS), "What a fine-tuned head is for, if the checkpoint doesn't say.")
    flags.DEFINE_string(
        "albert_config_file", None, "Config of Google's checkpoint, if it is not next to the checkpoint."
    )


def main():
    app.require(input_path=FLAGS.input_path, output_dir=FLAGS.output_dir)
    names = [field.name for field in dataclasses.fields(ReadOptions)]
    options = ReadOptions(**{name: FLAGS[name].value for name in names})
    input_path = or_shipped(FLAGS.input_path)
    for sentence in convert_checkpoint(
        FLAGS["from"].value, FLAGS.to, input_path, FLAGS.output_dir, options, FLAGS.weights_dtype
    ):
        print(with_flags(sentence))


def run():
    """Runs the command."""
    app.run(main, define_flags)
