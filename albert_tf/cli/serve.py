"""The command that serves an exported model."""

import dataclasses
import os
import re

from albert_tf.base.errors import InputError, with_extra
from albert_tf.base.settings import Settings, setting
from albert_tf.base.startup import fast_import, import_tensorflow
from albert_tf.cli.command import command, require_folder
from albert_tf.server.batching import ServerOptions
from albert_tf.serving.formats import find_export, need_export

_DEFAULT = ServerOptions()


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServeSettings(Settings):
    """The model to serve, and how; `ServerOptions` has fields of the same names."""

    model_dir: str | None = setting(
        None, "The --output_dir of export_model.py, or one of its versions: SavedModels, or LiteRT's."
    )
    model_name: str | None = setting(None, "Name of the model in requests; by default that of its folder.")
    host: str = setting(_DEFAULT.host, "Address to listen on; 0.0.0.0 for all that can reach this machine.")
    port: int = setting(_DEFAULT.port, "Port to listen on.", least=1, most=65535)
    max_batch_size: int = setting(_DEFAULT.max_batch_size, "Maximum number of texts in a batch.", least=1)
    max_texts: int = setting(_DEFAULT.max_texts, "Maximum number of texts in a request.", least=1)
    max_characters: int = setting(_DEFAULT.max_characters, "Longest text, in characters.", least=1)
    max_waiting: int = setting(_DEFAULT.max_waiting, "Maximum number of waiting texts; others get 503.", least=1)
    max_request_bytes: int = setting(_DEFAULT.max_request_bytes, "Largest request, in bytes.", least=1)
    max_held_bytes: int = setting(
        _DEFAULT.max_held_bytes,
        "Maximum bytes of all requests and answers in memory; others are answered 503.",
        least=1,
    )
    max_connections: int = setting(
        _DEFAULT.max_connections, "Maximum number of connections; others are answered 503.", least=1
    )
    request_timeout: float = setting(
        _DEFAULT.request_timeout, "Seconds for which the server waits for a client.", least=0.1
    )
    grace_period: int = setting(
        _DEFAULT.grace_period, "Seconds that answers may take once the server is stopped.", least=0
    )


@command(ServeSettings)
def serve(settings):
    """Serves an exported model over HTTP, as TensorFlow Serving does: raw Korean strings in, answers out.

    albert-tf serve --model_dir=served/nsmc --port=8501

    Needs no TensorFlow where the export is LiteRT's.
    """
    require_folder(settings, "model_dir")
    if settings.max_held_bytes < settings.max_request_bytes:
        raise InputError(
            f"`max_held_bytes={settings.max_held_bytes}` is less than "
            f"`max_request_bytes={settings.max_request_bytes}`: no request of that size would ever be answered; "
            "raise it"
        )
    options = {field.name: getattr(settings, field.name) for field in dataclasses.fields(ServerOptions)}
    found = None if "://" in settings.model_dir else find_export(settings.model_dir)
    if found is None or found.format.needs_tensorflow:
        # Not by `app`, whose products are the faster ones for batches, and not for single texts.
        with fast_import():
            import_tensorflow()
    try:
        from albert_tf.server.server import serve
    except ImportError as error:
        raise InputError(
            "albert-tf serve needs uvicorn, starlette and prometheus_client "
            f"({error}); pip install {with_extra('serve')}"
        ) from error
    found = found or need_export(settings.model_dir)
    model = found.format.load_alone(found.folder)
    name = settings.model_name or _name_of(model.folder)
    if not re.fullmatch(r"[\w.-]+", name):
        raise InputError(f"`model_name={name}`: a name consists of letters, digits, dots, dashes and underscores")
    serve(model, name, ServerOptions(**options))


def _name_of(folder):
    """Returns the name of a folder, or of the one above where it is a numbered version."""
    path = os.path.abspath(folder)
    return os.path.basename(os.path.dirname(path) if os.path.basename(path).isdecimal() else path)
