"""How much memory a conversion takes, and how long, for a model of full size with random weights.

python -m benchmarks.checkpoint_conversion --config=configs/albert_xxlarge_v2.json

Each conversion runs in a process of its own, whose largest resident size is told with what a process takes that only
imports the command.
"""

import argparse
import itertools
import os
import re
import subprocess
import sys
import tempfile
import time

_CHAIN = ("google", "albert_tf", "huggingface", "albert_tf", "keras_hub", "albert_tf", "google")


def write_google(config_file: str, folder: str) -> int:
    """Writes a checkpoint of Google's with random weights; returns the bytes of its weights."""
    import numpy as np

    from albert_tf.config import AlbertConfig
    from albert_tf.interchange import google_tf1
    from albert_tf.interchange.portable_model import PortableModel, Weight
    from albert_tf.interchange.variables import variable_shapes

    config = AlbertConfig.from_json_file(config_file)
    random = np.random.default_rng(0)

    def weight(shape):
        return Weight(shape, lambda: random.normal(0.0, 0.02, shape).astype(np.float32))

    model = PortableModel(config, {name: weight(shape) for name, shape in variable_shapes(config).items()})
    os.makedirs(folder)
    google_tf1.write(model, folder)
    return 4 * model.num_parameters


def convert(source: str, target: str, input_path: str, output_dir: str) -> None:
    """Converts, and prints the largest resident size of this process in bytes, and seconds."""
    from albert_tf.interchange.conversion import convert_checkpoint

    begin = time.perf_counter()
    if target:
        convert_checkpoint(source, target, input_path, output_dir)
    seconds = time.perf_counter() - begin
    with open("/proc/self/status", encoding="ascii") as file:  # getrusage would count what the parent process took
        peak = 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", file.read())[1])
    print(peak, seconds)


def in_a_process(*arguments: str) -> tuple[int, float]:
    """Returns what `convert` prints."""
    command = [sys.executable, "-m", "benchmarks.checkpoint_conversion", "--convert", *arguments]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    size, seconds = output.splitlines()[-1].split()
    return int(size), float(seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default="configs/albert_xxlarge_v2.json")
    parser.add_argument("--convert", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.convert:
        convert(*arguments.convert)
        return
    base, _ = in_a_process("", "", "", "")
    print(f"without any model: {base / 1e6:,.0f} MB")
    with tempfile.TemporaryDirectory() as place:
        folder = os.path.join(place, "0")
        size = write_google(arguments.config, folder)
        print(f"{arguments.config}: {size / 1e6:,.0f} MB of weights")
        for number, (source, target) in enumerate(itertools.pairwise(_CHAIN), start=1):
            written = os.path.join(place, str(number))
            peak, seconds = in_a_process(source, target, folder, written)
            print(
                f"{source} to {target}: at most {peak / 1e6:,.0f} MB in all, {peak / size:.2f} times the weights; "
                f"{(peak - base) / 1e6:,.0f} MB for the model; {seconds:.1f} s",
                flush=True,
            )
            folder = written


if __name__ == "__main__":
    main()
