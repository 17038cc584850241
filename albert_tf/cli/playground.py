"""Opens a page to try a model on texts of your own.

albert-tf playground --model_dir=models/albert_ko_small
"""

from albert_tf.cli import app  # first: it keeps TensorFlow quiet at its start

# isort: split
import dataclasses
import os

import albert_tf
from albert_tf.base.errors import InputError, with_extra
from albert_tf.base.settings import Settings, setting


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlaygroundSettings(Settings):
    """Which model the page shows, and where it is."""

    model_dir: str | None = setting(None, "Folder of a fine-tuned or pre-trained model, or of an export.")
    host: str = setting("127.0.0.1", "Address to listen on; 0.0.0.0 for all that can reach this machine.")
    port: int = setting(7860, "Port to listen on.", least=1, most=65535)


SETTINGS = PlaygroundSettings


def main(settings):
    settings.require("model_dir")
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    try:
        from albert_tf.serving.playground import build_page
    except ImportError as error:
        raise InputError(
            f"albert-tf playground needs gradio ({error}); pip install {with_extra('playground')}"
        ) from error
    page = build_page(albert_tf.load(settings.model_dir), os.path.basename(os.path.abspath(settings.model_dir)))
    page.launch(server_name=settings.host, server_port=settings.port, quiet=True, prevent_thread_lock=True)
    print(f"open http://{settings.host}:{settings.port} in a browser; stop with Ctrl-C", flush=True)
    page.block_thread()


def run():
    app.run(main, SETTINGS)
