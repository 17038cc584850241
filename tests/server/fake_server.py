"""A server of a model that computes nothing, in a thread, asked over real sockets."""

import contextlib
import http.client
import json
import socket
import threading
import time
import types
import zlib

import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs uvicorn and starlette: pip install 'albert_tf[serve]'")
pytest.importorskip("prometheus_client", reason="needs prometheus_client: pip install 'albert_tf[serve]'")
pytest.importorskip("uvicorn", reason="needs uvicorn and starlette: pip install 'albert_tf[serve]'")

from albert_tf.server.application import Application
from albert_tf.server.batching import ServerOptions
from albert_tf.server.server import Server, listen

PREDICT = "/v1/models/films:predict"


def checksum(text):
    return zlib.crc32(text if isinstance(text, bytes) else text.encode())


def outputs(**shapes):
    return {name: ["float32", [None, *shape]] for name, shape in shapes.items()}


class FakeModel:
    """Answers each text with its checksum, once it may."""

    def __init__(self):
        self.version, self.card = 3, {"config": {"hidden_size": 64}, "task": "none"}
        self.signatures = {
            "serving_default": {"inputs": ["text"], "outputs": outputs(checksum=[])},
            "pairs": {"inputs": ["text", "text_pair"], "outputs": outputs(checksum=[], one=[])},
            "long": {"inputs": ["text"], "outputs": outputs(values=[100_000])},
            "broken": {"inputs": ["text"], "outputs": outputs(value=[])},
        }
        self.may_answer = threading.Event()
        self.may_answer.set()

    def compute(self, signature, inputs):
        self.may_answer.wait(60)
        if signature == "long":
            return {"values": np.zeros([len(inputs["text"]), 100_000], np.float32)}
        if signature == "broken":
            return {"value": np.full([len(inputs["text"])], np.nan)}
        checksums = np.array([checksum(b"\t".join(texts)) for texts in zip(*inputs.values())])
        return {"checksum": checksums} | ({"one": np.ones_like(checksums)} if len(inputs) > 1 else {})


class Running:
    def __init__(self, model=None, **options):
        self.model = model or FakeModel()
        options = ServerOptions(port=0, **options)
        listener = listen(options)
        self.port = listener.getsockname()[1]
        self.application = Application(self.model, "films", options)
        self.server = Server(self.application)
        self._thread = threading.Thread(target=self.server.run, args=([listener],))
        self._thread.start()

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def send(self, content):
        """Returns the bytes that come back until the connection is closed."""
        with self.connect() as connection:
            connection.settimeout(5)
            with contextlib.suppress(ConnectionError):
                connection.sendall(content)
            return read_all(connection)

    def ask(self, path, body=None, method=None, headers=None):
        """Returns status, headers and body of an answer, JSON where it is."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method or ("GET" if body is None else "POST"), path, body, headers or {})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        if answer.headers["content-type"] == "application/json" and content:
            content = json.loads(content)
        return types.SimpleNamespace(status=answer.status, headers=answer.headers, content=content)

    def predict(self, body, **others):
        return self.ask(PREDICT, body if isinstance(body, bytes) else json.dumps(body).encode(), **others)

    def stop(self):
        """Returns how many requests were answered, and how many were not."""
        self.server.should_exit = True
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self.server.num_answered, self.application.num_requests - self.server.num_answered


def wait_for(condition):
    """Waits until something holds, for some seconds at most."""
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it doesn't come to hold")


def request(body, *headers):
    """Returns a prediction's request as it goes over the wire."""
    head = [f"POST {PREDICT} HTTP/1.1", "host: x", f"content-length: {len(body)}", *headers]
    return "\r\n".join([*head, "", ""]).encode() + body


def read_answer(connection):
    """Returns an answer as it comes over the wire, and leaves what comes after it."""
    answer = b""
    while b"\r\n\r\n" not in answer or len(answer.partition(b"\r\n\r\n")[2]) < _length(answer):
        answer += connection.recv(1)
    return answer


def read_all(connection):
    """Returns what comes until the connection is closed."""
    answer = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65536):
            answer += piece
    return answer


def _length(answer):
    return int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
