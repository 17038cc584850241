"""Serves an exported model over HTTP, as TensorFlow Serving does: raw Korean strings in, answers out.

albert-tf serve --model_dir=served/nsmc --port=8501

Needs no TensorFlow where the export is LiteRT's.
"""

import dataclasses
import os
import re

from absl import flags

from albert_tf.cli import command
from albert_tf.errors import InputError, with_extra
from albert_tf.litert import LiteRTExport, find_litert
from albert_tf.server.options import ServerOptions
from albert_tf.startup import fast_import, import_tensorflow

FLAGS = flags.FLAGS

flags.disclaim_key_flags()


def define_flags():
    """Defines the flags of this command."""
    flags.DEFINE_string(
        "model_dir", None, "The --output_dir of export_model.py, or one of its versions: SavedModels, or LiteRT's."
    )
    flags.DEFINE_string("model_name", None, "Name of the model in requests; by default that of its folder.")
    default = ServerOptions()
    flags.DEFINE_string("host", default.host, "Address to listen on; 0.0.0.0 for all that can reach this machine.")
    flags.DEFINE_integer("port", default.port, "Port to listen on.", lower_bound=1, upper_bound=65535)
    flags.DEFINE_integer("max_batch_size", default.max_batch_size, "Maximum number of texts in a batch.", 1)
    flags.DEFINE_integer("max_texts", default.max_texts, "Maximum number of texts in a request.", 1)
    flags.DEFINE_integer("max_characters", default.max_characters, "Longest text, in characters.", 1)
    flags.DEFINE_integer("max_waiting", default.max_waiting, "Maximum number of waiting texts; others get 503.", 1)
    flags.DEFINE_integer("max_request_bytes", default.max_request_bytes, "Largest request, in bytes.", 1)
    flags.DEFINE_integer(
        "max_held_bytes",
        default.max_held_bytes,
        "Maximum bytes of all requests and answers in memory; others are answered 503.",
        1,
    )
    flags.DEFINE_integer(
        "max_connections", default.max_connections, "Maximum number of connections; others are answered 503.", 1
    )
    flags.DEFINE_float(
        "request_timeout", default.request_timeout, "Seconds for which the server waits for a client.", 0.1
    )
    flags.DEFINE_integer(
        "grace_period", default.grace_period, "Seconds that answers may take once the server is stopped.", 0
    )


def main():
    command.require_folder(model_dir=FLAGS.model_dir)
    options = _options()
    load = _import_export()
    try:
        from albert_tf.server.server import serve
    except ImportError as error:
        raise InputError(
            "albert-tf serve needs uvicorn, starlette and prometheus_client "
            f"({error}); pip install {with_extra('serve')}"
        ) from error
    model = load()
    name = FLAGS.model_name or _name_of(model.folder)
    if not re.fullmatch(r"[\w.-]+", name):
        raise InputError(f"--model_name={name}: a name consists of letters, digits, dots, dashes and underscores")
    serve(model, name, options)


def _options():
    options = ServerOptions(**{field.name: FLAGS[field.name].value for field in dataclasses.fields(ServerOptions)})
    if options.max_held_bytes < options.max_request_bytes:
        raise InputError(
            f"--max_held_bytes={options.max_held_bytes} is less than --max_request_bytes={options.max_request_bytes}: "
            "no request of that size would ever be answered; raise it"
        )
    return options


def _import_export():
    """Imports what the export needs, TensorFlow or LiteRT; returns a function that loads it."""
    folder = find_litert(FLAGS.model_dir)
    if folder is not None:
        return lambda: LiteRTExport(folder)
    # Not by `app`, whose products are the faster ones for batches, and not for single texts.
    with fast_import():
        import_tensorflow()
    from albert_tf.serving.exported import load_alone

    return lambda: load_alone(FLAGS.model_dir)


def _name_of(folder):
    """Returns the name of the folder of all versions, or of a folder that is called otherwise."""
    path = os.path.abspath(folder)
    return os.path.basename(os.path.dirname(path) if os.path.basename(path).isdecimal() else path)


def run():
    """Runs the command."""
    command.run(main, define_flags)
