"""SIGTERM and Ctrl-C: the loop stops at the next step, the run is saved, and the process is as it was before."""

import os
import signal
import subprocess
import sys
import threading
import time
import types

import numpy as np
import pytest
import tensorflow as tf
from linear_training import make_linear_examples, start_linear
from tiny_training import loop_settings

from albert_tf.base.checkpoint_files import find_checkpoints
from albert_tf.training.batches import distribute_batches
from albert_tf.training.train_loop import StopRequest
from albert_tf.training.train_step import make_train_function

EXAMPLES = make_linear_examples(8)
NEVER_REACHED = 100_000  # takes minutes


@pytest.fixture
def terminate_when():
    """Returns a function that has a signal sent to this process as soon as a condition holds."""
    threads = []

    def send(condition, number=signal.SIGTERM):
        def watch():
            while not condition():
                time.sleep(0.01)
            os.kill(os.getpid(), number)

        threads.append(threading.Thread(target=watch, daemon=True))
        threads[-1].start()

    yield send
    for thread in threads:
        thread.join(timeout=60)


def kept_handlers():
    pipe = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(pipe)
    return signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT), pipe


@pytest.fixture(autouse=True)
def interrupts_are_heeded():
    """Also where the tests run in the background, whose jobs ignore them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def handlers_are_put_back(interrupts_are_heeded):
    """Checks that afterwards signals are handled as before."""
    before = kept_handlers()
    yield
    assert kept_handlers() == before


@pytest.mark.slow
def test_signal_stops_a_loop_between_two_steps(terminate_when):
    run = start_linear(num_replicas=2)
    dataset = tf.data.Dataset.from_tensor_slices(EXAMPLES).repeat().batch(4)
    with StopRequest() as request:
        train_steps = make_train_function(run.state, 0, request.variable)
        iterator = iter(distribute_batches(run.strategy, dataset))
        train_steps(iterator, tf.constant(2))
        assert not request.is_made and not request.variable.numpy()
        terminate_when(lambda: run.global_step.numpy() > 10)
        train_steps(iterator, tf.constant(NEVER_REACHED))
        assert request.is_made
        stopped_at = run.global_step.numpy()
        train_steps(iterator, tf.constant(5))
        assert run.global_step.numpy() == stopped_at
    assert 10 < stopped_at < NEVER_REACHED


def test_request_of_several_workers_does_not_cut_a_loop_short():
    with StopRequest(interrupts_loop=False) as request:
        os.kill(os.getpid(), signal.SIGTERM)
        while not request.is_made:
            time.sleep(0.01)
        assert not request.variable.numpy()


@pytest.mark.slow
def test_stopped_run_saves_and_can_be_gone_on_with(tmp_path, terminate_when):
    run = start_linear()
    options = loop_settings(iterations_per_loop=NEVER_REACHED, save_checkpoints_steps=NEVER_REACHED)
    terminate_when(lambda: run.global_step.numpy() > 10, signal.SIGINT)
    result = run.train(tmp_path, EXAMPLES, 4, NEVER_REACHED, options)
    step = int(run.global_step.numpy())
    assert not result.is_finished and 10 < step < NEVER_REACHED
    assert find_checkpoints(str(tmp_path)) == [f"{tmp_path}/model.ckpt-{step}"]
    assert run.printed.endswith(f"stopped by Ctrl-C; saved at step {step:,}; repeat the command to go on\n")

    resumed, options = start_linear(seed=1), loop_settings(iterations_per_loop=2, save_checkpoints_steps=100)
    assert resumed.train(tmp_path, EXAMPLES, 4, step + 3, options).is_finished
    plain = start_linear()
    plain.train(tmp_path / "plain", EXAMPLES, 4, step + 3, options)
    np.testing.assert_equal(resumed.values()["model/kernel"], plain.values()["model/kernel"])


def test_run_that_is_stopped_before_its_first_step_saves_nothing(tmp_path, monkeypatch):
    options = loop_settings(iterations_per_loop=2, save_checkpoints_steps=2, evaluates_first=True)
    evaluate = "albert_tf.training.evaluation.Evaluator.evaluate"
    monkeypatch.setattr(evaluate, lambda evaluator, dataset, is_to_stop: None)
    run = start_linear()
    assert not run.train(tmp_path, EXAMPLES, 4, 4, options, held_out=EXAMPLES).is_finished
    assert run.printed == "stopped by SIGTERM; there is nothing to save yet; repeat the command to go on\n"
    assert not find_checkpoints(str(tmp_path))


def test_other_handlers_are_put_back_even_after_an_error():
    called = []
    before = signal.signal(signal.SIGTERM, lambda *_: called.append("mine"))
    try:
        with pytest.raises(ZeroDivisionError), StopRequest():
            os.kill(os.getpid(), signal.SIGTERM)
            raise ZeroDivisionError
        assert not called, "while the request stood"
        os.kill(os.getpid(), signal.SIGTERM)
        assert called == ["mine"]
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(("number", "handler"), [(signal.SIGUSR1, lambda *_: None), (signal.SIGINT, signal.SIG_IGN)])
def test_other_signals_and_ignored_interrupts_are_no_request(number, handler):
    before = signal.signal(number, handler)
    try:
        with StopRequest() as request:
            os.kill(os.getpid(), number)
            time.sleep(0.2)
            assert not request.is_made
    finally:
        signal.signal(number, before)


def test_nothing_is_caught_outside_of_the_main_thread():
    found = []

    def request_a_stop():
        with StopRequest() as request:
            found.extend([signal.getsignal(signal.SIGTERM), request.is_made])

    thread = threading.Thread(target=request_a_stop)
    thread.start()
    thread.join()
    assert found == [signal.getsignal(signal.SIGTERM), False]


@pytest.mark.slow
def test_second_interrupt_ends_the_process_at_once():
    """Even in the middle of a call that never comes back to Python."""
    program = """
import os, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from albert_tf.training.train_loop import StopRequest

def interrupt():
    for _ in range(2):
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)

with StopRequest():
    threading.Thread(target=interrupt, daemon=True).start()
    lock = threading.Lock()
    lock.acquire()
    while True:
        lock.acquire(timeout=1)  # is not cut short by a signal
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 130, result
    assert "press it again to stop at once" in result.stdout
    assert "stopped at once by Ctrl-C" in result.stderr and "Traceback" not in result.stderr


def test_second_interrupt_leaves_the_process_of_a_notebook(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    with pytest.raises(KeyboardInterrupt), StopRequest() as request:
        os.kill(os.getpid(), signal.SIGINT)
        while not request.is_made:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(30)
