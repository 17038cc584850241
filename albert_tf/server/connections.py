"""uvicorn's connections: none is kept for a client that says nothing, and none is closed before it was read."""

import asyncio
import functools

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

_READS_BEFORE_END = 10


class ReadingServer(uvicorn.Server):
    """Reads what has arrived before it closes connections: its loop may be behind while models compute.

    What no read has seen yet would be lost, for uvicorn closes connections that it takes for idle. Who is answered
    meanwhile is told that the connection ends, for else the next request would come when it is closed.

    Args:
        config: uvicorn's.
        timeout_seconds: How long a client may take to say what it wants, up to the end of a request's headers.
    """

    def __init__(self, config: uvicorn.Config, timeout_seconds: float):
        config.http = functools.partial(_TimelyProtocol, timeout_seconds)
        super().__init__(config)

    async def shutdown(self, sockets=None):
        """Lets the loop look at all its sockets some times, to accept and to read, and then to read alone; stops."""
        self.server_state.default_headers.append((b"connection", b"close"))
        await _read()
        for server in self.servers:
            server.close()
        await _read()
        await super().shutdown(sockets)


async def _read():
    """Lets the loop look at all its sockets some times."""
    for _ in range(_READS_BEFORE_END):
        await asyncio.sleep(0.05)


class _TimelyProtocol(AutoHTTPProtocol):
    """Closes a connection whose client sends nothing, or only a part of a request's headers.

    uvicorn waits for them for ever, so that some thousand silent clients would take all connections that the system
    lets a process have.
    """

    def __init__(self, timeout_seconds, **options):
        super().__init__(**options)
        self._timeout_seconds, self._timer = timeout_seconds, None

    def connection_made(self, transport):
        super().connection_made(transport)
        self._watch()

    def data_received(self, data):
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc):
        self._stop()
        super().connection_lost(exc)

    def _watch(self):
        if not self._waits_for_headers():
            self._stop()
        elif self._timer is None:
            self._timer = self.loop.call_later(self._timeout_seconds, self._end)

    def _waits_for_headers(self):
        return self.cycle is None or self.cycle.response_complete

    def _stop(self):
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self):
        self._timer = None
        if self._waits_for_headers():
            self.transport.close()
