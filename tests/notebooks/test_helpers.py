"""The notebooks' helpers: what is installed where, whose data is read, and what is shown."""

import importlib.metadata
import os
import subprocess
import sys
import types

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("IPython", reason="needs ipython; pip install -r requirements-notebooks.txt")

import albert_tf
from albert_tf.base.errors import InputError
from notebooks import helpers
from notebooks.helpers import TrainingWatch, find_data, marked, pieces, table


def test_tensorflow_that_is_there_stays():
    (packages,) = helpers.pip_arguments(has_tpu=False, has_gpu=True, tensorflow="2.20.0")
    assert packages == [".[notebooks]", "tensorflow==2.20.0", "tensorflow-text==2.20.*"]


@pytest.mark.parametrize("version", ["", "2.15.0"])
def test_tensorflow_for_gpus_comes_where_none_is_that_goes(version):
    for_gpu = helpers.pip_arguments(has_tpu=False, has_gpu=True, tensorflow=version)
    assert for_gpu == [[".[notebooks]", "tensorflow[and-cuda]>=2.19,<2.22"]]
    assert helpers.pip_arguments(has_tpu=False, has_gpu=False, tensorflow=version) == [[".[notebooks]"]]


def test_a_tpu_gets_no_plain_tensorflow():
    calls = helpers.pip_arguments(has_tpu=True, has_gpu=False, tensorflow="")
    plain = [name for call in calls for name in call if name.startswith(("tensorflow==", "tensorflow>", ".["))]
    assert not plain
    (text,) = [call for call in calls if any(name.startswith("tensorflow-text") for name in call)]
    assert "--no-deps" in text  # it asks for plain tensorflow


@pytest.mark.parametrize("is_test", [True, False])
def test_what_is_missing_is_installed_but_in_tests(monkeypatch, is_test):
    calls = []
    monkeypatch.setenv("ALBERT_TF_NOTEBOOK_TEST", "1" * is_test)
    monkeypatch.delenv("COLAB_RELEASE_TAG", raising=False)
    monkeypatch.setattr(helpers, "_NEEDED", ("a_module_that_is_missing",))
    monkeypatch.setattr(subprocess, "run", lambda command, **_: calls.append(command))

    def no_such_package(name):  # TensorFlow for TPUs has another name, and the same modules
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", no_such_package)
    helpers.install()
    assert [command[1:5] for command in calls] == [["-m", "pip", "install", "-q"]] * (not is_test)


@pytest.mark.parametrize("has_tpu", [True, False])
def test_tpu_that_does_not_work_is_said_and_done_without(monkeypatch, capsys, has_tpu):
    def make_strategy(use_tpu=False, **_):
        if use_tpu:
            raise InputError("the TPU did not answer")
        return tf.distribute.OneDeviceStrategy("/cpu:0")

    monkeypatch.setattr("albert_tf.training.devices.make_strategy", make_strategy)
    monkeypatch.setattr("albert_tf.training.devices.has_tpu", lambda: has_tpu)
    helpers.find_strategy()
    printed = capsys.readouterr().out
    assert ("can't be used: the TPU did not answer" in printed) == has_tpu and "device: 1 CPU" in printed


def colab(monkeypatch, **parts):
    """Makes a package google.colab with these parts."""
    monkeypatch.setattr(helpers.importlib.util, "find_spec", lambda name: name)
    for name, part in parts.items():
        monkeypatch.setitem(sys.modules, f"google.colab.{name}", types.SimpleNamespace(**part))
    monkeypatch.setitem(sys.modules, "google.colab", types.ModuleType("google.colab"))


def test_data_is_the_sample_or_what_is_named(tmp_path):
    assert find_data("samples", "samples/reviews") == "samples/reviews"
    assert find_data(str(tmp_path), "samples/reviews") == str(tmp_path)
    with pytest.raises(AssertionError, match="no_such_folder"):
        find_data("no_such_folder", "samples/reviews")
    with pytest.raises(AssertionError, match="Colab's"):
        find_data("upload", "samples/reviews")


