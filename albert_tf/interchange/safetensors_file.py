"""Files of safetensors, read and written tensor by tensor; the format's own library writes only whole models."""

import collections.abc
import contextlib
import functools
import json
import math
import os
import shutil
import tempfile

import numpy as np

from albert_tf.errors import InputError, first_line, quote, shorten
from albert_tf.files import reading
from albert_tf.interchange.portable_model import Weight

# Others, of 8 bits, stand for weights only together with their scales.
_DTYPES = ("F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL")
_ALIGNMENT = 8
# How much is written at once.
_CHUNK_BYTES = 16 * 2**20


def read_safetensors(path: str) -> dict[str, Weight]:
    """Returns the tensors of a file by name, to be read when they are needed."""
    copy = None
    with reading(path) as file:
        content = file.read(1)
        if "://" in path:  # the library reads files of this machine alone
            copy = tempfile.NamedTemporaryFile()  # noqa: SIM115, weights read it later
            copy.write(content)
            shutil.copyfileobj(file, copy)
            copy.flush()
    with _opened(path, copy) as tensors:
        names = tensors.keys()
        return {name: _weight(path, copy, name, tensors.get_slice(name)) for name in names}


def _weight(path, copy, name, tensor):
    shape, dtype = tuple(tensor.get_shape()), tensor.get_dtype()
    if dtype not in _DTYPES:
        raise InputError(f"{path}: {quote(name)} has the dtype {shorten(dtype)}, which can't be read; save it as F32")
    load = functools.partial(_load, path, copy, name)
    return Weight(shape, load, load if shape else None)


def _load(path, copy, name, first=None, last=None):
    with _opened(path, copy) as tensors:
        return tensors.get_tensor(name) if first is None else tensors.get_slice(name)[first:last]


@contextlib.contextmanager
def _opened(path, copy):
    """Opens a file, or its copy, which is kept as long as anybody may read it."""
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError as error:
        raise InputError(
            f"reading {path} needs the library safetensors; install it with pip install safetensors"
        ) from error
    try:
        with safe_open(path if copy is None else copy.name, "numpy") as tensors:
            yield tensors
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} is damaged or cut off: {first_line(error)}; fetch it again") from error
    except TypeError as error:  # bfloat16 before version 0.8
        raise InputError(f"{path}: {first_line(error)}; install a newer safetensors, or save it as F32") from error


def write_safetensors(path: str, weights: collections.abc.Mapping[str, Weight]) -> None:
    """Writes float32 tensors into a local file, one at a time."""
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name in sorted(weights):
        first, end = end, end + 4 * math.prod(weights[name].shape)
        header[name] = {"dtype": "F32", "shape": list(weights[name].shape), "data_offsets": [first, end]}
    content = json.dumps(header, separators=(",", ":")).encode()
    content += b" " * (-len(content) % _ALIGNMENT)
    with open(os.fspath(path), "wb") as file:
        file.write(len(content).to_bytes(8, "little") + content)
        for name in sorted(weights):
            _write_rows(file, weights[name].read())


def _write_rows(file, values):
    """Writes an array row by row, so that of a transposed one no copy is made."""
    rows = values.reshape(1, -1) if values.ndim < 2 else values
    step = max(1, _CHUNK_BYTES // max(1, rows[:1].nbytes))
    for first in range(0, len(rows), step):
        file.write(np.ascontiguousarray(rows[first : first + step], np.dtype("<f4")).data)
