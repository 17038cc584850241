"""The storage of an export's weights.

bfloat16 rounds each number of large matrices. Of kernels it is not unpacked: products are computed in it, which is
faster where the processor has instructions for them. Biases and LayerNorms stay as they are.

The kernels and vectors of a small model are constants of its graphs: of a single text, reading variables takes a tenth
of the time, and TensorFlow puts kernels of constants together when it prepares a graph.

python -m benchmarks.export_weights
"""

import collections.abc
import hashlib
import typing

import numpy as np
import tensorflow as tf

from albert_tf.modeling.layers import named_variables

# Less is not worth the rounding.
_MIN_SIZE = 1024
# Every graph has them, and TensorFlow copies it several times before it answers for the first time.
_MAX_CONSTANT_BYTES = 16 * 2**20


class PackedWeight(tf.saved_model.experimental.TrackableResource):
    """A weight float32 [rows, columns] that is stored in bfloat16; `tf.convert_to_tensor` reads it."""

    def __init__(self, name: str, values: np.ndarray):
        # Rows of tables are added in float32.
        self._shape, self._dtype = values.shape, tf.float32 if name.endswith("_embeddings") else tf.bfloat16
        self.stored = tf.Variable(tf.cast(values, tf.bfloat16), trainable=False)
        # Exports that are loaded into one process share what has one name, so only equal weights may have it.
        content = hashlib.sha256(self.stored.numpy().tobytes())
        kind = f"bfloat16/{self._dtype.name}/{'x'.join(map(str, values.shape))}"
        self._name = f"unpacked/{kind}/{content.hexdigest()}"
        super().__init__()
        self._initialize()

    def _create_resource(self):
        return tf.raw_ops.VarHandleOp(dtype=self._dtype, shape=self._shape, shared_name=self._name)

    def _initialize(self):
        tf.raw_ops.AssignVariableOp(resource=self.resource_handle, value=self.unpack())

    def unpack(self) -> tf.Tensor:
        """Returns the values as they are after rounding, in the dtype that they are read in."""
        return tf.cast(self.stored, self._dtype)

    def read(self) -> tf.Tensor:
        """Returns the values as they were unpacked: float32 of tables, bfloat16 of kernels."""
        values = tf.raw_ops.ReadVariableOp(resource=self.resource_handle, dtype=self._dtype)
        return tf.ensure_shape(values, self._shape)


class ConstantWeight:
    """A weight of any shape and dtype that is part of the graphs; `tf.convert_to_tensor` reads it."""

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

    Returns all that an export must hold, for the model itself still holds the weights as they were. With "float32" they
    stay as they are or become constants; else it is "bfloat16".
    """
    variables = named_variables(model)
    constants = _constants(variables)
    weights = []
    for name, variable in variables.items():
        is_large_matrix = variable.shape.rank == 2 and variable.shape.num_elements() >= _MIN_SIZE
        is_rounded = weight_type != "float32" and is_large_matrix and variable.dtype.is_floating
        if name in constants:
            values = tf.cast(variable, weight_type) if is_rounded else variable
            _replace(model, name.split("/"), ConstantWeight(values.numpy()))
        elif is_rounded:
            packed = PackedWeight(name, variable.numpy())
            _replace(model, name.split("/"), packed)
            weights += [packed, packed.stored]
        else:
            weights.append(variable)
    if constants:
        for attention in model.encoder.attention_layers:
            attention.is_one_product = True  # TensorFlow puts their constants together when it loads the graph
    return weights


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
