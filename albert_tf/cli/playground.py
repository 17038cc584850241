"""Opens a page to try a model on texts of your own.

albert-tf playground --model_dir=models/albert_ko_small
"""

from albert_tf.cli import app  # first: it keeps TensorFlow quiet at its start

# isort: split
import os

from absl import flags

import albert_tf
from albert_tf.errors import InputError, with_extra

FLAGS = flags.FLAGS

flags.disclaim_key_flags()


def define_flags():
    """Defines the flags of this command."""
    flags.DEFINE_string("model_dir", None, "Folder of a fine-tuned or pre-trained model, or of an export.")
    flags.DEFINE_string("host", "127.0.0.1", "Address to listen on; 0.0.0.0 for all that can reach this machine.")
    flags.DEFINE_integer("port", 7860, "Port to listen on.", lower_bound=1, upper_bound=65535)


def main():
    app.require(model_dir=FLAGS.model_dir)
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    try:
        from albert_tf.serving.playground import build_page
    except ImportError as error:
        raise InputError(
            f"albert-tf playground needs gradio ({error}); pip install {with_extra('playground')}"
        ) from error
    page = build_page(albert_tf.load(FLAGS.model_dir), os.path.basename(os.path.abspath(FLAGS.model_dir)))
    page.launch(server_name=FLAGS.host, server_port=FLAGS.port, quiet=True, prevent_thread_lock=True)
    print(f"open http://{FLAGS.host}:{FLAGS.port} in a browser; stop with Ctrl-C", flush=True)
    page.block_thread()


def run():
    """Runs the command."""
    app.run(main, define_flags)
