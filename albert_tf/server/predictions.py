"""The short way from a request to the model: most of what a server does is to answer one short text after the other."""

import collections.abc
import typing

import orjson

from albert_tf.server.batching import BusyError
from albert_tf.server.limits import Application, Message, Receive, Send
from albert_tf.server.protocol import BadRequestError

# Given a request's body, returns the answer as JSON values.
Answer = collections.abc.Callable[[bytes], collections.abc.Awaitable[dict[str, typing.Any]]]


class Predictions:
    """An ASGI application in front of another, which answers some paths itself and hands on all other requests.

    KServe's handlers, FastAPI's routes and what they hand over between them would take longer than a small model
    computes. CloudEvents are left to them.

    Args:
        application: The other.
        paths: Where predictions are asked for; 405 where they are not asked for by POST.
        answer: What answers them; BadRequestError is sent as 400, BusyError as 503.
    """

    def __init__(self, application: Application, paths: collections.abc.Iterable[str], answer: Answer):
        self._application, self._paths, self._answer = application, frozenset(paths), answer

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answers a request; see ASGI."""
        if scope["type"] != "http" or scope["path"] not in self._paths or _is_event(scope):
            await self._application(scope, receive, send)
            return
        if scope["method"] != "POST":
            await _send(send, 405, {"error": f"predictions are asked for by POST {scope['path']}"}, (b"allow", b"POST"))
            return
        try:
            status, values = 200, await self._answer(await _body(receive))
        except BadRequestError as error:
            status, values = 400, {"error": str(error)}
        except BusyError as error:
            status, values = 503, {"error": str(error)}
        await _send(send, status, values)


def _is_event(scope):
    """Returns whether a request says that it is a CloudEvent: https://cloudevents.io."""
    return any(
        name.startswith(b"ce-") or (name == b"content-type" and b"cloudevents" in value)
        for name, value in scope["headers"]
    )


async def _body(receive):
    parts, has_more = [], True
    while has_more:
        message = await receive()
        parts.append(message.get("body", b""))
        has_more = message.get("more_body", False)
    return b"".join(parts)


async def _send(send, status, values, *headers):
    body = orjson.dumps(values)
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *headers]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
