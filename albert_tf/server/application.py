"""The server's answers, route by route, and the limits of requests."""

import asyncio
import collections
import gc
import logging
import time

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router

from albert_tf.asking.answers import rows_of
from albert_tf.asking.backend import Export
from albert_tf.asking.cards import batches_at_once
from albert_tf.server import protocol
from albert_tf.server.batching import MAX_HEAD_BYTES, MAX_HEADERS, Batcher, RefusedError, ServerOptions, too_long_head

# What every request may hold even while all together hold too much, so that small ones are answered still.
_FREE_BYTES = 65_536
_PIECE_BYTES = 65_536
# More is parsed in a thread: so much keeps the loop for some 6 ms at most, 4 MB of objects for 380.
_LARGE_BYTES = 65_536
# Some models compute as much longer as a text is longer, and meanwhile all others wait.
_MAX_BATCH_BYTES = 16_384
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Application:
    """An ASGI application that answers for one model, which requests call by a name.

    It counts `answers` sent by HTTP status and `num_requests` that have come; where it `is_stopping`, clients are told
    that their connections end.
    """

    def __init__(self, model: Export, name: str, options: ServerOptions):
        self.options, self.answers, self.num_requests, self.is_stopping = options, collections.Counter(), 0, False
        self._model, self._held_bytes, self._parsing = model, 0, asyncio.Lock()
        self._registry = CollectorRegistry()
        batch_sizes = Histogram("batch_size_texts", "Texts of a batch.", registry=self._registry, buckets=_SIZES)
        seconds = {"buckets": _SECONDS, "registry": self._registry, "labelnames": ["model_name"]}
        self._seconds = Histogram("request_predict_seconds", "Time to answer.", **seconds).labels(name)
        self._batcher = Batcher(
            self._compute,
            options.max_batch_size,
            _MAX_BATCH_BYTES,
            options.max_waiting,
            batch_sizes.observe,
            batches_at_once(model.card),
        )
        paths = [f"/v1/models/{name}{version}" for version in ("", f"/versions/{model.version}")]
        fixed = {"/v2/health/live": {"live": True}, "/v2/health/ready": {"ready": True}}
        fixed |= {path: {"name": name, "ready": True, **protocol.status(model)} for path in paths}
        fixed |= {f"{path}/metadata": protocol.metadata(name, model) for path in paths}
        self._hint = f"ask by POST {paths[0]}:predict"
        self._router = Router(
            [
                *(Route(f"{path}:predict", self._predict, methods=["POST"]) for path in paths),
                *(Route(path, JSONResponse(values), methods=["GET"]) for path, values in fixed.items()),
                Route("/metrics", self._metrics),
            ],
            redirect_slashes=False,  # it would repeat what the request says
        )

    async def __call__(self, scope, receive, send):
        """Answers a request as of ASGI (https://asgi.readthedocs.io).

        The server may cancel `scope["task"]`: the client has left, as "has_left" says, or the server stops.
        """
        self.num_requests += 1
        if "has_left" in scope:
            return
        scope |= {"app": self, "task": asyncio.current_task(), "num_bytes": 0}

        async def send_in_pieces(message):
            if message["type"] == "http.response.start":
                self.answers[message["status"]] += 1
                await send({**message, "headers": [*message["headers"], *self._last_headers(scope, message)]})
                return
            body = memoryview(message["body"])
            for begin in range(0, max(1, len(body)), _PIECE_BYTES):
                end = begin + _PIECE_BYTES
                await send({**message, "body": body[begin:end], "more_body": end < len(body)})

        try:
            _check_head(scope)
            await self._router(scope, receive, send_in_pieces)
        except (ClientDisconnect, asyncio.CancelledError):
            pass
        except RefusedError as error:
            await _refusal(error)(scope, receive, send_in_pieces)
        except HTTPException as error:
            nothing_here = RefusedError(
                error.status_code, f"there is nothing at this path for this method; {self._hint}"
            )
            await _refusal(nothing_here, error.headers)(scope, receive, send_in_pieces)
        except Exception:
            logging.exception("a request could not be answered")
            error = RefusedError(500, "the server has failed at this request; its log says why")
            await _refusal(error)(scope, receive, send_in_pieces)
        finally:
            self._held_bytes -= max(0, scope["num_bytes"] - _FREE_BYTES)

    def _last_headers(self, scope, message):
        """Returns headers that end a connection where the server stops, or the client may send no body after all."""
        is_refused_early = message["status"] >= 400 and any(name == b"expect" for name, _ in scope["headers"])
        return [(b"connection", b"close")] if self.is_stopping or is_refused_early else []

    async def _predict(self, request):
        begin = time.perf_counter()
        signature, rows, has_rows = await self._parse(await self._read(request))

        def hold(values):
            self._hold(request.scope, sum(len(output) for value in values for output in value.values()))

        answer = protocol.format_answer(await self._batcher.ask(signature, rows, hold), has_rows)
        self._seconds.observe(time.perf_counter() - begin)
        return Response(answer, media_type="application/json")

    async def _parse(self, body):
        """Parses a request, a large one in a thread: it counts as held until that ends, even if its client leaves."""
        limits = self.options.max_texts, self.options.max_characters
        if len(body) <= _LARGE_BYTES:
            return protocol.parse_request(body, self._model, *limits)
        async with self._parsing:  # one at a time, for each may become many times as large
            parsed = asyncio.get_running_loop().run_in_executor(None, _parse_large, body, self._model, *limits)
            try:
                return await asyncio.shield(parsed)
            finally:
                await asyncio.wait([parsed])
                del parsed  # its error would hold itself

    def _compute(self, signature, rows):
        """Computes a batch; its answers become JSON here, in a thread, for that of large ones takes long."""
        names = self._model.signatures[signature]["inputs"]
        outputs = self._model.compute(signature, dict(zip(names, zip(*rows))))
        return [protocol.row_as_json(row) for row in rows_of(outputs)]

    async def _metrics(self, _):
        lines = ["# TYPE answers_total counter"]
        lines += [f'answers_total{{code="{code}"}} {count}' for code, count in self.answers.items()]
        text = "\n".join([*lines, generate_latest(self._registry).decode()])
        return Response(text, media_type="text/plain; version=0.0.4")

    async def _read(self, request):
        parts, num_bytes = [], int(request.headers.get("content-length", 0))
        too_large = RefusedError(
            413, f"the request is larger than {self.options.max_request_bytes:,} bytes; send less at once"
        )
        if num_bytes > self.options.max_request_bytes:
            raise too_large
        async for part in request.stream():
            parts.append(part)
            self._hold(request.scope, len(part))
            if request.scope["num_bytes"] > self.options.max_request_bytes:
                raise too_large
        return b"".join(parts)

    def _hold(self, scope, num_bytes):
        """Counts bytes of a request or its answer until it is answered."""
        before = scope["num_bytes"]
        counted = max(0, before + num_bytes - _FREE_BYTES) - max(0, before - _FREE_BYTES)
        if self._held_bytes + counted > self.options.max_held_bytes:
            raise RefusedError(503, "the server holds too much for other requests; try again, or send less at once")
        self._held_bytes += counted
        scope["num_bytes"] += num_bytes


def _parse_large(body, model, *limits):
    gc.disable()  # it would look at the many lists of a hostile request again and again
    try:
        return protocol.parse_request(body, model, *limits)
    except RefusedError as error:
        raise error.with_traceback(None) from None  # it holds the lists
    finally:
        gc.enable()


def _check_head(scope):
    head = [scope["raw_path"], scope["query_string"], *(part for header in scope["headers"] for part in header)]
    if len(scope["headers"]) > MAX_HEADERS or sum(map(len, head)) > MAX_HEAD_BYTES:
        raise too_long_head()


def _refusal(error, headers=None):
    return JSONResponse({"error": str(error)}, error.status, headers)
