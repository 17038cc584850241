"""Safetensors, read and written, against the format's own library; headers that lie."""

import json
import struct

import numpy as np
import pytest

from albert_tf.errors import InputError
from albert_tf.interchange import safetensors_file
from albert_tf.interchange.portable_model import Weight
from albert_tf.interchange.safetensors_file import read_safetensors, write_safetensors


def weights_of(arrays):
    return {name: Weight(array.shape, lambda array=array: array) for name, array in arrays.items()}


@pytest.fixture
def arrays():
    random = np.random.default_rng(0)
    shapes = {"scalar": [], "empty": [0, 3], "vector": [5], "matrix": [7, 3], "cube": [2, 3, 4], "한국어": [2]}
    return {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def test_what_is_written_is_read_again_here_and_by_the_library(tmp_path, arrays, monkeypatch):
    monkeypatch.setattr(safetensors_file, "_CHUNK_BYTES", 16)  # so that rows are written in several parts
    path = str(tmp_path / "model.safetensors")
    write_safetensors(path, weights_of({**arrays, "transposed": arrays["matrix"].T}))
    expected = {**arrays, "transposed": arrays["matrix"].T}
    found = read_safetensors(path)
    assert found.keys() == expected.keys()
    for name, weight in found.items():
        assert weight.shape == expected[name].shape
        np.testing.assert_array_equal(weight.read(), expected[name])
    np.testing.assert_array_equal(found["matrix"].load_rows(2, 5), arrays["matrix"][2:5])
    library = pytest.importorskip("safetensors.numpy", reason="compares with the library safetensors")
    for name, array in library.load_file(path).items():
        np.testing.assert_array_equal(array, expected[name])


def test_what_the_library_writes_is_read(tmp_path, arrays):
    library = pytest.importorskip("safetensors.numpy", reason="compares with the library safetensors")
    values = {**arrays, "half": np.float16([1.5, -2.0]), "double": np.float64([1.5]), "ids": np.arange(3)}
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
        ({"a": tensor(0, 8), "b": tensor(4, 12)}, "'b' does not begin where another ends"),
        ({"a": tensor(0, 8), "b": tensor(12, 20)}, "'b' does not begin where another ends"),
        ({"a": tensor(0, 8)}, "it has 16 bytes of data, and its header names 8"),
        ({"a": tensor(0, 8), "b": tensor(8, 24, [4])}, "it has 16 bytes of data, and its header names 24"),
        ({"a": tensor(0, 16)}, "'a' has not as many bytes as its shape needs"),
        ({"a": tensor(0, 16, [2**32, 2**32])}, "'a' has not as many bytes"),
        ({"a": tensor(0, 16, [-2, -2])}, "'a' has no shape or no place"),
        ({"a": tensor(0, 16, [True, 4])}, "'a' has no shape or no place"),
        ({"a": tensor(0, 16, [4.0])}, "'a' has no shape or no place"),
        ({"a": tensor(16, 0, [4])}, "'a' has not as many bytes"),
        ({"a": tensor(0, 16, [1] * 40)}, "'a' has no shape or no place"),
        ({"a": tensor(0, 16, [4], "F8_E4M3")}, "'a' has the dtype 'F8_E4M3', which can't be read"),
        ({"a": tensor(0, 16, [4], None)}, "'a' has the dtype 'None'"),
        ({"a": 7}, "its header does not describe 'a'"),
        ([], "must hold one JSON object"),
        ({"\ud800": tensor(0, 16, [4])}, "not a JSON object that can be read"),
    ],
)
def test_header_that_lies_is_refused(tmp_path, header, message):
    text = json.dumps(header).encode()
    (tmp_path / "x").write_bytes(struct.pack("<Q", len(text)) + text + bytes(16))
    with pytest.raises(InputError, match=message):
        read_safetensors(str(tmp_path / "x"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it has 0 bytes"),
        (b"1234567", "it has 7 bytes"),
        (struct.pack("<Q", 2**63) + b"{}", "9223372036854775808 should be its header"),
        (struct.pack("<Q", 3) + b"{}", "3 should be its header"),
        (struct.pack("<Q", 2) + b"\xff\xfe", "its header is not UTF-8"),
        (struct.pack("<Q", 4) + b"{}{}", "not valid JSON"),
        (struct.pack("<Q", 90_000) + b"[" * 90_000, "can't? be read|not a JSON object"),
        (struct.pack("<Q", 5009) + b'{"a": ' + b"1" * 5002 + b"}", "not a JSON object that can be read"),
        (struct.pack("<Q", 15) + b'{"a":{},"a":{}}', "its header names something twice"),
    ],
)
def test_file_that_is_none_is_refused(tmp_path, content, message):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_safetensors(str(tmp_path / "x"))


def test_file_that_shrinks_after_its_header_was_read_costs_a_sentence(tmp_path, arrays):
    path = tmp_path / "model.safetensors"
    write_safetensors(str(path), weights_of(arrays))
    found = read_safetensors(str(path))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match="to its end; fetch it again"):
        [weight.read() for weight in found.values()]
