"""Predictions are answered on the short way; whatever asks for something else reaches KServe."""

import asyncio
import json

import pytest

pytest.importorskip("orjson", reason="needs kserve: pip install 'albert_tf[serve]'")

from albert_tf.server.batching import BusyError
from albert_tf.server.predictions import Predictions
from albert_tf.server.protocol import BadRequestError

PATH = "/v1/models/films:predict"


def request(answer, path=PATH, method="POST", headers=(), chunks=(b"a", b"b")):
    """Returns status and JSON of an answer; (None, None) of a request that is handed on."""
    chunks, sent = list(chunks), []

    async def receive():
        return {"type": "http.request", "body": chunks.pop(0), "more_body": bool(chunks)}

    async def send(message):
        sent.append(message)

    async def other(scope, receive, send):
        pass

    scope = {"type": "http", "path": path, "method": method, "headers": list(headers)}
    asyncio.run(Predictions(other, [PATH, "/v1/models/films/versions/1:predict"], answer)(scope, receive, send))
    if not sent:
        return None, None
    assert dict(sent[0]["headers"])[b"content-length"] == str(len(sent[1]["body"])).encode()
    return sent[0]["status"], json.loads(sent[1]["body"])


async def echo(body):
    return {"predictions": [body.decode()]}


@pytest.mark.parametrize("headers", [[], [(b"content-type", b"application/json")], [(b"content-type", b"text/plain")]])
def test_predictions_are_answered(headers):
    assert request(echo, headers=headers) == (200, {"predictions": ["ab"]})


@pytest.mark.parametrize(("error", "status"), [(BadRequestError, 400), (BusyError, 503)])
def test_what_can_not_be_answered_is_said(error, status):
    async def fail(_):
        raise error("좋지 않다")

    assert request(fail) == (status, {"error": "좋지 않다"})


def test_version_may_be_named():
    assert request(echo, path="/v1/models/films/versions/1:predict") == (200, {"predictions": ["ab"]})


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_browser_is_told_to_post(method):
    assert request(echo, method=method) == (405, {"error": f"predictions are asked for by POST {PATH}"})


@pytest.mark.parametrize(
    "other",
    [
        {"path": "/v1/models/others:predict"},
        {"headers": [(b"ce-specversion", b"1.0")]},
        {"headers": [(b"content-type", b"application/cloudevents+json")]},
    ],
)
def test_all_else_is_handed_on(other):
    assert request(echo, **other) == (None, None)
