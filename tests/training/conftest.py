"""Fixtures of all tests of training."""

import pytest

from albert_tf.training import attention_choice


@pytest.fixture(scope="module", autouse=True)
def quick_training(quick_to_trace):
    """Lets the few steps of each test be traced quickly."""


@pytest.fixture
def without_noise(monkeypatch):
    """Takes the noise out of `LinearObjective`, which depends on the number of micro-batches: each draws its own."""
    monkeypatch.setattr("tensorflow.random.stateless_normal", lambda shape, seed: 0.0)


@pytest.fixture
def trial(monkeypatch):
    """Replaces what would have to run on a device: gives out these faults in turn; returns a list of what was tried."""
    tried = []

    def give(*faults):
        faults = iter(faults)

        def find(strategy, expected, found, *arguments, **options):
            tried.append((*arguments, options) if options else arguments)
            return next(faults)

        monkeypatch.setattr(attention_choice, "find_fault", find)
        return tried

    return give
