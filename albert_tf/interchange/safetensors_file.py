"""Safetensors, the file format: a JSON header with the place of each tensor, and the bytes. Nothing in it is code.

A file is read and written tensor by tensor, so that a model need not fit into memory twice. The header is believed only
where every tensor lies in the file, has as many bytes as its shape needs, and no byte belongs to two or to none.
"""

import collections.abc
import functools
import json
import math
import os
import struct

import numpy as np
import tensorflow as tf

from albert_tf.errors import InputError
from albert_tf.files import parse_json, reading
from albert_tf.interchange.portable_model import Weight

_DTYPES = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype(tf.bfloat16.as_numpy_dtype),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
_LENGTH = struct.Struct("<Q")
# What the format's own reader takes as well.
_MOST_HEADER_BYTES = 100_000_000
_METADATA = "__metadata__"
_ALIGNMENT = 8
# How much is written at once.
_CHUNK_BYTES = 16 * 2**20


def read_safetensors(path: str) -> dict[str, Weight]:
    """Returns the tensors of a file by name, to be read when they are needed.

    Raises:
        InputError: The file can't be read, or its header contradicts itself or the file's size.
    """
    with reading(path) as file:
        size = tf.io.gfile.stat(path).length
        header_size = _header_size(file.read(_LENGTH.size), size, path)
        content = file.read(header_size)
    begin = _LENGTH.size + header_size
    header = _parse(content, path)
    places = {name: _place(name, value, path) for name, value in header.items() if name != _METADATA}
    _check_places(places, size - begin, path)
    return {name: _weight(path, begin + first, dtype, shape) for name, (dtype, shape, first, _) in places.items()}


def _header_size(beginning, size, path):
    if len(beginning) < _LENGTH.size:
        raise InputError(f"{path} is no safetensors file: it has {len(beginning)} bytes; fetch it again")
    (header_size,) = _LENGTH.unpack(beginning)
    if header_size > min(_MOST_HEADER_BYTES, size - _LENGTH.size):
        raise InputError(
            f"{path} is no safetensors file, or is cut off: it has {size} bytes, of which {header_size} should be its "
            "header; fetch it again"
        )
    return header_size


def _parse(content, path):
    """Returns the header as a dictionary."""

    def refuse_doubled(pairs):
        values = dict(pairs)
        if len(values) < len(pairs):
            raise InputError(f"{path} is damaged: its header names something twice; fetch it again")
        return values

    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is damaged: its header is not UTF-8; fetch it again") from error
    return parse_json(text, f"the header of {path}", refuse_doubled)


def _place(name, value, path):
    """Returns dtype, shape and first and last offset of a tensor."""
    if not isinstance(value, dict):
        raise InputError(f"{path} is damaged: its header does not describe {name[:80]!r}; fetch it again")
    dtype = value.get("dtype")
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise InputError(
            f"{path}: {name[:80]!r} has the dtype {str(dtype)[:20]!r}, which can't be read; save it as F32"
        )
    shape, offsets = value.get("shape"), value.get("data_offsets")
    if not _are_counts(shape) or not _are_counts(offsets) or len(offsets) != 2:
        raise InputError(f"{path} is damaged: {name[:80]!r} has no shape or no place in it; fetch it again")
    if offsets[1] - offsets[0] != math.prod(shape) * _DTYPES[dtype].itemsize:
        raise InputError(f"{path} is damaged: {name[:80]!r} has not as many bytes as its shape needs; fetch it again")
    return _DTYPES[dtype], tuple(shape), *offsets


def _are_counts(values):
    return isinstance(values, list) and len(values) <= 32 and all(type(value) is int and value >= 0 for value in values)


def _check_places(places, size, path):
    """Checks that every byte of the data belongs to one tensor."""
    end = 0
    for name, (_, _, first, last) in sorted(places.items(), key=lambda item: item[1][2:]):
        if first != end:
            raise InputError(f"{path} is damaged: {name[:80]!r} does not begin where another ends; fetch it again")
        end = last
    if end != size:
        raise InputError(f"{path} is damaged: it has {size} bytes of data, and its header names {end}; fetch it again")


def _weight(path, begin, dtype, shape):
    """Returns a tensor of a file, which is read as a whole or row by row."""
    row = math.prod(shape[1:])
    load_rows = functools.partial(_load_rows, path, begin, dtype, shape[1:], row) if shape else None
    return Weight(shape, functools.partial(_load, path, begin, dtype, shape), load_rows)


def _load_rows(path, begin, dtype, row_shape, row, first, last):
    return _load(path, begin + first * row * dtype.itemsize, dtype, (last - first, *row_shape))


def _load(path, begin, dtype, shape):
    count = math.prod(shape)
    try:
        if "://" not in path:
            values = np.fromfile(path, dtype, count, offset=begin)
        else:
            with tf.io.gfile.GFile(path, "rb") as file:
                file.seek(begin)
                values = np.frombuffer(file.read(count * dtype.itemsize), dtype)
        return values.reshape(shape)
    except (OSError, tf.errors.OpError, ValueError) as error:
        raise InputError(f"can't read {path} to its end; fetch it again") from error


def write_safetensors(path: str, weights: collections.abc.Mapping[str, Weight]) -> None:
    """Writes float32 tensors into a local file, one at a time."""
    header, end = {_METADATA: {"format": "pt"}}, 0
    for name in sorted(weights):
        first, end = end, end + 4 * math.prod(weights[name].shape)
        header[name] = {"dtype": "F32", "shape": list(weights[name].shape), "data_offsets": [first, end]}
    content = json.dumps(header, separators=(",", ":")).encode()
    content += b" " * (-len(content) % _ALIGNMENT)
    with open(os.fspath(path), "wb") as file:
        file.write(_LENGTH.pack(len(content)) + content)
        for name in sorted(weights):
            _write_rows(file, weights[name].read())


def _write_rows(file, values):
    """Writes an array row by row, so that of a transposed one no copy is made."""
    rows = values.reshape(1, -1) if values.ndim < 2 else values
    step = max(1, _CHUNK_BYTES // max(1, rows[:1].nbytes))
    for first in range(0, len(rows), step):
        file.write(np.ascontiguousarray(rows[first : first + step], np.dtype("<f4")).data)
