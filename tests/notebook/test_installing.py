"""The first cell: what it would install where, without installing anything."""

import subprocess

import pytest

from albert_tf.notebook import installing


@pytest.fixture(autouse=True)
def no_installation(monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("something is installed"))


def test_nothing_is_installed_in_a_test(monkeypatch, capsys):
    monkeypatch.setenv(installing.TEST_VARIABLE, "1")
    monkeypatch.setattr(installing, "_NEEDED", ("a_module_that_is_missing",))
    installing.install()
    assert "nothing is installed" in capsys.readouterr().out and installing.is_test()


def test_nothing_is_installed_where_all_is_there(monkeypatch, capsys):
    monkeypatch.delenv(installing.TEST_VARIABLE, raising=False)
    monkeypatch.setattr(installing, "_NEEDED", ("numpy",))
    installing.install()
    assert "nothing to install" in capsys.readouterr().out and not installing.is_test()


def test_what_is_missing_is_installed_with_the_library(monkeypatch):
    calls = []
    monkeypatch.delenv(installing.TEST_VARIABLE, raising=False)
    monkeypatch.setattr(installing, "_NEEDED", ("a_module_that_is_missing",))
    monkeypatch.setattr(subprocess, "run", lambda command, **_: calls.append(command))
    installing.install("here")
    assert calls and calls[0][1:5] == ["-m", "pip", "install", "-q"]


@pytest.mark.parametrize("version", ["2.19.1", "2.20.0", "2.21.0"])
def test_tensorflow_that_is_there_stays(version):
    (packages,) = installing.pip_arguments(".", has_tpu=False, has_gpu=True, tensorflow=version)
    series = version.rpartition(".")[0]
    assert packages == [".[notebooks]", f"tensorflow=={version}", f"tensorflow-text=={series}.*"]


@pytest.mark.parametrize("version", [None, "2.15.0"])
def test_tensorflow_for_gpus_comes_where_none_is_that_goes(version):
    assert installing.pip_arguments(".", has_tpu=False, has_gpu=True, tensorflow=version) == [
        [".[notebooks]", "tensorflow[and-cuda]>=2.19,<2.22"]
    ]
    assert installing.pip_arguments(".", has_tpu=False, has_gpu=False, tensorflow=version) == [[".[notebooks]"]]


def test_a_tpu_gets_no_plain_tensorflow():
    calls = installing.pip_arguments(".", has_tpu=True, has_gpu=False, tensorflow=None)
    plain = [name for call in calls for name in call if name.startswith(("tensorflow==", "tensorflow>", ".["))]
    assert not plain
    (text,) = [call for call in calls if any(name.startswith("tensorflow-text") for name in call)]
    assert "--no-deps" in text  # it asks for plain tensorflow
