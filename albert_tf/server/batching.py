"""Texts of several requests computed together, so that many clients cost little more than one."""

import asyncio
import collections
import collections.abc
import concurrent.futures
import typing

from albert_tf.server.options import RefusedError

# Given a signature and texts by input, returns a value for each text; runs in a thread.
Compute = collections.abc.Callable[[str, dict[str, list[bytes]]], list[typing.Any]]

# With fewer texts a batch beside another one costs more than it saves.
_FEW = 8


class _Part(typing.NamedTuple):
    """Part of a request that waits for its turn: texts by input, and where the values go."""

    signature: str
    texts: dict[str, list[bytes]]
    values: asyncio.Future

    @property
    def count(self):
        return _count(self.texts)


class Batcher:
    """Computes one batch after the other: all texts that came while those before were computed, up to a number of them.

    So a lone request never waits for others, and the more texts wait, the larger the batches become. A request of more
    texts than a batch holds takes its turn again for each of them, so that small requests pass it. While a batch is
    computed, another one begins only if it is of a few texts, for a batch of one costs almost as much as they.

    Args:
        compute: What is computed of a batch.
        max_batch_size: Most texts in a batch.
        max_waiting: Most texts of requests that are not answered yet.
        on_batch: Told the size of each batch.
        num_at_once: Batches that are computed at the same time, in as many threads.
    """

    def __init__(
        self,
        compute: Compute,
        max_batch_size: int,
        max_waiting: int,
        on_batch: collections.abc.Callable[[int], None] = lambda size: None,
        num_at_once: int = 1,
    ):
        self._compute, self._max_batch_size, self._max_waiting = compute, max_batch_size, max_waiting
        self._on_batch = on_batch
        self._num_waiting = 0
        self._queue, self._num_queued = collections.deque(), 0
        self._thread = concurrent.futures.ThreadPoolExecutor(num_at_once, "compute")
        self._num_at_once, self._num_running, self._tasks = num_at_once, 0, set()

    async def ask(self, signature: str, texts: dict[str, list[bytes]]) -> list[typing.Any]:
        """Returns a value for each text.

        Raises:
            RefusedError: Too many wait already.
        """
        count = _count(texts)
        if self._num_waiting and self._num_waiting + count > self._max_waiting:
            raise RefusedError(503, f"{self._num_waiting:,} texts are waiting already; try again in a moment")
        self._num_waiting += count
        try:
            if count <= self._max_batch_size:
                return await self._enqueue(signature, texts)
            found, begins = {}, iter(range(0, count, self._max_batch_size))

            async def take_turns():
                for begin in begins:
                    part = {name: column[begin : begin + self._max_batch_size] for name, column in texts.items()}
                    found[begin] = await self._enqueue(signature, part)

            await asyncio.gather(*(take_turns() for _ in range(self._num_at_once)))
            return [value for begin in sorted(found) for value in found[begin]]
        finally:
            self._num_waiting -= count

    def _enqueue(self, signature, texts):
        """Returns the future values of texts that fit into a batch."""
        part = _Part(signature, texts, asyncio.get_running_loop().create_future())
        self._queue.append(part)
        self._num_queued += part.count
        while self._num_running < self._num_at_once and self._is_worth_a_batch(self._num_running):
            self._num_running += 1
            task = asyncio.create_task(self._compute_all())
            self._tasks.add(task)  # the loop itself keeps no task alive
            task.add_done_callback(self._tasks.discard)
        return part.values

    def _is_worth_a_batch(self, num_others):
        """Returns whether so many texts are queued that a batch should begin beside the others that are computed."""
        return self._num_queued >= (min(_FEW, self._max_batch_size) if num_others else 1)

    async def _compute_all(self):
        """Computes until too little is queued, or of all batches at once the last one until nothing is."""
        try:
            while self._is_worth_a_batch(self._num_running - 1):
                await self._compute_next()
        finally:
            self._num_running -= 1

    async def _compute_next(self):
        batch = self._next_batch()
        if not batch:
            return
        texts = {name: [text for part in batch for text in part.texts[name]] for name in batch[0].texts}
        self._on_batch(_count(texts))
        loop = asyncio.get_running_loop()
        try:
            values = await loop.run_in_executor(self._thread, self._compute, batch[0].signature, texts)
        except Exception as error:
            for part in batch:
                if not part.values.cancelled():
                    part.values.set_exception(error)
            return
        begin = 0
        for part in batch:
            if not part.values.cancelled():
                part.values.set_result(values[begin : begin + part.count])
            begin += part.count

    def _next_batch(self):
        """Takes what is computed next: of one signature, in the order of coming, without requests that are given up."""
        batch, size = [], 0
        while self._queue:
            part = self._queue[0]
            if not part.values.cancelled():
                if batch and (part.signature != batch[0].signature or size + part.count > self._max_batch_size):
                    break
                batch.append(part)
                size += part.count
            self._queue.popleft()
            self._num_queued -= part.count
        return batch


def _count(texts):
    return len(next(iter(texts.values())))
