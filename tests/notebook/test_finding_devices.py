"""A notebook takes the best device that works."""

import pytest
import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.notebook import devices


@pytest.fixture
def strategies(monkeypatch):
    """What was asked for, in order; a TPU can't be reached."""
    asked = []

    def make_strategy(use_tpu=False, **_):
        asked.append(use_tpu)
        if use_tpu:
            raise InputError("the TPU did not answer")
        return tf.distribute.OneDeviceStrategy("/cpu:0")

    monkeypatch.setattr(devices, "make_strategy", make_strategy)
    return asked


def test_machine_without_tpu_computes_on_what_it_has(strategies, monkeypatch, capsys):
    monkeypatch.setattr(devices, "has_tpu", lambda: False)
    devices.find_strategy()
    assert strategies == [False] and "device: 1 CPU" in capsys.readouterr().out


def test_tpu_that_does_not_work_is_said_and_done_without(strategies, monkeypatch, capsys):
    monkeypatch.setattr(devices, "has_tpu", lambda: True)
    devices.find_strategy()
    printed = capsys.readouterr().out
    assert strategies == [True, False]
    assert "can't be used: the TPU did not answer" in printed and "device: 1 CPU" in printed
