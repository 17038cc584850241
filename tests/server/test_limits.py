"""Requests that are too large or too slow never reach the application; all others reach it as they came."""

import asyncio
import json

import pytest

from albert_tf.server.limits import RequestLimits


class Recorder:
    """An application that keeps the bodies that it gets."""

    def __init__(self):
        self.bodies = []

    async def __call__(self, scope, receive, send):
        body, more = b"", scope["type"] == "http"
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        self.bodies.append(body)
        await send({"type": "http.response.start", "status": 200, "headers": []})


def request(chunks, headers=(), seconds_between=0.0, scope_type="http"):
    """Returns (status, error) of what limits of 10 bytes and 0.2 seconds answer, and the bodies that went through."""
    application, sent = Recorder(), []
    chunks = list(chunks)

    async def receive():
        await asyncio.sleep(seconds_between)
        return {"type": "http.request", "body": chunks.pop(0), "more_body": bool(chunks)}

    async def send(message):
        sent.append(message)

    scope = {"type": scope_type, "headers": list(headers)}
    asyncio.run(RequestLimits(application, 10, 0.2)(scope, receive, send))
    error = json.loads(sent[1]["body"])["error"] if len(sent) > 1 else None
    return sent[0]["status"], error, application.bodies


@pytest.mark.parametrize("chunks", [[b""], [b"1234567890"], [b"12345", b"", b"67890"]])
def test_small_requests_pass(chunks):
    assert request(chunks) == (200, None, [b"".join(chunks)])


@pytest.mark.parametrize(
    ("chunks", "headers"),
    [
        ([b"12345678901"], []),
        ([b"12345", b"67890", b"1", b"never read"], []),
        ([b"short"], [(b"content-length", b"11")]),
        ([b"12345678901"], [(b"content-length", b"-1")]),
    ],
)
def test_large_requests_are_refused(chunks, headers):
    code, error, bodies = request(chunks, headers)
    assert (code, error, bodies) == (413, "the request is larger than 10 bytes; send less at once", [])


def test_slow_requests_are_refused():
    code, error, bodies = request([b"1"] * 9, seconds_between=0.05)
    assert (code, error, bodies) == (408, "the request did not arrive within 0.2 seconds; send it again", [])


def test_what_is_no_request_passes():
    assert request([], scope_type="lifespan")[0] == 200
