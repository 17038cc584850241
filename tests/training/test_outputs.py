"""What a model makes of every example: one array, whatever the lengths of the batches."""

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.training.devices import make_strategy
from albert_tf.training.evaluation import make_output_function


def batches():
    """Yields two batches of other lengths; the last example only fills up."""
    yield {"values": [[1, 2, 3], [4, 5, 6]], "example_weights": [1.0, 1.0]}
    yield {"values": [[7, 8, 9, 10, 11], [0, 0, 0, 0, 0]], "example_weights": [1.0, 0.0]}


@pytest.mark.parametrize("num_replicas", [1, 2])
def test_shorter_batches_are_filled_up(num_replicas):
    dataset = tf.data.Dataset.from_generator(
        batches,
        output_signature={
            "values": tf.TensorSpec([2, None], tf.int32),
            "example_weights": tf.TensorSpec([2], tf.float32),
        },
    )

    def double_and_add_up(batch):
        return {"double": 2 * batch["values"], "sum": tf.reduce_sum(batch["values"], axis=1)}

    outputs = make_output_function(make_strategy(num_cpu_replicas=num_replicas), double_and_add_up)(dataset)
    expected = [[2, 4, 6, 0, 0], [8, 10, 12, 0, 0], [14, 16, 18, 20, 22]]
    np.testing.assert_array_equal(outputs["double"], expected)
    np.testing.assert_array_equal(outputs["sum"], [6, 15, 45])
