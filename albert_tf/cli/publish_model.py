"""The command `publish_model.py`."""

from albert_tf.cli import app  # first: it keeps TensorFlow quiet at its start

# isort: split
from absl import flags

from albert_tf.cli.flag_parsing import resolved_flags
from albert_tf.interchange.publishing import WEIGHT_DTYPES, publish_model

flags.disclaim_key_flags()


def define_flags():
    """Defines the flags of this command."""
    flags.DEFINE_string("init_checkpoint", None, "Folder of a run, whose best checkpoint is taken, or a checkpoint.")
    flags.DEFINE_string("output_dir", None, "Folder to write, which --init_checkpoint of every command takes.")
    flags.DEFINE_enum("weights_dtype", "float16", WEIGHT_DTYPES, "float16 halves the size.")


def main():
    given = resolved_flags()
    app.require(init_checkpoint=given.init_checkpoint, output_dir=given.output_dir)
    num_bytes = publish_model(given.init_checkpoint, given.output_dir, given.weights_dtype)
    print(f"wrote {given.output_dir}: {num_bytes / 1e6:.1f} MB")


def run():
    """Runs the command."""
    app.run(main, define_flags)
