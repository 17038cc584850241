"""Trying the kernels before a run, with right ones, wrong ones and ones that fail."""

from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.modeling.kernels.attention_check import attention_functions, find_fault

HEAD_SIZE, LENGTH, POSITIONS = 64, 24, 5


def fault_of(found, strategy=None, dtype="float32", dropout_rate=0.1, hidden_size=384, is_causal=False):
    plain, flash = attention_functions(HEAD_SIZE, dropout_rate)
    strategy = strategy or tf.distribute.get_strategy()
    return find_fault(strategy, plain, found(plain, flash), hidden_size, LENGTH, POSITIONS, dtype, is_causal)


@pytest.mark.slow
def test_kernels_are_right():
    pytest.importorskip("jax")
    assert fault_of(lambda plain, flash: flash, dtype="bfloat16", hidden_size=256, is_causal=True) is None


def changed(**changes):
    """Returns what makes wrong kernels, which are given other inputs, of functions of the right ones."""

    def found(plain, _):
        def attend(*given):
            given = dict(zip(("products", "biases", "visible", "seed"), given))
            return plain(*(changes.get(name, lambda value: value)(value) for name, value in given.items()))

        return attend

    return found


without_bias = changed(visible=lambda visible: visible._replace(bias=0.0 * visible.bias))
with_other_dropout = changed(seed=lambda seed: seed + 1)
without_documents = changed(visible=lambda visible: visible._replace(query_documents=None, key_documents=None))
without_order = changed(visible=lambda visible: visible._replace(last_keys=None))
with_not_a_number = changed(biases=lambda biases: [np.nan * bias for bias in biases])


def with_one_position_wrong(plain, _):
    def attend(products, biases, visible, seed):
        context = plain(products, biases, visible, seed)
        return tf.concat([context[:, :-1], context[:, :1]], axis=1)

    return attend


def with_wrong_gradient_of_first(products):
    first, *rest = products
    return [1.5 * first - tf.stop_gradient(0.5 * first), *rest]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "dtype"),
    [
        (without_bias, "bfloat16"),
        (with_other_dropout, "float32"),
        (with_one_position_wrong, "bfloat16"),
        (changed(products=with_wrong_gradient_of_first), "float32"),
        (with_not_a_number, "float32"),
    ],
)
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
