"""How much memory a conversion takes, and how long, for a model of full size with random weights.

python -m benchmarks.checkpoint_conversion --config=configs/albert_xxlarge_v2.json

Each conversion runs in a process of its own, whose largest resident size is told with what a process takes that only
imports the command.
"""

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
import time

_SCRIPT = "convert_checkpoint.py"
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


def peak_of(command: list[str]) -> tuple[int, float]:
    """Runs a command; returns its largest resident size in bytes, and seconds."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"failed: {' '.join(command)}")
    return 1024 * usage.ru_maxrss, time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default="configs/albert_xxlarge_v2.json")
    parser.add_argument("--write", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.write:
        print(write_google(arguments.config, arguments.write))
        return
    base, _ = peak_of([sys.executable, _SCRIPT, "--help"])
    print(f"without any model: {base / 1e6:,.0f} MB")
    with tempfile.TemporaryDirectory() as place:
        folder = os.path.join(place, "0")
        # A process of its own, because the sizes of processes begin with that of the one that starts them.
        write = [sys.executable, "-m", __spec__.name, "--config", arguments.config, "--write", folder]
        size = int(subprocess.run(write, check=True, capture_output=True, text=True).stdout.split()[-1])
        print(f"{arguments.config}: {size / 1e6:,.0f} MB of weights")
        for number, (source, target) in enumerate(itertools.pairwise(_CHAIN), start=1):
            written = os.path.join(place, str(number))
            flags = {"from": source, "to": target, "input_path": folder, "output_dir": written}
            peak, seconds = peak_of([sys.executable, _SCRIPT, *(f"--{name}={value}" for name, value in flags.items())])
            print(
                f"{source} to {target}: at most {peak / 1e6:,.0f} MB in all, {peak / size:.2f} times the weights; "
                f"{(peak - base) / 1e6:,.0f} MB for the model; {seconds:.1f} s",
                flush=True,
            )
            folder = written


if __name__ == "__main__":
    main()
