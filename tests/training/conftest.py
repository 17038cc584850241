"""Fixtures for tests that trace training steps."""

import pytest
import tensorflow as tf


@pytest.fixture(scope="module", autouse=True)
def without_graph_optimizer():
    """Leaves out an optimisation that takes longer than the few steps that a test runs."""
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    yield
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": False})
