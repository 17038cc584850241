"""Safetensors: what is written, the format's own library reads; files that lie are refused in a sentence."""

import json
import re
import struct
import sys

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.interchange import huggingface
from albert_tf.interchange.huggingface import read_safetensors, write_safetensors
from albert_tf.interchange.portable_model import Weight

library = pytest.importorskip("safetensors.numpy", reason="needs the library safetensors")


def weights_of(arrays):
    return {name: Weight(array.shape, lambda array=array: array) for name, array in arrays.items()}


@pytest.fixture
def arrays():
    random = np.random.default_rng(0)
    shapes = {"scalar": [], "empty": [0, 3], "vector": [5], "matrix": [7, 3], "cube": [2, 3, 4], "한국어": [2]}
    return {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def test_what_is_written_is_read_again_here_and_by_the_library(tmp_path, arrays, monkeypatch):
    monkeypatch.setattr(huggingface, "_CHUNK_BYTES", 16)  # so that rows are written in several parts
    path = str(tmp_path / "model.safetensors")
    write_safetensors(path, weights_of({**arrays, "transposed": arrays["matrix"].T}))
    expected = {**arrays, "transposed": arrays["matrix"].T}
    found = read_safetensors(path)
    assert found.keys() == expected.keys()
    for name, weight in found.items():
        assert weight.shape == expected[name].shape
        np.testing.assert_array_equal(weight.read(), expected[name])
    np.testing.assert_array_equal(found["matrix"].load_rows(2, 5), arrays["matrix"][2:5])
    for name, array in library.load_file(path).items():
        np.testing.assert_array_equal(array, expected[name])


def test_what_the_library_writes_is_read(tmp_path, arrays):
    values = {**arrays, "half": np.float16([1.5, -2.0]), "double": np.float64([1.5]), "ids": np.arange(3)}
    values["brain"] = np.ones([2, 3], tf.bfloat16.as_numpy_dtype)
    library.save_file(values, str(tmp_path / "model.safetensors"), {"format": "pt"})
    found = read_safetensors(str(tmp_path / "model.safetensors"))
    assert found.keys() == values.keys()
    for name, weight in found.items():
        assert weight.read().dtype == np.float32
        np.testing.assert_array_equal(weight.read(), values[name].astype(np.float32))


def tensor(first, last, shape=(2,), dtype="F32"):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [first, last]}


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"a": tensor(0, 8), "b": tensor(4, 12)}, "invalid offset for tensor `b`"),
        ({"a": tensor(0, 16, [2**32, 2**32])}, "overflow computing buffer size"),
        ({"a": tensor(0, 16, [16], "F8_E4M3")}, "'a' has the dtype F8_E4M3, which can't be read; save it as F32"),
        ({"\ud800": tensor(0, 16, [4])}, "invalid JSON in header"),
    ],
)
def test_header_that_lies_is_refused(tmp_path, header, message):
    text = json.dumps(header).encode()
    (tmp_path / "x").write_bytes(struct.pack("<Q", len(text)) + text + bytes(16))
    with pytest.raises(InputError, match=f"^{re.escape(str(tmp_path / 'x'))}.*{message}"):
        read_safetensors(str(tmp_path / "x"))


@pytest.mark.parametrize("content", [b"", struct.pack("<Q", 2**63) + b"{}", struct.pack("<Q", 2) + b"\xff\xfe"])
def test_file_that_is_none_is_refused(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(InputError, match=r"x is damaged or cut off: .*; fetch it again$"):
        read_safetensors(str(tmp_path / "x"))


def test_place_without_a_file_is_said(tmp_path):
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError, match=f"^can't read {re.escape(str(place))}: "):
            read_safetensors(str(place))


def test_missing_library_is_named(tmp_path, arrays, monkeypatch):
    write_safetensors(str(tmp_path / "x"), weights_of(arrays))
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(InputError, match=r"x needs safetensors; pip install safetensors$"):
        read_safetensors(str(tmp_path / "x"))


def test_file_of_another_machine_is_read(tmp_path, arrays):
    write_safetensors(str(tmp_path / "x"), weights_of(arrays))
    tf.io.gfile.copy(str(tmp_path / "x"), f"ram://{tmp_path.name}")
    found = read_safetensors(f"ram://{tmp_path.name}")
    tf.io.gfile.remove(f"ram://{tmp_path.name}")
    for name, weight in found.items():
        np.testing.assert_array_equal(weight.read(), arrays[name])


def test_file_that_shrinks_after_its_header_was_read_costs_a_sentence(tmp_path, arrays):
    path = tmp_path / "model.safetensors"
    write_safetensors(str(path), weights_of(arrays))
    found = read_safetensors(str(path))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match=r"is damaged or cut off: .*; fetch it again"):
        [weight.read() for weight in found.values()]
