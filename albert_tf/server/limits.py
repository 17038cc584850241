"""What keeps one client from harming others: limits to the size of requests, and to how long they take to arrive."""

import asyncio
import collections.abc
import json
import typing

# Of the ASGI specification, which servers and applications in Python share.
Message = dict[str, typing.Any]
Receive = collections.abc.Callable[[], collections.abc.Awaitable[Message]]
Send = collections.abc.Callable[[Message], collections.abc.Awaitable[None]]
Application = collections.abc.Callable[[Message, Receive, Send], collections.abc.Awaitable[None]]


class _RefusedError(Exception):
    """A request that is not read to its end: the HTTP status, and a sentence."""


class RequestLimits:
    """An ASGI application in front of another, which gets requests only once they are there as a whole.

    Args:
        application: The other.
        max_bytes: Largest request; a larger one is answered 413.
        timeout_seconds: How long it may take to arrive; a slower one is answered 408.
    """

    def __init__(self, application: Application, max_bytes: int, timeout_seconds: float):
        self._application, self._max_bytes, self._timeout = application, max_bytes, timeout_seconds

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answers a request; see ASGI."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        try:
            messages = await asyncio.wait_for(self._read(scope, receive), self._timeout)
        except asyncio.TimeoutError:
            await _refuse(send, 408, f"the request did not arrive within {self._timeout:g} seconds; send it again")
        except _RefusedError as error:
            await _refuse(send, *error.args)
        else:
            await self._application(scope, _replay(messages, receive), send)

    async def _read(self, scope, receive):
        """Returns all messages of a request's body."""
        sizes = [value for name, value in scope["headers"] if name == b"content-length"]
        if sizes and sizes[0].isdigit():
            self._check(int(sizes[0]))
        messages, num_bytes = [], 0
        while True:
            message = await receive()
            messages.append(message)
            num_bytes += len(message.get("body", b""))
            self._check(num_bytes)
            if not message.get("more_body", False):
                return messages

    def _check(self, num_bytes):
        if num_bytes > self._max_bytes:
            raise _RefusedError(413, f"the request is larger than {self._max_bytes:,} bytes; send less at once")


def _replay(messages, receive):
    messages = iter(messages)

    async def receive_again():
        return next(messages, None) or await receive()

    return receive_again


async def _refuse(send, status, sentence):
    body = json.dumps({"error": sentence}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),  # the rest of the request is not read
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
