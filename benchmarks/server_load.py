"""Whether the server loses, mixes up or forgets anything under a mixed load of many clients, some of them hostile.

python -m benchmarks.server_load --model_dir=served/nsmc --text_file=nsmc_reviews.txt.gz --minutes=10

Most clients ask about short texts over and over, some about long ones or several at once, over connections that they
keep or make anew. A tenth of all requests are hostile: no JSON, wrong values, too large, too slow, or given up halfway.
Every answer is compared with what the export says of its text in this process. Prints a row a minute, and in the end,
with SIGTERM under full load, what clients saw and what the server says that it did. Ends with exit code 1 if anything
was lost or wrong. The server must have `serving_default` with one input, as classifiers do.
"""

import asyncio
import collections
import contextlib
import gzip
import json
import random
import signal
import subprocess
import sys
import time

import numpy as np
from absl import app, flags

from albert_tf.asking.answers import DEFAULT, rows_of
from albert_tf.serving.formats import open_export
from benchmarks.machine import megabytes

FLAGS = flags.FLAGS

flags.DEFINE_string("model_dir", None, "An exported classifier, also LiteRT's.", required=True)
flags.DEFINE_string("text_file", None, "Text, one a line, .gz or not.", required=True)
flags.DEFINE_integer("num_clients", 200, "Clients at once.", 1)
flags.DEFINE_float("minutes", 10, "How long they ask.", 0.1)
flags.DEFINE_integer("port", 8701, "Where the server listens.")
flags.DEFINE_integer("seed", 0, "Of what clients choose.")

_NUM_TEXTS = 2000
_SHARE_OF_LONG, _SHARE_OF_HOSTILE, _SHARE_OF_NEW_CONNECTIONS = 0.02, 0.1, 0.1
_PREDICT = "/v1/models/model:predict"


def request(body, path=_PREDICT):
    """Returns a request as it goes over the wire."""
    return b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b" % (path.encode(), len(body), body)


# What is sent, and the statuses that may come back.
_HOSTILE = {
    "no JSON": (request(b"\xff{"), {400}),
    "numbers": (request(b'{"inputs":[' + b"5," * 200_000 + b"5]}"), {400}),
    "lists": (request(b'{"instances":[' + b"[]," * 200_000 + b"[]]}"), {400}),
    "nested": (request(b"[" * 100_000), {400}),
    "half a pair": (request(b'{"instances":["\\ud800"]}'), {400}),
    "too many texts": (request(json.dumps({"instances": ["a"] * 2000}).encode()), {400}),
    "too large": (request(b" " * (5 << 20)), {413}),
    "another route": (request(b'{"inputs":[' + b"5," * 200_000 + b"5]}", "/v2/models/model/infer"), {404}),
    "no HTTP": (b"\x16\x03\x01\r\n\r\n", {400}),
    "long head": (b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 100_000 + b"\r\n\r\n", {431}),
    "given up": (request(json.dumps({"instances": ["a"] * 100}).encode()), set()),
    "given up halfway": (request(b" " * 1000)[:-500], set()),
}


