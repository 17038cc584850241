"""Under Keras 2 (TF_USE_LEGACY_KERAS=1), proven on TPUs, the models are the same as under Keras 3."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.modeling import AlbertForPreTraining
from albert_tf.modeling.layers import named_variables

pytest.importorskip("tf_keras")

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
UNDER_KERAS_2 = {**os.environ, "TF_USE_LEGACY_KERAS": "1", "PYTHONPATH": str(ROOT)}
is_keras_2 = tf.keras.__name__.startswith("tf_keras")

# What depends on Keras: layers, models and their variables. Kernels are plain TensorFlow, and the encoder's tests
# compare with NumPy, so that Hugging Face is not needed once more. Checkpoints are read by a run of the script.
DEPEND_ON_KERAS = ("test_encoder", "test_inputs", "test_key_value_cache", "test_models", "test_variables")

# Loads weights and inputs from a file, computes, and writes all outputs to another.
COMPUTE = """
import json, sys
import numpy as np
import tensorflow as tf
from albert_tf.config import AlbertConfig
from albert_tf.modeling import AlbertEncoder, AlbertForPreTraining
from albert_tf.modeling.layers import named_variables

config, source, target = sys.argv[1:]
assert tf.keras.__name__.startswith("tf_keras"), tf.keras.__name__
values = np.load(source)
model = AlbertForPreTraining(AlbertConfig.from_dict(json.loads(config)))
for name, variable in named_variables(model).items():
    variable.assign(values[name])
batch = {name: tf.constant(values[name]) for name in values["batch"]}
outputs = {}
for mode in ("evaluating", "training"):
    results = model(batch, training=mode == "training", dropout_seed=tf.constant([1, 2]))
    outputs.update({f"{mode}/{name}": value.numpy() for name, value in results.items()})
np.savez(target, **outputs)

# As far as Keras 2 goes: files of models, and a SavedModel of each layer's functions.
encoder = AlbertEncoder(model.config.replace(num_hidden_layers=1, num_hidden_groups=1), remat="block")
expected = encoder(batch)["pooled_output"]
encoder.save(target + ".keras")
loaded = tf.keras.models.load_model(target + ".keras")
np.testing.assert_allclose(loaded(batch)["pooled_output"], expected, rtol=1e-5, atol=1e-5)
tf.saved_model.save(encoder, target + "-saved")
"""


@pytest.mark.slow
def test_keras_2_computes_the_same_from_the_same_weights(tiny_config, randomized, batch, tmp_path):
    config = tiny_config.replace(hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2, num_hidden_groups=2)
    model = randomized(AlbertForPreTraining(config))
    weights = {name: variable.numpy() for name, variable in named_variables(model).items()}
    inputs = {name: values.numpy() for name, values in batch.items()}
    np.savez(tmp_path / "source.npz", batch=list(batch), **weights, **inputs)
    arguments = [json.dumps(config.to_dict()), str(tmp_path / "source.npz"), str(tmp_path / "target.npz")]
    subprocess.run([sys.executable, "-c", COMPUTE, *arguments], env=UNDER_KERAS_2, check=True)
    found = np.load(tmp_path / "target.npz")
    for mode in ("evaluating", "training"):
        outputs = model(batch, training=mode == "training", dropout_seed=tf.constant([1, 2]))
        for name, values in outputs.items():
            np.testing.assert_allclose(found[f"{mode}/{name}"], values, rtol=1e-5, atol=1e-5, err_msg=f"{mode}/{name}")


@pytest.mark.slow
@pytest.mark.skipif(is_keras_2, reason="runs under Keras 2 already")
def test_tests_of_the_models_pass_under_keras_2():
    paths = [str(pathlib.Path(__file__).with_name(f"{name}.py")) for name in DEPEND_ON_KERAS]
    paths.append(str(ROOT / "tests" / "tokenization" / "test_keras_layer.py"))
    # How many parameters a config has does not depend on Keras, nor does what a layer encodes with.
    chosen = "not parameters and not english_tokenizer"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", chosen, *paths]
    finished = subprocess.run(command, env=UNDER_KERAS_2, cwd=ROOT, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stdout[-5000:] + finished.stderr[-1000:]
