"""The options of a server, and the error of a request that it does not answer."""

import dataclasses

# Of the request line and the headers together.
MAX_HEAD_BYTES = 16_384
MAX_HEADERS = 100


class RefusedError(Exception):
    """A request that gets no answer but an HTTP status and a sentence that says why."""

    def __init__(self, status: int, sentence: str):
        super().__init__(sentence)
        self.status = status


def too_long_head() -> RefusedError:
    """Returns the error of a request that says too much before its body."""
    return RefusedError(
        431, f"the request has more than {MAX_HEADERS} headers, or {MAX_HEAD_BYTES:,} bytes before its body"
    )


@dataclasses.dataclass(frozen=True)
class ServerOptions:
    """How a server runs, as the help of `albert-tf serve` says.

    The limits are about requests that a stranger can make long. Those without an option stand where they are checked.
    """

    host: str = "127.0.0.1"
    port: int = 8501
    max_batch_size: int = 32
    max_texts: int = 1024
    max_characters: int = 10_000
    max_waiting: int = 4096
    max_request_bytes: int = 4 << 20
    max_held_bytes: int = 128 << 20
    max_connections: int = 512
    request_timeout: float = 30
    grace_period: int = 30
