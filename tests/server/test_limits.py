"""Whatever a stranger can make long has a limit, and a sentence for who goes beyond it."""

import asyncio
import contextlib
import json
import socket
import threading
import time

import pytest
from fake_server import PREDICT, checksum, read_all, read_answer, request, wait_for

from albert_tf.server import protocol

SMALL = {"instances": ["가"]}
CHUNKED = f"POST {PREDICT} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
LONG_HEAD = "the request has more than 100 headers, or 16,384 bytes before its body"


def parts(answer):
    """Returns status and sentence of an answer as it came over the wire."""
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"]


def is_well(server):
    return server.predict(SMALL).content == {"predictions": [checksum("가")]}


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (f"GET /{'a' * 16_400} HTTP/1.1\r\nhost: x", 431),
        (f"GET / HTTP/1.1\r\nhost: x\r\na: {'b' * 200_000}", 431),
        ("GET / HTTP/1.1\r\nhost: x" + "\r\na: b" * 100, 431),
        ("GET / HTTP/1.1\r\nhost: x" + "\r\na: b" * 99, 404),
        ("GET / HTTP/1.1\r\nhost: x\r\ncontent-length: " + "9" * 5000, 400),
        ("GET / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip", 400),
        ("GET / HTTP/1.1", 400),
        ("\x16\x03\x01", 400),
    ],
)
def test_heads_are_neither_long_nor_anything_but_http(start, head, status):
    server = start(request_timeout=0.5)
    found, sentence = parts(server.send(head.encode() + b"\r\n\r\n"))
    assert found == status
    assert {431: LONG_HEAD, 400: "this is not an HTTP/1.1 request"}.get(status, sentence) == sentence
    assert is_well(server)


def test_head_without_an_end_is_refused_while_it_comes(start):
    server = start()
    with server.connect() as endless:
        endless.sendall(b"GET / HTTP/1.1\r\nhost: x\r\na: ")
        sent, answer = 0, b""
        endless.setblocking(False)
        while not answer and sent < 100 << 20:
            try:
                sent += endless.send(b"b" * 10_000)
                time.sleep(0.001)
            except BlockingIOError:
                pass
            except ConnectionError:
                break
            with contextlib.suppress(BlockingIOError):
                answer = endless.recv(65536)
    assert sent < 10 << 20
    assert not answer or parts(answer) == (431, LONG_HEAD)
    assert is_well(server)


@pytest.mark.parametrize(
    "content",
    [
        request(b" " * 1001),
        request(b" " * (20 << 20)),
        f"POST {PREDICT} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3e9\r\n".encode()
        + b" " * 1001
        + b"\r\n",
        f"POST {PREDICT} HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 1001\r\n\r\n".encode(),
    ],
)
def test_large_bodies_are_refused_and_the_answer_is_there_to_read(start, content):
    server = start(max_request_bytes=1000, request_timeout=0.5)
    assert parts(server.send(content)) == (413, "the request is larger than 1,000 bytes; send less at once")
    assert server.predict(b'{"instances": ["a"]' + b" " * 980 + b"}").status == 200
    assert is_well(server)


def test_connection_goes_on_after_a_large_body(start):
    server = start(max_request_bytes=1000)
    answers = server.send(request(b" " * 100_000) + request(b"{}", "connection: close"))
    assert answers.count(b"HTTP/1.1 413 ") == answers.count(b"HTTP/1.1 400 ") == 1


def test_slow_clients_are_sent_away_and_hold_up_nobody(start):
    server = start(request_timeout=0.5)
    slow = {
        "nothing": b"",
        "part of a head": b"POST /v1/models",
        "part of a body": request(b"{}")[:-1],
        "nothing more": request(json.dumps(SMALL).encode()),
        "part of a second": request(json.dumps(SMALL).encode()) + b"GET",
    }
    connections = {name: server.connect() for name in slow}
    for name, connection in connections.items():
        connection.sendall(slow[name])
    assert is_well(server)
    answers = {name: read_all(connection) for name, connection in connections.items()}
    assert answers["nothing"] == answers["part of a head"] == b""
    assert parts(answers["part of a body"]) == (408, "the request did not arrive within 0.5 seconds; send it again")
    for name in ("nothing more", "part of a second"):
        assert answers[name].count(b"HTTP/1.1 ") == 1 and answers[name].startswith(b"HTTP/1.1 200 ")
    for connection in connections.values():
        connection.close()


