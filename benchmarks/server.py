"""How many requests a second the server answers with many clients, with batches and without.

python -m benchmarks.server --saved_model=served/nsmc --litert=served/nsmc_litert --text_file=nsmc_reviews.txt.gz

Each client sends one text after the other over a connection of its own. The same server, from a clean start, without
batches is the peer. Clients do as little as they can, so that they leave the cores to the server; what they took is
printed. On a machine that is busy with something else, CPU time is what to read. Needs uvicorn, starlette and
prometheus_client.
"""

import asyncio
import gzip
import json
import subprocess
import sys
import time
import typing

from absl import app, flags

from benchmarks.machine import cpu_seconds, megabytes

FLAGS = flags.FLAGS

flags.DEFINE_string("saved_model", None, "An exported model; left out where it is not named.")
flags.DEFINE_string("litert", None, "The same, exported with --format=litert.")
flags.DEFINE_string("text_file", None, "Text, one a line, .gz or not.", required=True)
flags.DEFINE_integer("num_clients", 16, "Clients at once.", 1)
flags.DEFINE_integer("seconds", 60, "How long they ask.", 1)
flags.DEFINE_integer("port", 8701, "Where the server listens.")

_WARM_UP_SECONDS = 5
_SETTINGS = {"batches": [], "one text at a time": ["--max_batch_size=1"]}


def requests():
    """Returns requests of one text each, as they go over the wire."""
    opened = gzip.open if FLAGS.text_file.endswith(".gz") else open
    with opened(FLAGS.text_file, "rt", encoding="utf-8") as file:
        lines = [line.strip() for _, line in zip(range(20_000), file)]
    bodies = (json.dumps({"instances": [line]}).encode() for line in lines if line)
    head = b"POST /v1/models/model:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b"
    return [head % (len(body), body) for body in bodies]


class Client(asyncio.Protocol):
    """Sends every sixteenth text, or so, one after the other until the end; answers are read as they come in.

    Attributes:
        latencies: The seconds that each answer took.
        errors: The answers that were errors.
        done: Set once the last answer is there.
    """

    def __init__(self, texts, number, end):
        self._texts, self._number, self._end = texts, number, end
        self._answer = b""
        self.latencies, self.errors, self.done = [], [], asyncio.get_running_loop().create_future()

    def connection_made(self, transport):
        """Asks for the first time."""
        self._transport = transport
        self._ask()

    def data_received(self, data):
        """Counts an answer once it is there as a whole, and asks again."""
        self._answer += data
        head, separator, body = self._answer.partition(b"\r\n\r\n")
        if not separator:
            return
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        if len(body) < int(length):
            return
        now = time.monotonic()
        self.latencies.append(now - self._began_at)
        if not head.startswith(b"HTTP/1.1 200 ") or not body.startswith(b'{"predictions":[{'):
            self.errors.append(body)
        if now < self._end:
            self._ask()
        else:
            self._transport.close()
            self.done.set_result(None)

    def connection_lost(self, error):
        """Fails where the server has closed the connection."""
        if not self.done.done():
            self.done.set_exception(error or ConnectionError("the server has closed a connection"))

    def _ask(self):
        self._answer = b""
        self._began_at = time.monotonic()
        self._transport.write(self._texts[self._number % len(self._texts)])
        self._number += FLAGS.num_clients


class Load(typing.NamedTuple):
    """The times that clients saw, as in `Client`, and the share of a core that they took."""

    latencies: list[float]
    errors: list[bytes]
    share_of_core: float


async def load(seconds, texts):
    """Returns the `Load` of some seconds."""
    began_at, end = time.process_time(), time.monotonic() + seconds
    clients = [Client(texts, number, end) for number in range(FLAGS.num_clients)]
    for client in clients:
        await asyncio.get_running_loop().create_connection(lambda client=client: client, "127.0.0.1", FLAGS.port)
    await asyncio.gather(*(client.done for client in clients))
    latencies = sorted(second for client in clients for second in client.latencies)
    errors = [error for client in clients for error in client.errors]
    return Load(latencies, errors, (time.process_time() - began_at) / seconds)


def measure(kind, folder, setting, texts):
    """Returns requests a second of a server under load, and CPU seconds a request; prints its row of the table."""
    flags_given = [f"--model_dir={folder}", "--model_name=model", f"--port={FLAGS.port}", *_SETTINGS[setting]]
    command = [sys.executable, "-m", "albert_tf", "serve", *flags_given]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    server.stdout.readline()
    while True:
        try:
            asyncio.run(load(_WARM_UP_SECONDS, texts))
            break
        except OSError:
            time.sleep(0.2)
    before, cpu_before = megabytes(server.pid), cpu_seconds(server.pid)
    found = asyncio.run(load(FLAGS.seconds, texts))
    after, cpu = megabytes(server.pid), (cpu_seconds(server.pid) - cpu_before) / len(found.latencies)
    server.terminate()
    server.wait()
    rate = len(found.latencies) / FLAGS.seconds
    p50, p99 = (1e3 * found.latencies[int(share * len(found.latencies))] for share in (0.5, 0.99))
    print(
        f"| {kind}, {setting} | {rate:,.0f} | {p50:.0f} ms | {p99:.0f} ms | {1e3 * cpu:.2f} ms | {len(found.errors)} | "
        f"{before:,.0f} MB | {after:,.0f} MB | {found.share_of_core:.0%} of a core |",
        flush=True,
    )
    return rate, cpu


def main(_):
    texts = requests()
    print("| server | requests a second | p50 | p99 | CPU time | errors | memory before | after | clients took |")
    print("|---|---|---|---|---|---|---|---|---|")
    folders = {"SavedModel": FLAGS.saved_model, "LiteRT": FLAGS.litert}
    ratios = []
    for kind, folder in folders.items():
        if folder is not None:
            (rate, cpu), (rate_alone, cpu_alone) = (measure(kind, folder, setting, texts) for setting in _SETTINGS)
            ratios.append(
                f"{kind}: with batches {rate / rate_alone:.2f} times the requests a second, and {cpu / cpu_alone:.2f} "
                "of the CPU time for one"
            )
    print("\n" + "\n".join(ratios))


if __name__ == "__main__":
    app.run(main)
