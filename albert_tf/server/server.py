"""uvicorn's server and connections, with the limits that uvicorn has none for, and a stop that loses no request."""

import asyncio
import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import struct
import sys
import time

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

from albert_tf.asking.backend import Export
from albert_tf.base.errors import InputError
from albert_tf.server.application import Application
from albert_tf.server.batching import MAX_HEAD_BYTES, RefusedError, ServerOptions, too_long_head

# Asked before the first client does, so that nobody waits for what TensorFlow prepares at the first calls.
_WARM_UP_TEXTS = ("", "한글 " * 20)

# Nothing more comes of this client. Where poll knows no such event, POLLHUP says it.
_HAS_LEFT = getattr(select, "POLLRDHUP", select.POLLHUP)
# What is read of a connection, and parsed, before the others take their turn.
_READ_BYTES = 16_384
# How many more connections than allowed are told so; any further one is closed.
_MAX_TOLD = 64
# How long clients with open connections may still ask something when the server stops.
_LAST_CALL_SECONDS = 2


class _Connection(H11Protocol):
    """A connection, which ends when the server has waited for its client for too long."""

    def connection_made(self, transport):
        super().connection_made(transport)
        self._waits_since = self.loop.time()
        transport.max_size = _READ_BYTES
        if len(self.connections) > self.app.options.max_connections + _MAX_TOLD:
            transport.abort()

    def connection_lost(self, exc):
        super().connection_lost(exc)
        if self.cycle is not None and not self.cycle.response_complete:
            self.scope["has_left"] = True  # nobody waits for it any more; it may not have begun
            if "task" in self.scope:
                self.scope["task"].cancel()

    def data_received(self, data):
        cycle = self.cycle
        if cycle is None and len(self.connections) > self.app.options.max_connections:
            self.refuse(RefusedError(503, "too many connections are open; try again in a moment"))
            return
        super().data_received(data)
        if self.cycle is not cycle:
            self._waits_since = self.loop.time()

    def pause_writing(self):
        super().pause_writing()
        self._waits_since = self.loop.time()

    def on_response_complete(self):
        self._waits_since = self.loop.time()
        super().on_response_complete()

    def send_400_response(self, msg):
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):  # it goes on wrong after it was answered
            self.transport.close()
        elif len(self.conn.trailing_data[0]) > MAX_HEAD_BYTES:
            self.refuse(too_long_head())
        else:
            self.refuse(RefusedError(400, "this is not an HTTP/1.1 request"))

    def shutdown(self):
        """Ends the connection if its client has asked nothing that is not answered."""
        if not self.is_answering() and not self.transport.is_closing() and not self._tells(select.POLLIN):
            self.transport.close()

    def end_if_late(self):
        """Ends the connection if its client has left, or the server has waited for it for too long."""
        if self.flow.read_paused and self._tells(_HAS_LEFT):
            self.transport.close()  # as asyncio does, which sees it only where it reads
        timeout = self.app.options.request_timeout
        if self.loop.time() - self._waits_since < timeout:
            return
        if not self.is_answering() or self.flow.write_paused:
            self.abandon()
        elif self.cycle.more_body:
            self.refuse(RefusedError(408, f"the request did not arrive within {timeout:g} seconds; send it again"))

    def _tells(self, event):
        """Returns whether the socket has an event for poll, or an error."""
        poll = select.poll()
        poll.register(self.transport.get_extra_info("socket"), event)
        return bool(poll.poll(0))

    def is_answering(self):
        """Returns whether its client waits for an answer."""
        return self.cycle is not None and not self.cycle.response_complete and not self.cycle.disconnected

    def abandon(self):
        """Ends the connection at once; an answer that its client has not read to the end counts as none."""
        if self.transport.get_write_buffer_size() and not self.is_answering():
            self.server_state.total_requests -= 1
        self.transport.abort()

    def refuse(self, error):
        """Answers in place of the application, and ends the connection."""
        if not self.is_answering():
            self.app.num_requests += 1
        elif self.cycle.response_started:
            self.transport.abort()
            return
        else:
            self.cycle.disconnected = True
        self.server_state.total_requests += 1
        self.app.answers[error.status] += 1
        body = json.dumps({"error": str(error)}).encode()
        head = b"HTTP/1.1 %d %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        self.transport.write(head % (error.status, STATUS_PHRASES[error.status], len(body)) + body)
        self.transport.close()
        self._waits_since = self.loop.time()


