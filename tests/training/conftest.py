"""What all tests of training share."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def quick_training(quick_to_trace):
    """Lets the few steps of each test be traced quickly."""


@pytest.fixture
def without_noise(monkeypatch):
    """Takes the noise out of `LinearObjective`, which depends on the number of micro-batches: each draws its own."""
    monkeypatch.setattr("tensorflow.random.stateless_normal", lambda shape, seed: 0.0)
