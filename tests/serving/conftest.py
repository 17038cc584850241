"""Fixtures of several kinds of models that are asked."""

import pathlib

import numpy as np
import pytest
from tiny_config import tiny_config

from albert_tf.modeling import AlbertForPreTraining
from albert_tf.modeling.layers import named_variables
from albert_tf.serving.exporting import export_model

SHIPPED = pathlib.Path(__file__).resolve().parent.parent.parent / "models" / "albert_ko_small"


@pytest.fixture(scope="session")
def exported_shipped(tmp_path_factory) -> pathlib.Path:
    """The folder of a SavedModel of the model that is shipped, which takes ten seconds to trace."""
    folder = tmp_path_factory.mktemp("served") / "albert_ko_small"
    export_model(str(SHIPPED), str(folder))
    return folder


@pytest.fixture(scope="session")
def make_model():
    """Makes a model of so many pieces, whose pieces follow each other in no simple way."""

    def make(vocab_size, scale=0.3, **changes):
        config = tiny_config(vocab_size, is_causal=True, pooler=False, num_hidden_layers=2, **changes)
        model, draws = AlbertForPreTraining(config), np.random.default_rng(0)
        for name, variable in named_variables(model).items():
            variable.assign(draws.normal(1.0 if name.endswith("gamma") else 0.0, scale, variable.shape))
        return model

    return make
