"""Batches of several requests: every one gets its own values, in few batches, and none waits for ever."""

import asyncio
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tf.server.batching import Batcher, RefusedError


class Echo:
    """Answers each text with itself and its signature, once it may."""

    def __init__(self, error=None, may_go=True):
        self.batches, self.may_go, self.error = [], threading.Event(), error
        if may_go:
            self.may_go.set()

    def __call__(self, signature, rows):
        self.may_go.wait(10)
        numbers = [int(text) for (text,) in rows]
        self.batches.append((signature, numbers))
        if self.error in numbers:
            raise ValueError("it can't be computed")
        return [(signature, number) for number in numbers]


def ask(batcher, *numbers, signature="a", **others):
    return batcher.ask(signature, [(b"%d" % number,) for number in numbers], **others)


async def asked_in_turn(batcher, *rounds):
    """Returns the tasks of requests, each a tuple of numbers, of which those of a round come at once."""
    tasks = []
    for requests in rounds:
        tasks += [asyncio.create_task(ask(batcher, *numbers)) for numbers in requests]
        await asyncio.sleep(0.05)
    return tasks


@given(st.lists(st.tuples(st.sampled_from("ab"), st.lists(st.integers(), min_size=1, max_size=9)), max_size=30))
def test_every_request_gets_its_own_values(requests):
    compute = Echo()

    async def run():
        batcher = Batcher(compute, 4, 1000, 1000)
        return await asyncio.gather(*(ask(batcher, *texts, signature=name) for name, texts in requests))

    assert asyncio.run(run()) == [[(name, text) for text in texts] for name, texts in requests]
    assert all(len(texts) <= 4 for _, texts in compute.batches)


def test_what_comes_while_a_batch_is_computed_is_the_next_batch():
    compute, sizes = Echo(may_go=False), []

    async def run():
        batcher = Batcher(compute, 8, 1000, 1000, sizes.append)
        tasks = await asked_in_turn(batcher, [(0,)], [(number,) for number in range(1, 7)])
        compute.may_go.set()
        await asyncio.gather(*tasks)

    asyncio.run(run())
    assert [texts for _, texts in compute.batches] == [[0], [1, 2, 3, 4, 5, 6]]
    assert sizes == [1, 6]


def test_clients_that_left_are_not_computed_and_harm_nobody():
    compute = Echo(may_go=False)

    async def run():
        batcher = Batcher(compute, 8, 1000, 1000)
        tasks = await asked_in_turn(batcher, [(0,)], [(1,), (2,)])
        tasks[0].cancel(), tasks[1].cancel()
        compute.may_go.set()
        return await tasks[2], await ask(batcher, 3)

    assert asyncio.run(run()) == ([("a", 2)], [("a", 3)])
    assert [texts for _, texts in compute.batches] == [[0], [2], [3]]


def test_failure_reaches_those_of_its_batch_only():
    compute = Echo(error=1)

    async def run():
        batcher = Batcher(compute, 1, 1000, 1000)
        return await asyncio.gather(*(ask(batcher, number) for number in range(3)), return_exceptions=True)

    first, second, third = asyncio.run(run())
    assert (first, third) == ([("a", 0)], [("a", 2)])
    assert str(second) == "it can't be computed"


def test_too_many_are_sent_away_but_never_a_lone_one():
    compute = Echo(may_go=False)

    async def run():
        batcher = Batcher(compute, 2, 1000, 4)
        tasks = await asked_in_turn(batcher, [(0,)], [(1, 2, 3)])
        with pytest.raises(RefusedError, match="4 texts are waiting already; try again in a moment"):
            await ask(batcher, 4)
        compute.may_go.set()
        await asyncio.gather(*tasks)
        return await ask(batcher, *range(9))

    assert len(asyncio.run(run())) == 9


def test_as_many_batches_are_computed_at_once_as_may():
    compute, started = Echo(may_go=False), threading.Semaphore(0)

    def start(signature, texts):
        started.release()
        return compute(signature, texts)

    async def run():
        batcher = Batcher(start, 2, 1000, 1000, num_at_once=2)
        tasks = [asyncio.create_task(ask(batcher, *range(5)))]  # three batches
        await asyncio.sleep(0)
        assert [await asyncio.to_thread(started.acquire, timeout=10) for _ in range(2)] == [True, True]
        tasks.append(asyncio.create_task(ask(batcher, 5)))
        assert not await asyncio.to_thread(started.acquire, timeout=0.05)
        compute.may_go.set()
        return await asyncio.gather(*tasks)

    first, second = asyncio.run(run())
    assert first == [("a", number) for number in range(5)] and second == [("a", 5)]


def test_one_text_waits_for_a_batch_that_is_computed_and_for_no_other():
    compute = Echo(may_go=False)

    async def run():
        batcher = Batcher(compute, 32, 1000, 1000, num_at_once=2)
        tasks = await asked_in_turn(batcher, [(0,), (1,)], [(2,), (3,), (4,)])
        compute.may_go.set()
        await asyncio.gather(*tasks)

    asyncio.run(run())
    assert [texts for _, texts in compute.batches] == [[0, 1], [2, 3, 4]]


def test_small_request_passes_what_is_left_of_a_large_one():
    compute = Echo(may_go=False)

    async def run():
        batcher = Batcher(compute, 4, 1000, 1000)
        large, small = await asked_in_turn(batcher, [range(12)], [(99,)])
        compute.may_go.set()
        return await small, await large

    assert asyncio.run(run()) == ([("a", 99)], [("a", number) for number in range(12)])
    assert [texts for _, texts in compute.batches] == [[0, 1, 2, 3], [99], [4, 5, 6, 7], [8, 9, 10, 11]]


@given(st.lists(st.lists(st.sampled_from([1, 22, 333, 4444, 55555]), min_size=1, max_size=9), max_size=9))
def test_batches_hold_no_more_bytes_than_they_may_but_for_a_row_of_more(requests):
    compute = Echo()

    async def run():
        batcher = Batcher(compute, 4, 4, 1000)
        return await asyncio.gather(*(ask(batcher, *numbers) for numbers in requests))

    assert asyncio.run(run()) == [[("a", number) for number in numbers] for numbers in requests]
    for _, numbers in compute.batches:
        assert len(numbers) == 1 or (len(numbers) <= 4 and sum(len(str(number)) for number in numbers) <= 4)


def test_request_ends_where_its_values_are_too_much():
    compute, seen = Echo(), []

    def refuse_second(values):
        seen.append(values)
        if len(seen) > 1:
            raise ValueError("too much")

    async def run():
        batcher = Batcher(compute, 2, 1000, 1000)
        with pytest.raises(ValueError, match="too much"):
            await ask(batcher, *range(8), on_values=refuse_second)
        return await ask(batcher, 9)

    assert asyncio.run(run()) == [("a", 9)]
    assert [texts for _, texts in compute.batches] == [[0, 1], [2, 3], [9]]
    assert seen == [[("a", 0), ("a", 1)], [("a", 2), ("a", 3)]]
