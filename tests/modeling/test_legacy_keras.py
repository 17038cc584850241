"""Under Keras 2 (TF_USE_LEGACY_KERAS=1), proven on TPUs, the models are the same as under Keras 3."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.modeling import AlbertEncoder, AlbertForPreTraining
from albert_tf.modeling.layers import named_variables

pytest.importorskip("tf_keras")
pytestmark = pytest.mark.slow

TESTS = pathlib.Path(__file__).resolve().parent.parent
COMPUTED = "ALBERT_TF_COMPUTED_UNDER_KERAS_3"  # names a file of inputs, weights and outputs


@pytest.fixture
def model(tiny_config):
    config = tiny_config.replace(hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2, num_hidden_groups=2)
    return AlbertForPreTraining(config)


def outputs_of(model, inputs):
    """Returns all outputs by name, evaluating and training."""
    found = {}
    for mode in ("evaluating", "training"):
        outputs = model(inputs, training=mode == "training", dropout_seed=tf.constant([1, 2]))
        found.update({f"{mode}/{name}": values.numpy() for name, values in outputs.items()})
    return found


@pytest.mark.skipif(tf.keras.__name__.startswith("tf_keras"), reason="runs under Keras 2 already")
def test_every_test_that_is_marked_passes_under_keras_2(model, randomized, batch, tmp_path):
    randomized(model)
    weights = {name: variable.numpy() for name, variable in named_variables(model).items()}
    np.savez(tmp_path / "computed.npz", **weights, **outputs_of(model, batch))
    files = [str(path) for path in sorted(TESTS.rglob("test_*.py")) if "mark.keras_2" in path.read_text("utf-8")]
    assert len(files) > 5
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "keras_2", *files]
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": "1", COMPUTED: str(tmp_path / "computed.npz")}
    finished = subprocess.run(command, env=environment, cwd=TESTS.parent, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stdout[-5000:] + finished.stderr[-1000:]


@pytest.mark.keras_2
@pytest.mark.skipif(COMPUTED not in os.environ, reason="is started under Keras 2 by the test above")
def test_keras_2_computes_the_same_from_the_same_weights(model, batch):
    assert tf.keras.__name__.startswith("tf_keras")
    expected = np.load(os.environ[COMPUTED])
    for name, variable in named_variables(model).items():
        variable.assign(expected[name])
    for name, values in outputs_of(model, batch).items():
        np.testing.assert_allclose(values, expected[name], rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.keras_2
@pytest.mark.skipif(COMPUTED not in os.environ, reason="as far as Keras 2 goes; see test_keras.py for Keras 3")
def test_keras_2_saves_models(tiny_config, randomized, batch, tmp_path):
    encoder = randomized(AlbertEncoder(tiny_config, remat="block"))
    expected = encoder(batch)["pooled_output"]
    encoder.save(tmp_path / "encoder.keras")
    loaded = tf.keras.models.load_model(tmp_path / "encoder.keras")
    np.testing.assert_allclose(loaded(batch)["pooled_output"], expected, rtol=1e-5, atol=1e-5)
    tf.saved_model.save(encoder, str(tmp_path / "saved"))
