"""The command `publish_model.py`."""

from albert_tf.cli import app  # first: it keeps TensorFlow quiet at its start

# isort: split
from absl import flags

from albert_tf.cli.flag_parsing import resolved_flags
from albert_tf.errors import InputError
from albert_tf.interchange.conversion import convert_checkpoint
from albert_tf.interchange.hub import check_hub_name, push_folder
from albert_tf.interchange.publishing import WEIGHT_DTYPES, publish_model

flags.disclaim_key_flags()


def define_flags():
    """Defines the flags of this command."""
    flags.DEFINE_string("init_checkpoint", None, "Folder of a run, whose best checkpoint is taken, or a checkpoint.")
    flags.DEFINE_string("output_dir", None, "Folder to write; --init_checkpoint accepts it.")
    flags.DEFINE_enum(
        "format",
        "albert_tf",
        ["albert_tf", "huggingface"],
        "The library that will load it: this one, or transformers, as with convert_checkpoint.py --to=huggingface.",
    )
    flags.DEFINE_enum(
        "weights_dtype", "float16", WEIGHT_DTYPES, "float16 halves the size; --format=huggingface has float32."
    )
    flags.DEFINE_string(
        "push_to_hub", None, "Also upload it to the Hugging Face hub, as owner/model, after hf auth login."
    )
    flags.DEFINE_bool("public", False, "Make the model of --push_to_hub public; by default it is private.")


def main():
    given = resolved_flags()
    app.require(init_checkpoint=given.init_checkpoint, output_dir=given.output_dir)
    if given.push_to_hub is not None:
        check_hub_name(given.push_to_hub)
    if given.format == "huggingface":
        if "weights_dtype" in given.given and given.weights_dtype != "float32":
            raise InputError(f"--format=huggingface works only with --weights_dtype=float32, not {given.weights_dtype}")
        sentences = convert_checkpoint("albert_tf", "huggingface", given.init_checkpoint, given.output_dir)
        print(*sentences, sep="\n")
    else:
        num_bytes = publish_model(given.init_checkpoint, given.output_dir, given.weights_dtype)
        print(f"wrote {given.output_dir}: {num_bytes / 1e6:.1f} MB")
    if given.push_to_hub is not None:
        address = push_folder(given.output_dir, given.push_to_hub, not given.public)
        print(f"uploaded it to the hub: {address}{'' if given.public else ', visible only to its owner'}")


def run():
    """Runs the command."""
    app.run(main, define_flags)
