"""Trying the kernels before a run, with right ones, wrong ones and ones that fail."""

from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.modeling.kernels.attention_check import attention_functions, find_fault, make_comparison
from albert_tf.modeling.kernels.positions import VisibleKeys

HEAD_SIZE, LENGTH, POSITIONS = 64, 24, 5


def fault_of(found, strategy=None, dtype="float32", dropout_rate=0.1, hidden_size=384, is_causal=False):
    plain, flash = attention_functions(HEAD_SIZE, dropout_rate)
    strategy = strategy or tf.distribute.get_strategy()
    return find_fault(strategy, plain, found(plain, flash), hidden_size, LENGTH, POSITIONS, dtype, is_causal)


# 128 is one column of the kernels' grid.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "dropout_rate", "hidden_size", "is_causal"),
    [("float32", 0.1, 384, False), ("bfloat16", 0.0, 128, True)],
)
def test_kernels_are_right(dtype, dropout_rate, hidden_size, is_causal):
    pytest.importorskip("jax")
    options = {"dtype": dtype, "dropout_rate": dropout_rate, "hidden_size": hidden_size, "is_causal": is_causal}
    assert fault_of(lambda plain, flash: flash, **options) is None


def without_bias(plain, _):
    return lambda products, biases, visible, seed: plain(
        products, biases, visible._replace(bias=0.0 * visible.bias), seed
    )


def with_other_dropout(plain, _):
    return lambda products, biases, visible, seed: plain(products, biases, visible, seed + 1)


def without_documents(plain, _):
    return lambda products, biases, visible, seed: plain(
        products, biases, visible._replace(query_documents=None, key_documents=None), seed
    )


def without_order(plain, _):
    return lambda products, biases, visible, seed: plain(products, biases, visible._replace(last_keys=None), seed)


def with_one_position_wrong(plain, _):
    def attend(products, biases, visible, seed):
        context = plain(products, biases, visible, seed)
        return tf.concat([context[:, :-1], context[:, :1]], axis=1)

    return attend


def with_wrong_gradient(plain, _):
    def attend(products, biases, visible, seed):
        first, *rest = products
        return plain([1.5 * first - tf.stop_gradient(0.5 * first), *rest], biases, visible, seed)

    return attend


def with_not_a_number(plain, _):
    return lambda products, biases, visible, seed: plain(products, biases, visible, seed) * np.nan


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong", [without_bias, with_other_dropout, with_one_position_wrong, with_wrong_gradient, with_not_a_number]
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_wrong_kernels_are_found(wrong, dtype):
    fault = fault_of(wrong, dtype=dtype)
    assert fault.startswith("differ from plain operations by ")
    assert fault.endswith(" of the largest value where all positions are read")


@pytest.mark.slow
def test_kernels_that_do_not_know_documents_or_order_are_found():
    assert fault_of(without_documents).endswith(" where all positions of several documents are read")
    assert fault_of(without_order) is None
    assert fault_of(without_order, is_causal=True).endswith(" where all positions are read")


def test_kernels_that_are_wrong_where_some_positions_are_read_are_found():
    def found(plain, _):
        def attend(products, biases, visible, seed):
            return plain(products, biases, visible._replace(bias=visible.bias * (len(products) == 1)), seed)

        return attend

    assert fault_of(found).endswith(f" of the largest value where {POSITIONS} positions are read")


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (NotImplementedError("no such layout\nMore lines."), "fail with NotImplementedError: no such layout"),
        (tf.errors.InternalError(None, None, "Mosaic failed"), "fail with InternalError: Mosaic failed"),
        (RuntimeError(), "fail with RuntimeError"),
    ],
)
def test_kernels_that_raise_are_found(error, fault):
    assert fault_of(lambda *_: mock.Mock(side_effect=error)) == fault


def test_kernels_that_fail_when_they_run_are_found():
    def found(plain, _):
        def attend(products, biases, visible, seed):
            with tf.control_dependencies([tf.debugging.assert_equal(seed, 0, "bad program")]):
                return plain(products, biases, visible, seed)

        return attend

    assert fault_of(found).startswith("fail with InvalidArgumentError: ")


@pytest.mark.slow
def test_one_wrong_replica_is_enough():
    strategy = tf.distribute.MirroredStrategy(
        ["/cpu:0", "/cpu:1"], cross_device_ops=tf.distribute.ReductionToOneDevice()
    )

    def found(plain, _):
        def attend(products, biases, visible, seed):
            replica = tf.distribute.get_replica_context().replica_id_in_sync_group
            return plain(products, biases, visible, seed) * (1.0 + tf.cast(replica, tf.float32))

        return attend

    assert fault_of(lambda plain, _: plain, strategy) is None
    assert fault_of(found, strategy).startswith("differ from plain operations by 1 of ")


def test_comparison_of_equals_is_zero():
    plain, _ = attention_functions(HEAD_SIZE, 0.0)
    compare = make_comparison(tf.distribute.get_strategy(), plain, plain, "float32")
    projections, visible = (
        [tf.random.stateless_normal([2, LENGTH, 3 * 128], [1, 2])],
        VisibleKeys(tf.zeros([2, 1, LENGTH])),
    )
    assert float(compare(projections, visible, tf.constant([1, 2]), tf.ones([2, LENGTH, 128]))) == 0.0
