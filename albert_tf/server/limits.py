"""What keeps one client from harming others: limits to the size of requests, and to how long they take to arrive."""

import asyncio
import collections.abc
import contextlib
import json
import typing

# Of the ASGI specification, which servers and applications in Python share.
Message = dict[str, typing.Any]
Receive = collections.abc.Callable[[], collections.abc.Awaitable[Message]]
Send = collections.abc.Callable[[Message], collections.abc.Awaitable[None]]
Application = collections.abc.Callable[[Message, Receive, Send], collections.abc.Awaitable[None]]


class _RefusedError(Exception):
    """A request that is not read to its end: whether some of it is still to come, the HTTP status, and a sentence."""


class RequestLimits:
    """An ASGI application in front of another, which gets requests only once they are there as a whole.

    Args:
        application: The other.
        max_bytes: Largest request; a larger one is answered 413.
        timeout_seconds: How long it may take to arrive; a slower one is answered 408.
        on_status: Told the HTTP status of each answer.
    """

    def __init__(
        self,
        application: Application,
        max_bytes: int,
        timeout_seconds: float,
        on_status: collections.abc.Callable[[int], None] = lambda status: None,
    ):
        self._application, self._max_bytes, self._timeout = application, max_bytes, timeout_seconds
        self._on_status = on_status

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answers a request; see ASGI."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return

        async def send_counted(message):
            if message["type"] == "http.response.start":
                self._on_status(message["status"])
            await send(message)

        headers = dict(scope["headers"])
        try:
            messages = await self._read_in_time(headers, receive)
        except _RefusedError as error:
            has_more, code, sentence = error.args
            if has_more and headers.get(b"expect", b"").lower() != b"100-continue":
                # Most clients read no answer, and say that the connection was reset, before they have sent all.
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(_throw_away(receive), self._timeout)
            await _refuse(send_counted, code, sentence)
        else:
            await self._application(scope, _replay(messages, receive), send_counted)

    async def _read_in_time(self, headers, receive):
        try:
            return await asyncio.wait_for(self._read(headers, receive), self._timeout)
        except asyncio.TimeoutError as error:
            raise _RefusedError(
                False, 408, f"the request did not arrive within {self._timeout:g} seconds; send it again"
            ) from error

    async def _read(self, headers, receive):
        """Returns all messages of a request's body."""
        size = headers.get(b"content-length", b"")
        is_too_large = size.isdigit() and int(size) > self._max_bytes
        messages, num_bytes, has_more = [], 0, True
        while has_more and not is_too_large:
            message = await receive()
            messages.append(message)
            num_bytes += len(message.get("body", b""))
            has_more = message.get("more_body", False)
            is_too_large = num_bytes > self._max_bytes
        if is_too_large:
            raise _RefusedError(
                has_more, 413, f"the request is larger than {self._max_bytes:,} bytes; send less at once"
            )
        return messages


async def _throw_away(receive):
    """Reads what is left of a request's body."""
    while (await receive()).get("more_body", False):
        pass


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