def test_client_that_drips_is_late_too(start):
    server = start(request_timeout=0.5)
    with server.connect() as dripping, pytest.raises(ConnectionError):
        for byte in request(b"{}", *(f"a{number}: b" for number in range(90))):
            dripping.sendall(bytes([byte]))
            time.sleep(0.05)
    assert server.predict(SMALL).status == 200
    assert server.application.answers == {200: 1}


def test_slow_model_makes_no_client_late(start):
    server = start(request_timeout=0.3)
    server.model.may_answer.clear()
    with server.connect() as patient:
        patient.sendall(request(json.dumps(SMALL).encode()))
        time.sleep(1)
        server.model.may_answer.set()
        assert read_answer(patient).startswith(b"HTTP/1.1 200 ")


def test_answers_that_nobody_reads_are_given_up(start):
    server = start(request_timeout=0.5)
    with socket.socket() as silent:
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        silent.connect(("127.0.0.1", server.port))
        silent.sendall(request(json.dumps({"instances": ["a"] * 30, "signature_name": "long"}).encode()))
        wait_for(lambda: server.application._held_bytes > 1 << 20)
        wait_for(lambda: server.application._held_bytes == 0)
    assert is_well(server)
    assert server.stop() == (1, 1)


def test_too_many_connections_are_told_or_closed(start):
    server = start(max_connections=3)
    idle = [server.connect() for _ in range(3)]
    wait_for(lambda: len(server.server.server_state.connections) == 3)
    assert server.predict(SMALL).content == {"error": "too many connections are open; try again in a moment"}
    told = [server.connect() for _ in range(64)]
    wait_for(lambda: len(server.server.server_state.connections) == 67)
    with server.connect() as further, pytest.raises(ConnectionError):
        further.sendall(request(b"{}"))
        if not further.recv(1):
            raise ConnectionError
    for connection in idle + told:
        connection.close()
    wait_for(lambda: not server.server.server_state.connections)
    assert is_well(server)


def test_bodies_on_all_connections_together_have_a_limit_and_small_ones_pass(start):
    server = start(max_request_bytes=1 << 20, max_held_bytes=1 << 20)
    large = request(b" " * (1 << 20))
    with server.connect() as holding:
        holding.sendall(large[:-1])
        wait_for(lambda: server.application._held_bytes > 900_000)
        busy = server.predict(b" " * 500_000)
        sentence = "the server holds too much for other requests; try again, or send less at once"
        assert (busy.status, busy.content) == (503, {"error": sentence})
        assert is_well(server)
    wait_for(lambda: not server.application._held_bytes)
    assert server.predict(b" " * 500_000).status == 400


@pytest.fixture
def parsing(monkeypatch):
    """Keeps large requests from being parsed until an event; yields it, and a list of those that began."""
    may_go_on, begun, parse = threading.Event(), [], protocol.parse_request

    def parse_slowly(body, *limits):
        if len(body) > 1 << 20:
            begun.append(len(body))
            may_go_on.wait(30)
        return parse(body, *limits)

    monkeypatch.setattr(protocol, "parse_request", parse_slowly)
    yield may_go_on, begun
    may_go_on.set()


LARGE = b'{"instances": ["a"]' + b" " * (1 << 20) + b"}"


def test_nobody_waits_for_the_parsing_of_a_large_request(start, parsing):
    server, (may_go_on, begun) = start(), parsing
    with server.connect() as large, server.connect() as other:
        large.sendall(request(LARGE))
        wait_for(lambda: begun)
        assert is_well(server)
        other.sendall(request(LARGE))
        wait_for(lambda: server.application._held_bytes > 1_900_000)
        assert len(begun) == 1 and not may_go_on.is_set()
        may_go_on.set()
        for connection in (large, other):
            assert read_answer(connection).endswith(b'{"predictions":[%d]}' % checksum("a"))


def test_request_is_held_until_it_is_parsed_even_if_its_client_leaves(start, parsing):
    server, (may_go_on, begun) = start(max_held_bytes=4 << 20), parsing
    for number in (1, 2):
        with server.connect() as leaving:
            leaving.sendall(request(LARGE))
            wait_for(lambda number=number: server.application.num_requests == number)
            wait_for(lambda: server.application._held_bytes > 900_000)
            wait_for(lambda: begun)
    wait_for(lambda: not server.server.server_state.connections)
    assert len(begun) == 1 and 900_000 < server.application._held_bytes < 1_900_000
    may_go_on.set()
    wait_for(lambda: not server.application._held_bytes)
    assert len(begun) == 1 and is_well(server)


