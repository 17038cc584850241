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
# Each conversion has a process of its own, forked from one that has imported TensorFlow and not used it.
CODE = """
import itertools, os, re, sys
from albert_tf.interchange.conversion import convert_checkpoint

def kilobytes(name):
    with open("/proc/self/status") as file:
        return int(re.search(name + r":\\s+(\\d+) kB", file.read())[1])

folder, *formats = sys.argv[1:]
for number, (source, target) in enumerate(itertools.pairwise(formats)):
    child = os.fork()
    if not child:
        before = kilobytes("VmRSS")
        convert_checkpoint(source, target, os.path.join(folder, str(number)), os.path.join(folder, str(number + 1)))
        print(source, target, kilobytes("VmHWM") - before, flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, (source, target)
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="only Linux tells what a process took at most")
def test_conversion_never_holds_the_model(tmp_path):
    # 200 MB in variables of 17 MB at most: a quarter of xxlarge in every direction, but no layer shares another's.
    config = AlbertConfig(
        vocab_size=1000,
        hidden_size=1024,
        num_hidden_layers=4,
        num_hidden_groups=4,
        num_attention_heads=16,
        intermediate_size=4096,
    )
    shapes = variable_shapes(config)
    model = PortableModel(
        config, {name: Weight(shape, lambda shape=shape: np.ones(shape, np.float32)) for name, shape in shapes.items()}
    )
    (tmp_path / "0").mkdir()
    google_tf1.write(model, str(tmp_path / "0"))
    size = 4 * model.num_parameters
    formats = ("google", "albert_tf", "huggingface", "albert_tf", "keras_hub", "albert_tf", "google")
    command = [sys.executable, "-c", CODE, str(tmp_path), *formats]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    taken = [line.split() for line in result.stdout.splitlines()]
    assert [(source, target) for source, target, _ in taken] == list(itertools.pairwise(formats))
    for source, target, kilobytes in taken:
        share = 1024 * int(kilobytes) / size
        assert share < 0.8, f"{source} to {target} took {share:.2f} times the weights"
