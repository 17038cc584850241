"""Texts of several requests computed together, so that many clients cost little more than one."""

import asyncio
import collections
import collections.abc
import concurrent.futures
import dataclasses
import itertools
import typing

# Of the request line and the headers together.
MAX_HEAD_BYTES = 16_384
MAX_HEADERS = 100


class RefusedError(Exception):
    """A request that gets no answer but an HTTP status and a sentence that says why."""

    def __init__(self, status: int, sentence: str):
        super().__init__(sentence)
        self.status = status


def too_long_head() -> RefusedError:
    """Returns the error of a request that says too much before its body."""
    return RefusedError(
        431, f"the request has more than {MAX_HEADERS} headers, or {MAX_HEAD_BYTES:,} bytes before its body"
    )


@dataclasses.dataclass(frozen=True)
class ServerOptions:
    """How a server runs, as the help of `albert-tf serve` says.

    The limits are about requests that a stranger can make long. Those without an option stand where they are checked.
    """

    host: str = "127.0.0.1"
    port: int = 8501
    max_batch_size: int = 32
    max_texts: int = 1024
    max_characters: int = 10_000
    max_waiting: int = 4096
    max_request_bytes: int = 4 << 20
    max_held_bytes: int = 128 << 20
    max_connections: int = 512
    request_timeout: float = 30
    grace_period: int = 30


# Given a signature and a row of texts for each value, returns the values; runs in a thread.
Compute = collections.abc.Callable[[str, list[tuple[bytes, ...]]], list[typing.Any]]

# With fewer rows a batch beside another one costs more than it saves.
_FEW = 8


class _Part(typing.NamedTuple):
    """Rows of a request that fit into a batch, and where their values go."""

    signature: str
    rows: list[tuple[bytes, ...]]
    values: asyncio.Future


class Batcher:
    """Computes one batch after the other: all rows that came while those before were computed, as far as they fit.

    So a lone request never waits for others, and the more wait, the larger the batches become. A request that fills
    several batches queues again for each, so that small ones pass it. While a batch is computed, another one begins
    only if it is of a few rows, for a batch of one costs almost as much as they.

    A row that alone has more than `max_batch_bytes` of texts is a batch. At most `max_waiting` rows are not answered
    yet; `num_at_once` batches are computed in as many threads, and `on_batch` is told the size of each.
    """

    def __init__(
        self,
        compute: Compute,
        max_batch_size: int,
        max_batch_bytes: int,
        max_waiting: int,
        on_batch: collections.abc.Callable[[int], None] = lambda size: None,
        num_at_once: int = 1,
    ):
        self._compute, self._max_batch_size, self._max_batch_bytes = compute, max_batch_size, max_batch_bytes
        self._max_waiting, self._on_batch, self._num_at_once = max_waiting, on_batch, num_at_once
        self._threads = concurrent.futures.ThreadPoolExecutor(num_at_once, "compute")
        self._queue, self._num_queued, self._num_waiting = collections.deque(), 0, 0
        self._tasks, self._num_running = set(), 0

    async def ask(
        self,
        signature: str,
        rows: list[tuple[bytes, ...]],
        on_values: collections.abc.Callable[[list[typing.Any]], None] = lambda values: None,
    ) -> list[typing.Any]:
        """Returns a value for each row; raises RefusedError if too many wait already.

        `on_values` is told values once they are there; what it raises ends the request.
        """
        if self._num_waiting and self._num_waiting + len(rows) > self._max_waiting:
            raise RefusedError(503, f"{self._num_waiting:,} texts are waiting already; try again in a moment")
        self._num_waiting += len(rows)
        found, futures = [], collections.deque()
        try:
            parts = self._split(rows)
            while len(found) < len(rows):
                futures += (
                    self._enqueue(signature, part) for part in itertools.islice(parts, self._num_at_once - len(futures))
                )
                values = await futures.popleft()
                on_values(values)
                found += values
        finally:
            self._num_waiting -= len(rows)
            for future in futures:
                future.cancel()
        return found

    def _split(self, rows):
        """Returns lists of rows that fit into a batch each."""
        part = []
        for row in rows:
            if part and not self._fits([*part, row]):
                yield part
                part = []
            part.append(row)
        yield part

    def _enqueue(self, signature, rows):
        """Returns the future values of rows that fit into a batch."""
        part = _Part(signature, rows, asyncio.get_running_loop().create_future())
        self._queue.append(part)
        self._num_queued += len(rows)
        while self._num_running < self._num_at_once and self._is_worth_a_batch(self._num_running):
            self._num_running += 1
            task = asyncio.create_task(self._compute_all())
            self._tasks.add(task)  # the loop itself keeps no task alive
            task.add_done_callback(self._tasks.discard)
        return part.values

    def _is_worth_a_batch(self, num_others):
        """Returns whether so much is queued that a batch should begin beside the others that are computed."""
        return self._num_queued >= (min(_FEW, self._max_batch_size) if num_others else 1)

    async def _compute_all(self):
        """Computes until too little is queued, or of all batches at once the last one until nothing is."""
        while self._is_worth_a_batch(self._num_running - 1):
            batch, rows = self._next_batch()
            if batch:
                await self._compute_batch(batch, rows)
        self._num_running -= 1

    async def _compute_batch(self, batch, rows):
        self._on_batch(len(rows))
        loop = asyncio.get_running_loop()
        try:
            values = iter(await loop.run_in_executor(self._threads, self._compute, batch[0].signature, rows))
        except Exception as error:
            for part in batch:
                if not part.values.cancelled():
                    part.values.set_exception(error)
            return
        for part in batch:
            mine = list(itertools.islice(values, len(part.rows)))
            if not part.values.cancelled():
                part.values.set_result(mine)

    def _next_batch(self):
        """Takes what is computed next: of one signature, in the order of coming, without requests that are given up."""
        batch, rows = [], []
        while self._queue:
            part = self._queue[0]
            if not part.values.cancelled():
                if batch and not (part.signature == batch[0].signature and self._fits(rows + part.rows)):
                    break
                batch.append(part)
                rows += part.rows
            self._queue.popleft()
            self._num_queued -= len(part.rows)
        return batch, rows

    def _fits(self, rows):
        num_bytes = sum(len(text) for row in rows for text in row)
        return len(rows) <= self._max_batch_size and num_bytes <= self._max_batch_bytes
