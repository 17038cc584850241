"""The command `serve.py`: with TensorFlow, or without it where the export is LiteRT's."""

import os
import re
import sys

from absl import flags

from albert_tf.cli import command
from albert_tf.errors import InputError, with_extra
from albert_tf.litert import LiteRTExport, find_litert

FLAGS = flags.FLAGS

flags.disclaim_key_flags()


def define_flags():
    """Defines the flags of this command."""
    flags.DEFINE_string(
        "model_dir", None, "The --output_dir of export_model.py, or one of its versions: SavedModels, or LiteRT's."
    )
    flags.DEFINE_string("model_name", None, "What requests call the model; by default as its folder is called.")
    flags.DEFINE_string("host", "127.0.0.1", "Where to listen; 0.0.0.0 for all that can reach this machine.")
    flags.DEFINE_integer("port", 8501, "Likewise.", lower_bound=1, upper_bound=65535)
    flags.DEFINE_integer("max_batch_size", 32, "Most texts that are computed at once.", lower_bound=1)
    flags.DEFINE_integer("max_texts", 1024, "Most texts of a request.", lower_bound=1)
    flags.DEFINE_integer("max_waiting", 4096, "Most texts that wait; who comes then is answered 503.", lower_bound=1)
    flags.DEFINE_integer("max_characters", 100_000, "Longest text.", lower_bound=1)
    flags.DEFINE_integer("max_request_bytes", 8 << 20, "Largest request.", lower_bound=1)
    flags.DEFINE_float("request_timeout", 30, "Seconds that a request may take to arrive.", lower_bound=0.1)
    flags.DEFINE_integer("grace_period", 30, "Seconds that answers may take once the server is stopped.", lower_bound=0)


def main():
    command.require_folder(model_dir=FLAGS.model_dir)
    load = _import_export()
    serve, server_options = _import_server()
    model = load()
    name = FLAGS.model_name or _name_of(model.folder)
    if not re.fullmatch(r"[\w.-]+", name):
        raise InputError(f"--model_name={name}: a name is of letters, digits, dots, dashes and underscores")
    options = server_options(
        host=FLAGS.host,
        port=FLAGS.port,
        max_batch_size=FLAGS.max_batch_size,
        max_texts=FLAGS.max_texts,
        max_waiting=FLAGS.max_waiting,
        max_characters=FLAGS.max_characters,
        max_bytes=FLAGS.max_request_bytes,
        request_timeout_seconds=FLAGS.request_timeout,
        grace_seconds=FLAGS.grace_period,
    )
    serve(model, name, options)


def _import_export():
    """Imports what the export needs, TensorFlow or LiteRT; returns a function that loads it."""
    folder = find_litert(FLAGS.model_dir)
    if folder is not None:
        return lambda: LiteRTExport(folder)
    from albert_tf.cli import app  # noqa: F401  (first: it keeps TensorFlow quiet at its start)
    from albert_tf.serving.exported import load_alone

    return lambda: load_alone(FLAGS.model_dir)


def _import_server():
    """Returns what needs KServe, which must not read our command line when it is imported."""
    arguments, sys.argv = sys.argv, sys.argv[:1]
    try:
        from albert_tf.server.server import ServerOptions, serve
    except ImportError as error:
        raise InputError(f"serve.py needs KServe ({error}); pip install {with_extra('serve')}") from error
    finally:
        sys.argv = arguments
    return serve, ServerOptions


def _name_of(folder):
    """Returns the name of the folder of all versions, or of a folder that is called otherwise."""
    path = os.path.abspath(folder)
    return os.path.basename(os.path.dirname(path) if os.path.basename(path).isdecimal() else path)


def run():
    """Runs the command."""
    command.run(main, define_flags)
