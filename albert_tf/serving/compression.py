"""How an export stores its weights.

In fewer bytes, unpacked once, when it is loaded: smaller and, but for single texts, as fast as float32. float16 rounds
each number; int8 keeps for each row of a table, and each column of a kernel, one float32 and of every number 8 bits:
the number closest to it among 255 that are evenly spaced. Biases and LayerNorms stay as they are.

bfloat16 rounds each number, too, and of kernels is not unpacked: products are computed in it, which is faster where
the processor has instructions for them.

In float32 and bfloat16, the kernels and vectors of a small model are constants of its graphs: of a single text, reading
variables takes a tenth of the time, and TensorFlow puts kernels of constants together when it prepares a graph.

python -m benchmarks.export_weights
"""

import collections.abc
import hashlib
import typing

import numpy as np
import tensorflow as tf

from albert_tf.modeling.layers import named_variables

WEIGHT_TYPES = ("float32", "float16", "int8", "bfloat16")

# What is not unpacked.
_COMPUTED_IN = ("float32", "bfloat16")

_LARGEST_INT8 = 127
# Less is not worth the rounding.
_MIN_SIZE = 1024
# Every graph has them, and TensorFlow copies it several times before it answers for the first time.
_MAX_CONSTANT_BYTES = 16 * 2**20


class PackedWeight(tf.saved_model.experimental.TrackableResource):
    """A weight that is stored in fewer bytes; `tf.convert_to_tensor` reads it.

    Args:
        name: Its name in the model, which tells tables from kernels.
        values: float32 [rows, columns].
        weight_type: "float16", "int8" or "bfloat16".
    """

    def __init__(self, name: str, values: np.ndarray, weight_type: str):
        self._shape, is_table = values.shape, name.endswith("_embeddings")
        # Rows of tables are added in float32.
        self._dtype = tf.bfloat16 if weight_type == "bfloat16" and not is_table else tf.float32
        if weight_type == "float16":
            largest = float(np.finfo(np.float16).max)
            stored, self._scales = np.clip(values, -largest, largest).astype(np.float16), None
        elif weight_type == "bfloat16":
            stored, self._scales = tf.cast(values, tf.bfloat16), None
        else:
            # A row of a table is one piece's; a column of a kernel is one output's.
            axis = 1 if is_table else 0
            scales = np.abs(values).max(axis=axis, keepdims=True) / _LARGEST_INT8
            scales[scales == 0] = 1
            stored = np.rint(values / scales).astype(np.int8)
            self._scales = tf.Variable(scales.astype(np.float32), trainable=False)
        self._stored = tf.Variable(stored, trainable=False)
        # Exports that are loaded into one process share what has one name, so only equal weights may have it.
        content = hashlib.sha256(b"".join(part.numpy().tobytes() for part in self.stored))
        kind = f"{weight_type}/{self._dtype.name}/{'x'.join(map(str, values.shape))}"
        self._name = f"unpacked/{kind}/{content.hexdigest()}"
        super().__init__()
        self._initialize()

    @property
    def stored(self) -> list[tf.Variable]:
        """What is saved of it."""
        return [self._stored, *([] if self._scales is None else [self._scales])]

    def _create_resource(self):
        return tf.raw_ops.VarHandleOp(dtype=self._dtype, shape=self._shape, shared_name=self._name)

    def _initialize(self):
        tf.raw_ops.AssignVariableOp(resource=self.resource_handle, value=self.unpack())

    def unpack(self) -> tf.Tensor:
        """Returns the values as they are after rounding, in the dtype that they are read in."""
        values = tf.cast(self._stored, self._dtype)
        return values if self._scales is None else values * self._scales

    def read(self) -> tf.Tensor:
        """Returns the values as they were unpacked: float32, or bfloat16 of kernels that are stored in it."""
        values = tf.raw_ops.ReadVariableOp(resource=self.resource_handle, dtype=self._dtype)
        return tf.ensure_shape(values, self._shape)


class ConstantWeight:
    """A weight that is part of the graphs; `tf.convert_to_tensor` reads it.

    Args:
        values: The weight, of any shape and in the dtype that it is read in.
    """

    def __init__(self, values: np.ndarray):
        # By graph; they are kept as long as the model is.
        self._values, self._constants = values, {}

    def read(self) -> tf.Tensor:
        """Returns the values, the same constant wherever a graph reads them."""
        graph = tf.compat.v1.get_default_graph()
        if graph not in self._constants:
            self._constants[graph] = tf.constant(self._values)
        return self._constants[graph]


def _read(weight, dtype=None, name=None, as_ref=False):
    return weight.read()


tf.register_tensor_conversion_function((PackedWeight, ConstantWeight), _read)


def pack_weights(model: tf.keras.layers.Layer, weight_type: str) -> list[typing.Any]:
    """Puts packed weights into the place of a model's large ones; afterwards it can only be asked and exported.

    Args:
        model: Changed in place.
        weight_type: One of `WEIGHT_TYPES`; with "float32" the weights stay as they are, or become constants.

    Returns:
        All that an export must hold, for the model itself still holds the weights as they were.
    """
    variables = named_variables(model)
    constants = _constants(variables) if weight_type in _COMPUTED_IN else set()
    weights = []
    for name, variable in variables.items():
        is_rounded = weight_type != "float32" and _is_large_matrix(variable)
        if name in constants:
            values = tf.cast(variable, weight_type) if is_rounded else variable
            _replace(model, name.split("/"), ConstantWeight(values.numpy()))
        elif is_rounded:
            packed = PackedWeight(name, variable.numpy(), weight_type)
            _replace(model, name.split("/"), packed)
            weights += [packed, *packed.stored]
        else:
            weights.append(variable)
    if constants:
        for attention in model.encoder.attention_layers:
            attention.is_one_product = True  # TensorFlow puts their constants together when it loads the graph
    return weights


def _is_large_matrix(variable):
    return variable.shape.rank == 2 and variable.shape.num_elements() >= _MIN_SIZE and variable.dtype.is_floating


def _constants(variables):
    """Returns the names of all but tables, if they are few."""
    parts = {
        name: variable.shape.num_elements()
        for name, variable in variables.items()
        if not name.endswith("_embeddings") and variable.dtype == tf.float32
    }
    return set(parts) if 4 * sum(parts.values()) <= _MAX_CONSTANT_BYTES else set()


def _replace(owner, path: collections.abc.Sequence[str], weight):
    for part in path[:-1]:
        owner = owner[int(part)] if part.isdigit() else getattr(owner, part)
    object.__setattr__(owner, path[-1], weight)  # past Keras, which knows variables alone