class Server(uvicorn.Server):
    """Serves an application until SIGTERM or Ctrl-C, and then answers all requests that were sent before.

    `answered_at_signal` and `num_answered` of `application.num_requests` were answered then, and in the end.
    """

    def __init__(self, application: Application):
        self.application, self.answered_at_signal, self.num_answered = application, 0, 0
        config = uvicorn.Config(
            application,
            loop="asyncio",
            http=_Connection,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level="error",  # clients' mistakes are told to them alone
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=application.options.request_timeout,
            h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        )
        super().__init__(config)

    async def on_tick(self, counter):
        """Looks after the connections, ten times a second."""
        self._tell_connections(_Connection.end_if_late)
        return await super().on_tick(counter)

    async def shutdown(self, sockets=None):
        """Answers all that was sent, for as long as the grace period lasts."""
        self.application.is_stopping = True
        self.answered_at_signal = self.server_state.total_requests
        await self._stop_listening(sockets)
        begin = time.monotonic()
        while self.server_state.connections and not self.force_exit:
            if time.monotonic() - begin > self.application.options.grace_period:
                break
            self._tell_connections(_Connection.end_if_late)
            if time.monotonic() - begin > _LAST_CALL_SECONDS:
                self._tell_connections(_Connection.shutdown)
            await asyncio.sleep(0.05)
        unanswered = [connection for connection in self.server_state.connections if connection.is_answering()]
        for connection in self.server_state.connections.difference(unanswered):
            connection.abandon()
        self.num_answered = self.server_state.total_requests
        for connection in unanswered:
            connection.refuse(RefusedError(503, "the server has stopped; ask another one"))
        for task in self.server_state.tasks:
            task.cancel()
        await asyncio.gather(*self.server_state.tasks, return_exceptions=True)

    async def _stop_listening(self, listeners):
        """Accepts all that waits for it and closes, for what still waited then would be reset."""
        accepted = []
        for listener in listeners:
            _let_nobody_in(listener)
            with contextlib.suppress(OSError):
                while True:
                    accepted.append(listener.accept()[0])
        for server in self.servers:
            server.close()
        for connection in accepted:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: _Connection(self.config, self.server_state, {}), connection
            )

    def _tell_connections(self, what):
        for connection in list(self.server_state.connections):
            what(connection)


def serve(model: Export, name: str, options: ServerOptions) -> None:
    """Answers requests until SIGTERM or Ctrl-C, and then those that have arrived."""
    listener = listen(options)
    server = Server(Application(model, name, options))
    for signature, about in model.signatures.items():
        model.compute(signature, dict.fromkeys(about["inputs"], _WARM_UP_TEXTS))
    # uvicorn has handlers of its own while it serves, and at its end repeats the signal to those before.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, server.handle_exit)
    print(f"serving {name}, version {model.version}: http://{options.host}:{options.port}/v1/models/{name}", flush=True)
    server.run([listener])
    num_after = server.num_answered - server.answered_at_signal
    num_lost = server.application.num_requests - server.num_answered
    print(
        f"stopped; {server.num_answered:,} requests were answered, {num_after:,} of them after the signal, and "
        f"{num_lost:,} were not",
        flush=True,
    )


def _let_nobody_in(listener):
    """Has Linux drop packets of new clients (Documentation/networking/filter.rst); they try again and are refused.

    Those that came between the last `accept` and `close` would be taken for connected, and reset.
    """
    if sys.platform != "linux":
        return
    drop = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))  # struct sock_filter: return 0 bytes
    program = struct.pack("HP", 1, ctypes.addressof(drop))  # struct sock_fprog
    with contextlib.suppress(OSError):  # where that is forbidden, the moment between the two remains
        listener.setsockopt(socket.SOL_SOCKET, 26, program)  # SO_ATTACH_FILTER


def listen(options: ServerOptions) -> socket.socket:
    """Returns a socket that listens where the options say."""
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    try:
        listener = socket.create_server((options.host, options.port), family=family)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise InputError(
            f"can't listen on `host={options.host}` `port={options.port}` ({reason}); choose another port"
        ) from error
    # Its connections get it too. Without, a body waits until the client has acknowledged the head, 40 ms later.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