def test_request_whose_client_leaves_before_it_begins_is_not_read(start):
    application = start().application
    asyncio.run(application({"type": "http", "has_left": True}, receive=None, send=None))
    assert (application.num_requests, sum(application.answers.values())) == (1, 0)


def test_answers_are_held_too(start):
    server = start(max_held_bytes=1 << 20, max_request_bytes=1 << 20)
    assert server.predict({"instances": ["a"] * 30, "signature_name": "long"}).status == 503
    assert server.predict({"instances": ["a"], "signature_name": "long"}).status == 200
    wait_for(lambda: server.application._held_bytes == 0)


def test_too_many_texts_and_those_that_wait_are_refused(start):
    server = start(max_texts=4, max_waiting=6, max_characters=5)
    assert server.predict({"instances": ["a"] * 5}).content == {
        "error": "the request holds 5 texts; send 1 to 4 at once"
    }
    error = "text 1 has 6 characters, but at most 5 are accepted"
    assert server.predict({"instances": ["가나다라마", "가나다라마바"]}).content == {"error": error}
    server.model.may_answer.clear()
    with server.connect() as waiting:
        waiting.sendall(request(json.dumps({"instances": ["a"] * 4}).encode()))
        wait_for(lambda: server.application._batcher._num_waiting == 4)
        busy = server.predict({"instances": ["b"] * 3})
        assert (busy.status, busy.content) == (503, {"error": "4 texts are waiting already; try again in a moment"})
        server.model.may_answer.set()
        assert read_answer(waiting).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("num_requests", [1, 3])
def test_client_that_leaves_is_not_computed(start, num_requests):
    server = start(max_batch_size=1)
    server.model.may_answer.clear()
    with server.connect() as first, server.connect() as second:
        first.sendall(request(json.dumps(SMALL).encode()))
        wait_for(lambda: server.application._batcher._num_running)
        for _ in range(3):
            with server.connect() as leaving:
                asked = request(json.dumps({"instances": ["gone"] * 9}).encode())
                leaving.sendall(asked)
                wait_for(lambda: server.application._batcher._num_waiting > 5)
                if num_requests > 1:
                    leaving.sendall(asked * (num_requests - 1))
                    wait_for(lambda: any(each.flow.read_paused for each in server.server.server_state.connections))
        wait_for(lambda: server.application._batcher._num_waiting == 1)
        server.model.may_answer.set()
        assert read_answer(first).startswith(b"HTTP/1.1 200 ")
        second.sendall(request(json.dumps(SMALL).encode()))
        assert read_answer(second).startswith(b"HTTP/1.1 200 ")
    assert server.application.answers == {200: 2}


@pytest.mark.parametrize("before", [b"", request(b"{}")])
def test_bad_chunks_are_refused_without_a_trace(start, before):
    server = start(max_request_bytes=1000)
    head = CHUNKED.encode()
    for chunks, status in (
        (b"zz\r\n", 400),
        (b"1\r\n{zz", 400),
        (b"f" * 20_000, 431),
        (b"1;" + b"a" * 20_000, 431),
        (b"0\r\n" + b"a: b\r\n" * 20_000, 431),
    ):
        answers = server.send(before + head + chunks)
        assert f"HTTP/1.1 {status} ".encode() in answers
    with server.connect() as refused:
        refused.sendall(before + head + b"3e9\r\n" + b" " * 1001)
        wait_for(lambda: server.application.answers[413])
        refused.sendall(b"zz\r\n\r\n")
        answers = read_all(refused)
    assert answers.count(b"HTTP/1.1 ") == 1 + bool(before) and b"HTTP/1.1 413 " in answers
    assert is_well(server)


def test_upgrades_are_not_taken_and_pipelined_requests_are_answered_in_order(start):
    server = start(request_timeout=0.5)
    upgrade = request(json.dumps(SMALL).encode(), "connection: upgrade", "upgrade: websocket")
    assert server.send(upgrade).startswith(b"HTTP/1.1 200 ")
    texts = [f"글 {number}" for number in range(50)]
    answers = server.send(b"".join(request(json.dumps({"instances": [text]}).encode()) for text in texts))
    assert [int(part.split(b"]}")[0]) for part in answers.split(b'{"predictions":[')[1:]] == [*map(checksum, texts)]
