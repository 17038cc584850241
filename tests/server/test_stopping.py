"""A server that is told to stop: nothing that was sent is lost, and what is said about it is what clients saw."""

import asyncio
import json
import threading
import time

import pytest
from fake_server import checksum, read_answer, request, wait_for

STOPPED = b'{"error": "the server has stopped; ask another one"}'


class Clients:
    """Many clients at once, in a thread: some over one connection each, some over a new one for each request.

    Attributes:
        num_answered: The requests whose answer was the right one.
        lost: What happened to all others.
    """

    def __init__(self, port, num_clients):
        self._port, self._num_clients = port, num_clients
        self.num_answered, self.lost = 0, []
        self.thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self.thread.start()

    async def _run(self):
        await asyncio.gather(*(self._ask(number, number % 3 == 0) for number in range(self._num_clients)))

    async def _ask(self, number, is_new_each_time):
        """Asks until no connection is accepted any more."""
        asked, connection = 0, None
        while True:
            try:
                connection = connection or await asyncio.open_connection("127.0.0.1", self._port)
            except ConnectionRefusedError:
                return
            except OSError as error:
                self.lost.append((number, asked, error))
                return
            asked += 1
            text = f"{number} {asked}"
            try:
                head, answer = await self._exchange(connection, request(json.dumps({"instances": [text]}).encode()))
            except (OSError, EOFError) as error:
                self.lost.append((number, asked, error))
                return
            if answer != {"predictions": [checksum(text)]}:
                self.lost.append((number, asked, answer))
            self.num_answered += 1
            if is_new_each_time or b"connection: close" in head.lower():
                connection[1].close()
                connection = None

    async def _exchange(self, connection, content):
        reader, writer = connection
        writer.write(content)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return head, json.loads(await reader.readexactly(length))


def test_stopped_under_load_all_is_answered_and_counted(start):
    server = start()
    clients = Clients(server.port, 100)
    wait_for(lambda: clients.num_answered > 300)
    before = clients.num_answered
    found = server.stop()
    clients.thread.join(60)
    assert clients.lost == []
    assert found == (clients.num_answered, 0)
    assert before <= server.server.answered_at_signal <= clients.num_answered


def test_all_that_waits_to_be_accepted_is(start):
    server = start()
    ready, go_on = threading.Event(), threading.Event()

    async def hold_up():
        ready.set()
        go_on.wait(30)

    # While the loop is held up, the system accepts connections for it.
    wait_for(lambda: server.server.started)
    asyncio.run_coroutine_threadsafe(hold_up(), server.server.servers[0].get_loop())
    ready.wait(30)
    clients = [server.connect() for _ in range(100)]
    for client in clients:
        client.sendall(request(b'{"instances": ["a"]}'))
    server.server.should_exit = True
    go_on.set()
    for client in clients:
        assert read_answer(client).startswith(b"HTTP/1.1 200 ")
        client.close()
    assert server.stop() == (100, 0)
    with pytest.raises(ConnectionRefusedError):
        server.connect()


def test_idle_clients_may_ask_once_more_and_hold_up_nothing(start):
    server = start()
    with server.connect() as asking, server.connect() as idle, server.connect() as partly:
        for client in (asking, idle, partly):
            client.sendall(request(b'{"instances": ["a"]}'))
            assert b"connection: close" not in read_answer(client)
        partly.sendall(b"POST")
        server.server.should_exit = True
        wait_for(lambda: server.application.is_stopping)
        time.sleep(0.5)
        asking.sendall(request(b'{"instances": ["a"]}'))
        assert b"connection: close" in read_answer(asking)
        assert idle.recv(1) == partly.recv(1) == b""
        assert server.stop() == (4, 0)


@pytest.mark.parametrize("grace_period", [0, 1])
def test_what_is_not_answered_in_time_is_told_so_and_counted(start, grace_period):
    server = start(grace_period=grace_period)
    server.predict({"instances": ["a"]})
    server.model.may_answer.clear()
    with server.connect() as waiting, server.connect() as sending:
        waiting.sendall(request(b'{"instances": ["a"]}'))
        sending.sendall(request(b" " * 99)[:-1])
        wait_for(lambda: server.application.num_requests == 3)
        assert server.stop() == (1, 2)
        for client in (waiting, sending):
            assert read_answer(client).endswith(STOPPED)


def test_answer_that_is_not_read_in_time_is_counted_as_none(start):
    server = start(grace_period=1)
    with server.connect() as silent:
        body = json.dumps({"instances": ["a"] * 30, "signature_name": "long"}).encode()
        silent.sendall(request(body))
        wait_for(lambda: server.application.answers[200])
        assert server.stop() == (0, 1)
