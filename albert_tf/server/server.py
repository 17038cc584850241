"""The server: KServe's, around an exported model, with TensorFlow Serving's routes."""

import dataclasses
import logging
import os
import signal
import socket
import warnings

import kserve
import kserve.metrics
import kserve.model_server
import prometheus_client
from fastapi import APIRouter
from fastapi.responses import JSONResponse
from kserve.protocol.rest.server import RESTServer
from starlette.exceptions import HTTPException

from albert_tf.errors import InputError
from albert_tf.exports import Export, rows_of, threads_per_batch
from albert_tf.server.batching import Batcher, BusyError
from albert_tf.server.connections import ReadingServer
from albert_tf.server.limits import RequestLimits
from albert_tf.server.predictions import Predictions
from albert_tf.server.protocol import (
    BadRequestError,
    format_answer,
    metadata,
    parse_request,
    status,
)

# Asked before the first client does, so that nobody waits for what TensorFlow prepares at the first calls.
_WARM_UP_TEXTS = ("", "한글 " * 20)

_BATCH_SIZES = prometheus_client.Histogram(
    "batch_size_texts", "Texts computed at once.", buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256)
)
_ANSWERS = prometheus_client.Counter("answers", "Answers by HTTP status.", ["code"])


@dataclasses.dataclass(frozen=True)
class ServerOptions:
    """How a server runs.

    Attributes:
        host: Where it listens.
        port: Likewise.
        max_batch_size: Most texts that are computed at once.
        max_texts: Most texts of a request.
        max_waiting: Most texts that wait; who comes then is answered 503.
        max_characters: Longest text.
        max_bytes: Largest request.
        request_timeout_seconds: How long a request may take to arrive.
        grace_seconds: How long requests may take that are being answered when the server is told to stop.
    """

    host: str = "127.0.0.1"
    port: int = 8501
    max_batch_size: int = 32
    max_texts: int = 1024
    max_waiting: int = 4096
    max_characters: int = 100_000
    max_bytes: int = 8 << 20
    request_timeout_seconds: float = 30
    grace_seconds: int = 30


def serve(model: Export, name: str, options: ServerOptions) -> None:
    """Answers requests until SIGTERM or Ctrl-C, and then those that have arrived.

    Args:
        model: Whom to ask.
        name: What requests call it.
        options: How.

    Raises:
        InputError: The address is taken.
    """
    _check_address(options)
    for logger in ("kserve", "kserve.trace", "uvicorn"):
        logging.getLogger(logger).setLevel(logging.ERROR)
    logging.getLogger("uvicorn.access").propagate = False  # without handlers uvicorn makes no lines for it
    warnings.filterwarnings("ignore", "ORJSONResponse is deprecated")  # KServe's affair
    for signature, about in model.signatures.items():
        model.answer(signature, dict.fromkeys(about["inputs"], _WARM_UP_TEXTS))
    # uvicorn has handlers of its own while it serves, and at its end repeats the signal to those before.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    server = _Server(model, name, options)
    print(f"serving {name}, version {model.version}: http://{options.host}:{options.port}/v1/models/{name}", flush=True)
    server.run()
    print("stopped; all requests that had arrived were answered", flush=True)


def _check_address(options):
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    try:
        socket.create_server((options.host, options.port), family=family).close()
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise InputError(
            f"can't listen on --host={options.host} --port={options.port} ({reason}); is another server there? Choose "
            "another port"
        ) from error


class _Server(RESTServer):
    """KServe's server of one model, with the routes and limits that are ours."""

    def __init__(self, model, name, options):
        self._model, self._name, self._options = model, name, options
        kserve_server = kserve.ModelServer(
            options.port, enable_grpc=False, enable_latency_logging=False, registered_models=_OneModel()
        )
        self._served = _Served(model, name, options)
        kserve_server.register_model(self._served)
        super().__init__(
            "kserve.model_server:app",
            kserve_server.dataplane,
            kserve_server.model_repository_extension,
            options.port,
            grace_period=options.grace_seconds,
        )
        self.config.host = options.host
        self._server = ReadingServer(self.config, options.request_timeout_seconds)

    def create_application(self):
        """Adds to KServe's routes and handlers; ours come first, and so are found first."""
        application = kserve.model_server.app
        paths = [f"/v1/models/{self._name}{version}" for version in ("", f"/versions/{self._model.version}")]
        routes = APIRouter()
        for path in paths:
            routes.add_api_route(path, self._status, methods=["GET"])
            routes.add_api_route(f"{path}/metadata", self._metadata, methods=["GET"])
        application.include_router(routes)
        super().create_application()
        application.add_exception_handler(BadRequestError, _answer_error(400))
        application.add_exception_handler(kserve.errors.InvalidInput, _answer_error(400))
        application.add_exception_handler(kserve.errors.ModelNotFound, self._answer_unknown_model)
        application.add_exception_handler(BusyError, _answer_error(503))
        application.add_exception_handler(HTTPException, self._answer_wrong_path)
        application.add_middleware(
            Predictions, paths=[f"{path}:predict" for path in paths], answer=self._served.predict_in_time
        )
        application.add_middleware(
            RequestLimits,
            max_bytes=self._options.max_bytes,
            timeout_seconds=self._options.request_timeout_seconds,
            on_status=lambda code: _ANSWERS.labels(code).inc(),
        )

    def _add_middlewares(self, app):
        """Leaves out KServe's, which asks the system for processor times twice a request, for a log that is off."""

    async def _status(self):
        return {"name": self._name, "ready": True, **status(self._model)}

    async def _answer_unknown_model(self, *_):
        return JSONResponse({"error": f"there is no model of that name; there is {self._name}"}, 404)

    async def _answer_wrong_path(self, request, error):
        ask = f"ask by POST /v1/models/{self._name}:predict"
        return JSONResponse({"error": f"there is no {request.method} {request.url.path}; {ask}"}, error.status_code)

    async def _metadata(self):
        return metadata(self._name, self._model)


class _Served(kserve.Model):
    """An exported model, as KServe asks it."""

    def __init__(self, model, name, options):
        super().__init__(name)
        self._model, self._options = model, options
        self._seconds = kserve.metrics.PREDICT_HIST_TIME.labels(**kserve.metrics.get_labels(name))
        self._batcher = Batcher(
            lambda signature, texts: rows_of(model.answer(signature, texts)),
            options.max_batch_size,
            options.max_waiting,
            _BATCH_SIZES.observe,
            max(1, os.cpu_count() // threads_per_batch(model.card)),
        )
        self.ready = True

    async def predict(self, payload, headers=None):
        """Answers the JSON of a request, or its bytes where it does not call itself JSON."""
        if isinstance(payload, kserve.InferRequest):
            raise BadRequestError(f"the model takes requests of version 1: POST /v1/models/{self.name}:predict")
        question = parse_request(payload, self._model, self._options.max_texts, self._options.max_characters)
        return format_answer(question, await self._batcher.ask(question.signature, question.texts))

    async def predict_in_time(self, payload):
        """Answers likewise, and counts the seconds, as KServe does where it asks."""
        with self._seconds.time():
            return await self.predict(payload)


class _OneModel(kserve.ModelRepository):
    """Models that no client can unload."""

    def unload(self, name):
        """Refuses."""
        raise BadRequestError(f"{name} stays loaded while the server runs")


def _answer_error(code):
    async def answer(_, error):
        return JSONResponse({"error": str(error)}, code)

    return answer
