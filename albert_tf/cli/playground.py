"""The command that opens a page in the browser to try a model on texts of one's own: Gradio's interface."""

from albert_tf.cli.app import command  # first: it keeps TensorFlow quiet at its start

# isort: split
import dataclasses
import os
import typing

import albert_tf
from albert_tf.asking.model import Model
from albert_tf.base.errors import InputError, with_extra
from albert_tf.base.settings import Settings, setting
from albert_tf.base.texts import OPTIONS

# What a model may be asked on the page: the first of these that it can.
_ASKED = ("predict", "fill_mask", "generate", "find_replaced")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlaygroundSettings(Settings):
    """Which model the page shows, and where it is."""

    model_dir: str | None = setting(None, "Folder of a fine-tuned or pre-trained model, or of an export.")
    host: str = setting("127.0.0.1", "Address to listen on; 0.0.0.0 for all that can reach this machine.")
    port: int = setting(7860, "Port to listen on.", least=1, most=65535)


@command(PlaygroundSettings)
def playground(settings):
    """Opens a page to try a model on texts of your own.

    albert-tf playground --model_dir=models/albert_ko_small
    """
    settings.require("model_dir")
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    _import_gradio()  # before the model is loaded
    page = build_page(albert_tf.load(settings.model_dir), os.path.basename(os.path.abspath(settings.model_dir)))
    page.launch(server_name=settings.host, server_port=settings.port, quiet=True, prevent_thread_lock=True)
    print(f"open http://{settings.host}:{settings.port} in a browser; stop with Ctrl-C", flush=True)
    page.block_thread()


def _import_gradio():
    try:
        import gradio
    except ImportError as error:
        raise InputError(
            f"albert-tf playground needs gradio ({error}); pip install {with_extra('playground')}"
        ) from error
    return gradio


def build_page(model: Model, name: str) -> typing.Any:
    """Returns Gradio's page of a model, which it calls by a name; InputError if the model gives vectors alone."""
    gr = _import_gradio()
    ability = next((each for each in _ASKED if each in model.abilities), None)
    if ability is None:
        raise model.cannot("predict")
    fields = model.task.input_fields if ability == "predict" else ("text",)

    def ask(*values):
        """Returns the probabilities that an answer has, of a mask those of the first one, and the whole answer."""
        values = [value.splitlines() if field == OPTIONS else value for field, value in zip(fields, values)]
        try:
            (answer,) = getattr(model, ability)([tuple(values)] if ability == "predict" else values)
        except InputError as error:
            raise gr.Error(str(error), print_exception=False) from error
        if ability == "fill_mask":
            return {guess["piece"]: guess["probability"] for guess in answer[0]}, answer
        return answer.get("probabilities") if isinstance(answer, dict) else None, answer

    return gr.Interface(
        ask,
        [gr.Textbox(label=f"{each}, one per line" if each == OPTIONS else each, lines=3) for each in fields],
        [gr.Label(label="확률 · Probabilities"), gr.JSON(label="답 · Answer")],
        title=name,
        flagging_mode="never",
        analytics_enabled=False,
        api_name="ask",
    )
