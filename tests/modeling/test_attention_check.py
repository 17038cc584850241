"""Trying the kernels before a run, with right ones, wrong ones and ones that fail."""

from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.modeling.kernels.attention_check import attention_functions, find_fault, make_comparison

HEAD_SIZE, LENGTH, POSITIONS = 64, 24, 5


def fault_of(found, strategy=None, dtype="float32", dropout_rate=0.1, hidden_size=384):
    plain, flash = attention_functions(HEAD_SIZE, dropout_rate)
    strategy = strategy or tf.distribute.get_strategy()
    return find_fault(strategy, plain, found(plain, flash), hidden_size, LENGTH, POSITIONS, dtype)


# 128 is one column of the kernels' grid.
@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "dropout_rate", "hidden_size"), [("float32", 0.1, 384), ("bfloat16", 0.0, 128)])
def test_kernels_are_right(dtype, dropout_rate, hidden_size):
    pytest.importorskip("jax")
    options = {"dtype": dtype, "dropout_rate": dropout_rate, "hidden_size": hidden_size}
    assert fault_of(lambda plain, flash: flash, **options) is None


def without_bias(plain, _):
    return lambda projections, bias, seed: plain(projections, 0.0 * bias, seed)


def with_other_dropout(plain, _):
    return lambda projections, bias, seed: plain(projections, bias, seed + 1)


def with_one_position_wrong(plain, _):
    def attend(projections, bias, seed):
        context = plain(projections, bias, seed)
        return tf.concat([context[:, :-1], context[:, :1]], axis=1)

    return attend


def with_wrong_gradient(plain, _):
    def attend(projections, bias, seed):
        first, *rest = projections
        return plain([1.5 * first - tf.stop_gradient(0.5 * first), *rest], bias, seed)

    return attend


def with_not_a_number(plain, _):
    return lambda projections, bias, seed: plain(projections, bias, seed) * np.nan


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong", [without_bias, with_other_dropout, with_one_position_wrong, with_wrong_gradient, with_not_a_number]
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_wrong_kernels_are_found(wrong, dtype):
    fault = fault_of(wrong, dtype=dtype)
    assert fault.startswith("differ from plain operations by ")
    assert fault.endswith(" of the largest value where all positions are read")


def test_kernels_that_are_wrong_where_some_positions_are_read_are_found():
    def found(plain, _):
        def attend(projections, bias, seed):
            return plain(projections, bias * (len(projections) == 1), seed)

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
        def attend(projections, bias, seed):
            with tf.control_dependencies([tf.debugging.assert_equal(seed, 0, "bad program")]):
                return plain(projections, bias, seed)

        return attend

    assert fault_of(found).startswith("fail with InvalidArgumentError: ")


@pytest.mark.slow
def test_one_wrong_replica_is_enough():
    strategy = tf.distribute.MirroredStrategy(
        ["/cpu:0", "/cpu:1"], cross_device_ops=tf.distribute.ReductionToOneDevice()
    )

    def found(plain, _):
        def attend(projections, bias, seed):
            replica = tf.distribute.get_replica_context().replica_id_in_sync_group
            return plain(projections, bias, seed) * (1.0 + tf.cast(replica, tf.float32))

        return attend

    assert fault_of(lambda plain, _: plain, strategy) is None
    assert fault_of(found, strategy).startswith("differ from plain operations by 1 of ")


def test_comparison_of_equals_is_zero():
    plain, _ = attention_functions(HEAD_SIZE, 0.0)
    compare = make_comparison(tf.distribute.get_strategy(), plain, plain, "float32")
    arrays = [tf.random.stateless_normal([2, LENGTH, 3 * 128], [1, 2])], tf.zeros([2, 1, LENGTH]), tf.constant([1, 2])
    assert float(compare(*arrays, tf.ones([2, LENGTH, 128]))) == 0.0
