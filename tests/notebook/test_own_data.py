"""Whose data a notebook reads."""

import os
import sys
import types

import pytest

from albert_tf.errors import InputError
from albert_tf.notebook.files import find_data


def colab(monkeypatch, **parts):
    """Makes a package google.colab with these parts."""
    monkeypatch.setitem(sys.modules, "google.colab", types.ModuleType("google.colab"))
    for name, part in parts.items():
        monkeypatch.setitem(sys.modules, f"google.colab.{name}", types.SimpleNamespace(**part))


def test_samples_are_those_of_the_notebook():
    assert find_data("samples", "samples/reviews") == "samples/reviews"


def test_a_folder_of_ones_own_is_taken(tmp_path):
    assert find_data(str(tmp_path), "samples/reviews") == str(tmp_path)


def test_a_folder_that_is_missing_is_named():
    with pytest.raises(InputError, match="no_such_folder"):
        find_data("no_such_folder", "samples/reviews")


def test_uploaded_files_lie_in_a_folder(monkeypatch, tmp_path):
    colab(monkeypatch, files={"upload": lambda: {"../train.tsv": "가\t1".encode()}})
    folder = find_data("upload", "samples/reviews", str(tmp_path / "uploads"))
    assert os.listdir(folder) == ["train.tsv"] and os.listdir(tmp_path) == ["uploads"]


def test_nothing_uploaded_is_said(monkeypatch, tmp_path):
    colab(monkeypatch, files={"upload": dict})
    with pytest.raises(InputError, match="no file was chosen"):
        find_data("upload", "samples/reviews", str(tmp_path / "uploads"))


def test_drive_is_mounted(monkeypatch):
    mounted = []
    colab(monkeypatch, drive={"mount": mounted.append})
    with pytest.raises(InputError, match="no such file"):
        find_data("/content/drive/MyDrive/reviews", "samples/reviews")
    assert mounted == ["/content/drive"]


@pytest.mark.parametrize("data", ["upload", "/content/drive/MyDrive/reviews"])
def test_what_only_colab_has_is_said_elsewhere(data, tmp_path):
    with pytest.raises(InputError, match="Colab's"):
        find_data(data, "samples/reviews", str(tmp_path / "uploads"))
