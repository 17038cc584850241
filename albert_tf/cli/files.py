"""Prints where the included files lie, at once, so without TensorFlow and absl's flags."""

import argparse
import sys

from albert_tf.base.errors import InputError
from albert_tf.base.shipped_files import shipped_path


def run():
    parser = argparse.ArgumentParser(description="Prints the path of a file that albert_tf includes.")
    parser.add_argument(
        "name",
        nargs="?",
        default="",
        help="such as models/albert_ko_small or configs/recipes/ko_small.cfg; without it, the folder that holds all",
    )
    try:
        print(shipped_path(parser.parse_args().name))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
