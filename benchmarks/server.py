"""How many requests a second the server answers with many clients, with batches and without.

python -m benchmarks.server --model_dir=served/nsmc --text_file=nsmc_reviews.txt.gz

Each client sends one text after the other over a connection of its own. The same server, from a clean start, without
batches is the peer. Needs kserve.
"""

import asyncio
import gzip
import json
import os
import subprocess
import sys
import time

from absl import app, flags

FLAGS = flags.FLAGS

flags.DEFINE_string("model_dir", None, "An exported model.", required=True)
flags.DEFINE_string("text_file", None, "Text, one a line, .gz or not.", required=True)
flags.DEFINE_integer("num_clients", 16, "Clients at once.", 1)
flags.DEFINE_integer("seconds", 60, "How long they ask.", 1)
flags.DEFINE_integer("port", 8701, "Where the server listens.")

SERVERS = {"batches": [], "one text at a time": ["--max_batch_size=1"]}
_WARM_UP_SECONDS = 5


def requests():
    """Returns requests of one text each, as they go over the wire."""
    opened = gzip.open if FLAGS.text_file.endswith(".gz") else open
    with opened(FLAGS.text_file, "rt", encoding="utf-8") as file:
        lines = [line.strip() for _, line in zip(range(20_000), file)]
    bodies = (json.dumps({"instances": [line]}).encode() for line in lines if line)
    head = b"POST /v1/models/model:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b"
    return [head % (len(body), body) for body in bodies]


async def ask_until(end, texts, number, latencies, errors):
    """Sends every sixteenth text, or so, over one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", FLAGS.port)
    while time.monotonic() < end:
        began_at = time.monotonic()
        writer.write(texts[number % len(texts)])
        head = await reader.readuntil(b"\r\n\r\n")
        fields = dict(line.split(b": ", 1) for line in head.lower().splitlines()[1:-1])
        body = await reader.readexactly(int(fields[b"content-length"]))
        latencies.append(time.monotonic() - began_at)
        if b" 200 " not in head.splitlines()[0] or "predictions" not in json.loads(body):
            errors.append(body)
        number += FLAGS.num_clients
    writer.close()


async def load(seconds, texts):
    """Returns the seconds that each answer took, and the answers that were errors."""
    latencies, errors, end = [], [], time.monotonic() + seconds
    clients = (ask_until(end, texts, number, latencies, errors) for number in range(FLAGS.num_clients))
    await asyncio.gather(*clients)
    return sorted(latencies), errors


def megabytes(process_id):
    """Returns the memory that a process holds."""
    with open(f"/proc/{process_id}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure(name, texts):
    """Returns what a server does under load, and prints its row of the table."""
    command = [sys.executable, "serve.py", f"--model_dir={FLAGS.model_dir}", "--model_name=model"]
    server = subprocess.Popen([*command, f"--port={FLAGS.port}", *SERVERS[name]], stdout=subprocess.PIPE, text=True)
    server.stdout.readline()
    while True:
        try:
            asyncio.run(load(_WARM_UP_SECONDS, texts))
            break
        except OSError:
            time.sleep(0.2)
    before = megabytes(server.pid)
    latencies, errors = asyncio.run(load(FLAGS.seconds, texts))
    after = megabytes(server.pid)
    server.terminate()
    server.wait()
    rate = len(latencies) / FLAGS.seconds
    p50, p99 = (1e3 * latencies[int(share * len(latencies))] for share in (0.5, 0.99))
    print(
        f"| {name} | {rate:,.0f} | {p50:.0f} ms | {p99:.0f} ms | {len(errors)} | {before:,.0f} MB | {after:,.0f} MB |",
        flush=True,
    )
    return rate


def main(_):
    texts = requests()
    print("| server | requests a second | p50 | p99 | errors | memory before | after |\n|---|---|---|---|---|---|---|")
    with_batches, without = (measure(name, texts) for name in SERVERS)
    print(f"\n{with_batches / without:.2f} times the requests a second")


if __name__ == "__main__":
    app.run(main)
