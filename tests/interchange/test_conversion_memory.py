"""A conversion holds a variable or two, not the model."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

from albert_tf.config import AlbertConfig
from albert_tf.interchange import google_tf1
from albert_tf.interchange.portable_model import PortableModel, Weight
from albert_tf.interchange.variables import variable_shapes

# In the test's own words, as the benchmark does it: what a process takes at most beyond what it takes to begin with.
CODE = """
import re, sys
from albert_tf.interchange.conversion import convert_checkpoint

def kilobytes(name):
    with open("/proc/self/status") as file:
        return int(re.search(name + r":\\s+(\\d+) kB", file.read())[1])

before = kilobytes("VmRSS")
convert_checkpoint(*sys.argv[1:])
print(kilobytes("VmHWM") - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="only Linux tells what a process took at most")
def test_conversion_never_holds_the_model(tmp_path):
    # 600 MB in variables of 67 MB at most: half of xxlarge in every direction, but no layer shares another's.
    config = AlbertConfig(
        vocab_size=1000,
        hidden_size=2048,
        num_hidden_layers=3,
        num_hidden_groups=3,
        num_attention_heads=32,
        intermediate_size=8192,
    )
    shapes = variable_shapes(config)
    model = PortableModel(
        config, {name: Weight(shape, lambda shape=shape: np.ones(shape, np.float32)) for name, shape in shapes.items()}
    )
    (tmp_path / "0").mkdir()
    google_tf1.write(model, str(tmp_path / "0"))
    size = 4 * model.num_parameters
    formats = ("google", "albert_tf", "huggingface", "albert_tf", "keras_hub", "albert_tf", "google")
    for number, (source, target) in enumerate(itertools.pairwise(formats)):
        arguments = [source, target, str(tmp_path / str(number)), str(tmp_path / str(number + 1))]
        result = subprocess.run([sys.executable, "-c", CODE, *arguments], capture_output=True, text=True, check=True)
        taken = 1024 * int(result.stdout.splitlines()[-1])
        assert taken < 0.5 * size, f"{source} to {target} took {taken / size:.2f} times the weights"