def test_uploaded_files_lie_in_a_folder(monkeypatch, tmp_path):
    colab(monkeypatch, files={"upload": lambda: {"../train.tsv": "가\t1".encode()}})
    folder = find_data("upload", "samples/reviews", str(tmp_path / "uploads"))
    assert os.listdir(folder) == ["train.tsv"] and os.listdir(tmp_path) == ["uploads"]
    colab(monkeypatch, files={"upload": dict})
    with pytest.raises(AssertionError, match="no file was chosen"):
        find_data("upload", "samples/reviews", str(tmp_path / "uploads"))


def test_drive_is_mounted(monkeypatch):
    mounted = []
    colab(monkeypatch, drive={"mount": mounted.append})
    with pytest.raises(AssertionError, match="no such file"):
        find_data("/content/drive/MyDrive/reviews", "samples/reviews")
    assert mounted == ["/content/drive"]


def test_table_escapes_texts_sets_numbers_right_and_keeps_colours():
    place = marked([("서울<", "#cfe8ff", "LOC"), ("에서", "", "")])
    page = table(("a", "b<"), [("1,234.5%", "<i>x</i>"), (place, "4:30")]).data
    assert "b&lt;" in page and "&lt;i&gt;x&lt;/i&gt;" in page and "<i>" not in page
    assert page.count("text-align:right") == 2 and "background:#cfe8ff" in page and "서울&lt; <small><b>LOC" in page


def test_pieces_cover_the_text_with_what_lies_between_them():
    shown = pieces("밥을  먹다", [(0, 0), (0, 1), (1, 2), (4, 6), (0, 0)])
    parts = [
        (text, color, "") for text, color in zip(["밥", "을", "  ", "먹다"], ["#cfe8ff", "#ffe3b8", "", "#cfe8ff"])
    ]
    assert shown.data == marked(parts).data


class Handle:
    """Stands for what IPython displays: every version of it, in order."""

    def __init__(self, value):
        self.versions = [value]

    def update(self, value):
        self.versions.append(value)


def test_progress_yields_all_values_and_ends_full(monkeypatch):
    shown, now = [], iter(range(100))
    monkeypatch.setattr(helpers, "display", lambda value, **_: shown.append(Handle(value)) or shown[-1])
    monkeypatch.setattr(helpers.time, "monotonic", lambda: next(now))
    assert list(helpers.with_progress("read", "abc", lambda: 0.5)) == list("abc")
    pages = [version.data for version in shown[0].versions]
    assert pages[0] == "read" and "read 50%" in pages[1] and "read 100%" in pages[-1]


def test_watch_shows_what_a_run_measures_and_what_it_measured_before(monkeypatch, tmp_path):
    shown = []
    monkeypatch.setattr(helpers, "display", lambda value, **_: shown.append(Handle(value)) or shown[-1])
    (tmp_path / "metrics.jsonl").write_text('{"step": 4, "split": "train", "loss": 2.0}\n', encoding="utf-8")
    watch = TrainingWatch(tmp_path, 8, ("loss",), "training")
    watch(7, "train", {"loss": 1.5})
    watch(8, "train", {"loss": 1.25})
    assert len(shown[0].versions) == 2, "one at the beginning, and one at the end"
    assert all(image.data.startswith(b"\x89PNG") for image in shown[0].versions)


@pytest.mark.slow
def test_attention_is_that_of_every_piece_that_is_read():
    model = albert_tf.load()
    text = "이 영화는 배우들의 [MASK]가 훌륭하다."
    pieces, attention = helpers.read_attention(model, text, max_pieces=40)
    before, behind = (model.tokenizer.tokenize(part) for part in text.split("[MASK]"))
    assert pieces == ["[CLS]", *before, "[MASK]", *behind, "[SEP]"]
    assert attention.shape == (4, 4, len(pieces), len(pieces))
    np.testing.assert_allclose(attention.sum(axis=-1), 1, atol=1e-5)
    assert len(helpers.read_attention(model, "글 " * 100, max_pieces=10)[0]) == 10
