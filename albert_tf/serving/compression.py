"""How an export stores its weights.

In fewer bytes, unpacked once, when it is loaded: as fast as float32, and smaller. float16 rounds each number; int8
keeps for each row of a table, and each column of a kernel, one float32 and of every number 8 bits: the number closest
to it among 255 that are evenly spaced. Biases and LayerNorms stay as they are.

In float32, the kernels and vectors of a small model as constants of its graphs: of a single text, reading variables
takes a tenth of the time, and TensorFlow puts kernels of constants together when it prepares a graph.

python -m benchmarks.serving
"""

import collections.abc
import hashlib
import typing

import numpy as np
import tensorflow as tf

from albert_tf.modeling.layers import named_variables

WEIGHT_TYPES = ("float32", "float16", "int8")

_LARGEST_INT8 = 127
# Less is not worth the rounding.
_MIN_SIZE = 1024
# Every graph has them, and TensorFlow copies it several times before it answers for the first time.
_MAX_CONSTANT_BYTES = 16 * 2**20


class PackedWeight(tf.saved_model.experimental.TrackableResource):
    """A float32 weight that is stored as float16 or int8; `tf.convert_to_tensor` reads it.

    Args:
        name: Its name in the model; of int8 it tells tables from kernels.
        values: float32 [rows, columns].
        weight_type: "float16" or "int8".
    """

    def __init__(self, name: str, values: np.ndarray, weight_type: str):
        self._shape = values.shape
        if weight_type == "float16":
            largest = float(np.finfo(np.float16).max)
            stored, self._scales = np.clip(values, -largest, largest).astype(np.float16), None
        else:
            # A row of a table is one piece's; a column of a kernel is one output's.
            axis = 1 if name.endswith("_embeddings") else 0
            scales = np.abs(values).max(axis=axis, keepdims=True) / _LARGEST_INT8
            scales[scales == 0] = 1
            stored = np.rint(values / scales).astype(np.int8)
            self._scales = tf.Variable(scales.astype(np.float32), trainable=False)
        self._stored = tf.Variable(stored, trainable=False)
        # Exports that are loaded into one process share what has one name, so only equal weights may have it.
        content = hashlib.sha256(b"".join(part.numpy().tobytes() for part in self.stored))
        self._name = f"unpacked/{weight_type}/{'x'.join(map(str, values.shape))}/{content.hexdigest()}"
        super().__init__()
        self._initialize()

    @property
    def stored(self) -> list[tf.Variable]:
        """What is saved of it."""
        return [self._stored, *([] if self._scales is None else [self._scales])]

    def _create_resource(self):
        return tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=self._shape, shared_name=self._name)

    def _initialize(self):
        tf.raw_ops.AssignVariableOp(resource=self.resource_handle, value=self.unpack())

    def unpack(self) -> tf.Tensor:
        """Returns the values, float32, as they are after rounding."""
        values = tf.cast(self._stored, tf.float32)
        return values if self._scales is None else values * self._scales

    def read(self) -> tf.Tensor:
        """Returns the values, float32, as they were unpacked."""
        values = tf.raw_ops.ReadVariableOp(resource=self.resource_handle, dtype=tf.float32)
        return tf.ensure_shape(values, self._shape)


class ConstantWeight:
    """A float32 weight that is part of the graphs; `tf.convert_to_tensor` reads it.

    Args:
        values: The weight, of any shape.
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
    if weight_type == "float32":
        return _as_constants(model, variables)
    weights = []
    for name, variable in variables.items():
        is_large = variable.shape.rank == 2 and variable.shape.num_elements() >= _MIN_SIZE
        if is_large and variable.dtype.is_floating:
            packed = PackedWeight(name, variable.numpy(), weight_type)
            _replace(model, name.split("/"), packed)
            weights += [packed, *packed.stored]
        else:
            weights.append(variable)
    return weights


def _as_constants(model, variables):
    """Puts constants into the place of all but tables, if they are few; returns the variables that are left."""
    parts = {
        name: variable
        for name, variable in variables.items()
        if not name.endswith("_embeddings") and variable.dtype == tf.float32
    }
    if 4 * sum(variable.shape.num_elements() for variable in parts.values()) > _MAX_CONSTANT_BYTES:
        return list(variables.values())
    for name, variable in parts.items():
        _replace(model, name.split("/"), ConstantWeight(variable.numpy()))
    for attention in model.encoder.attention_layers:
        attention.is_one_product = True  # TensorFlow puts their constants together when it loads the graph
    return [variable for name, variable in variables.items() if name not in parts]


def _replace(owner, path: collections.abc.Sequence[str], weight):
    for part in path[:-1]:
        owner = owner[int(part)] if part.isdigit() else getattr(owner, part)
    object.__setattr__(owner, path[-1], weight)  # past Keras, which knows variables alone
