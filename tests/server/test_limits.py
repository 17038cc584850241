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
    """Returns (status, error) of what limits of 10 bytes and 0.2 seconds answer, and the bodies that went through.

    The list of chunks is empty once all was read; then nothing comes any more.
    """
    application, sent, counted = Recorder(), [], []

    async def receive():
        await asyncio.sleep(seconds_between if chunks else 60)
        return {"type": "http.request", "body": chunks.pop(0), "more_body": bool(chunks)}

    async def send(message):
        sent.append(message)

    scope = {"type": scope_type, "headers": list(headers)}
    asyncio.run(RequestLimits(application, 10, 0.2, counted.append)(scope, receive, send))
    assert counted == [message["status"] for message in sent if "status" in message and scope_type == "http"]
    error = json.loads(sent[1]["body"])["error"] if len(sent) > 1 else None
    return sent[0]["status"], error, application.bodies


@pytest.mark.parametrize("chunks", [[b""], [b"1234567890"], [b"12345", b"", b"67890"]])
def test_small_requests_pass(chunks):
    assert request(list(chunks)) == (200, None, [b"".join(chunks)])


@pytest.mark.parametrize(
    ("chunks", "headers"),
    [
        ([b"12345678901"], []),
        ([b"12345", b"67890", b"1", b"thrown away", b"like this"], []),
        ([b"short"], [(b"content-length", b"11")]),
        ([b"12345678901"], [(b"content-length", b"-1")]),
    ],
)
def test_large_requests_are_refused_once_they_were_sent(chunks, headers):
    chunks = list(chunks)
    code, error, bodies = request(chunks, headers)
    assert (code, error, bodies) == (413, "the request is larger than 10 bytes; send less at once", [])
    assert not chunks


def test_client_that_asks_first_is_refused_before_it_sends():
    chunks = [b"12345678901"]
    code, _, bodies = request(chunks, [(b"content-length", b"11"), (b"expect", b"100-Continue")])
    assert (code, bodies, len(chunks)) == (413, [], 1)


def test_large_and_slow_requests_are_refused():
    code, _, bodies = request([b"12345678901"] * 9, seconds_between=0.05)
    assert (code, bodies) == (413, [])


def test_slow_requests_are_refused():
    code, error, bodies = request([b"1"] * 9, seconds_between=0.05)
    assert (code, error, bodies) == (408, "the request did not arrive within 0.2 seconds; send it again", [])


def test_what_is_no_request_passes():
    assert request([], scope_type="lifespan")[0] == 200