def expected_answers():
    """Returns what the export says of each text."""
    opened = gzip.open if FLAGS.text_file.endswith(".gz") else open
    with opened(FLAGS.text_file, "rt", encoding="utf-8") as file:
        texts = [text for text in (line.strip() for _, line in zip(range(10 * _NUM_TEXTS), file)) if text]
    texts = list(dict.fromkeys(texts))[:_NUM_TEXTS]
    texts += [" ".join(texts[number : number + 100])[:5000] for number in range(_NUM_TEXTS // 10)]
    model = open_export(FLAGS.model_dir)
    (name,) = model.signatures[DEFAULT]["inputs"]
    rows = []
    for begin in range(0, len(texts), 32):
        rows += rows_of(model.compute(DEFAULT, {name: texts[begin : begin + 32]}))
    return dict(zip(texts, rows))


def is_alike(found, expected):
    """Returns whether two answers are the same but for rounding."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(is_alike(found[name], expected[name]) for name in expected)
    if isinstance(expected, float) or (isinstance(expected, list) and expected and isinstance(expected[0], float)):
        return np.allclose(found, expected, rtol=0, atol=1e-4)
    return found == expected


class Clients:
    """All clients, and what they saw.

    Attributes:
        latencies: The seconds of each right answer since it was last emptied.
        counts: Of what happened.
        num_answers: All answers that came, of whatever kind.
        is_over: Whether they end after their next answer.
    """

    def __init__(self, answers):
        self._answers, self._texts = answers, list(answers)
        self.latencies, self.counts, self.num_answers, self.is_over = [], collections.Counter(), 0, False

    async def run_one(self, number):
        """Asks until the server stops."""
        chance, connection = random.Random(f"{FLAGS.seed} {number}"), None
        while True:
            try:
                connection = connection or await asyncio.open_connection("127.0.0.1", FLAGS.port)
            except OSError:
                return
            is_hostile = chance.random() < _SHARE_OF_HOSTILE and not self.is_over
            is_open = await (self._harm if is_hostile else self._ask)(connection, chance)
            if not is_open or chance.random() < _SHARE_OF_NEW_CONNECTIONS:
                connection[1].close()
                connection = None

    async def _ask(self, connection, chance):
        """Returns whether the connection may go on."""
        if chance.random() < _SHARE_OF_LONG:
            texts = [chance.choice(self._texts[_NUM_TEXTS:])]
        else:
            texts = chance.sample(self._texts[:_NUM_TEXTS], chance.choice([1, 1, 1, 1, 1, 1, 1, 1, 3, 40]))
        self.counts["requests"] += 1
        began_at = time.monotonic()
        try:
            status, is_open, answer = await self._exchange(
                connection, request(json.dumps({"instances": texts}).encode())
            )
        except (OSError, EOFError):
            self.counts["lost"] += 1
            return False
        rows = [self._answers[text] for text in texts]
        if status == 503:
            self.counts["told to wait"] += 1
        elif status != 200:
            self.counts["errors"] += 1
        elif len(answer["predictions"]) != len(rows) or not all(map(is_alike, answer["predictions"], rows)):
            self.counts["of other texts"] += 1
        else:
            self.latencies.append(time.monotonic() - began_at)
        return is_open

    async def _harm(self, connection, chance):
        """Returns whether the connection may go on."""
        content, statuses = _HOSTILE[chance.choice(list(_HOSTILE))]
        self.counts["hostile requests"] += 1
        if not statuses:
            connection[1].write(content)
            await asyncio.sleep(chance.random() / 100)
            return False
        try:
            status, is_open, answer = await self._exchange(connection, content)
        except (OSError, EOFError):
            self.counts["hostile, cut off"] += 1
            return False
        if status not in statuses | {503} or list(answer) != ["error"]:
            self.counts["hostile, answered wrongly"] += 1
        return is_open

    async def _exchange(self, connection, content):
        reader, writer = connection
        writer.write(content)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        answer = json.loads(await reader.readexactly(length))
        self.num_answers += 1
        return int(head.split()[1]), b"connection: close" not in head, answer


async def run(clients, server):
    """Prints a row a minute, and stops the server in the end."""
    print("| minute | requests | p50 | p99 | lost | of other texts | errors | told to wait | hostile | memory |")
    print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
    tasks = [asyncio.create_task(clients.run_one(number)) for number in range(FLAGS.num_clients)]
    began_at, minute = time.monotonic(), 0
    while time.monotonic() - began_at < 60 * FLAGS.minutes:
        await asyncio.sleep(min(60, 60 * FLAGS.minutes))
        minute += 1
        latencies, clients.latencies = sorted(clients.latencies), []
        p50, p99 = (1e3 * latencies[int(share * len(latencies))] for share in (0.5, 0.99))
        names = ("lost", "of other texts", "errors", "told to wait", "hostile requests")
        counts = " | ".join(f"{clients.counts[name]:,}" for name in names)
        print(
            f"| {minute} | {clients.counts['requests']:,} | {p50:,.0f} ms | {p99:,.0f} ms | {counts} | "
            f"{megabytes(server.pid):,.0f} MB |",
            flush=True,
        )
    clients.is_over = True
    server.send_signal(signal.SIGTERM)
    await asyncio.gather(*tasks)


def main(_):
    answers = expected_answers()
    command = [sys.executable, "-m", "albert_tf", "serve", f"--model_dir={FLAGS.model_dir}", "--model_name=model"]
    server = subprocess.Popen([*command, f"--port={FLAGS.port}"], stdout=subprocess.PIPE, text=True)
    server.stdout.readline()
    clients = Clients(answers)
    with contextlib.closing(server.stdout):
        asyncio.run(run(clients, server))
        print(f"\n{dict(clients.counts)}; {clients.num_answers:,} answers came")
        print(f"the server: {server.stdout.read().strip()}")
    server.wait()
    bad = ("lost", "of other texts", "errors", "hostile, answered wrongly")
    return int(any(clients.counts[name] for name in bad))


if __name__ == "__main__":
    app.run(main)
