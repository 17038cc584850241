"""The command `playground.py`."""

from albert_tf.cli import app  # first: it keeps TensorFlow quiet at its start

# isort: split
import os

from absl import flags

from albert_tf.errors import InputError, with_extra
from albert_tf.serving.playground.model import PlaygroundModel
from albert_tf.serving.playground.requests import PageRequestsOnly

FLAGS = flags.FLAGS

flags.disclaim_key_flags()


def define_flags():
    """Defines the flags of this command."""
    flags.DEFINE_string("model_dir", None, "Folder of a fine-tuned or pre-trained model, or of an export.")
    flags.DEFINE_string("host", "127.0.0.1", "Where to listen; 0.0.0.0 for all that can reach this machine.")
    flags.DEFINE_integer("port", 7860, "Likewise.", lower_bound=1, upper_bound=65535)


def main():
    app.require(model_dir=FLAGS.model_dir)
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    try:
        import gradio as gr
        from starlette.middleware import Middleware

        from albert_tf.serving.playground.page import I18N, build_page
    except ImportError as error:
        raise InputError(f"playground.py needs gradio ({error}); pip install {with_extra('playground')}") from error
    model = PlaygroundModel(FLAGS.model_dir)
    name = os.path.basename(os.path.abspath(FLAGS.model_dir))
    page = build_page(model, name)
    only_the_page = Middleware(PageRequestsOnly, is_local=FLAGS.host in ("127.0.0.1", "localhost", "::1"))
    page.launch(
        server_name=FLAGS.host,
        server_port=FLAGS.port,
        quiet=True,
        prevent_thread_lock=True,
        i18n=I18N,
        footer_links=[],
        app_kwargs={"middleware": [only_the_page]},
        # Fonts of the reader's own machine: others would be loaded from elsewhere, and lack Hangul.
        theme=gr.themes.Default(font=["system-ui", "sans-serif"], font_mono=["monospace"]),
    )
    print(f"open http://{FLAGS.host}:{FLAGS.port} in a browser; stop with Ctrl-C", flush=True)
    page.block_thread()


def run():
    """Runs the command."""
    app.run(main, define_flags)
