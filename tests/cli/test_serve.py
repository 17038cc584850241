"""serve as clients meet it: a process of its own, asked over HTTP; with a SavedModel, and without TensorFlow."""

import concurrent.futures
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

import pytest

from albert_tf.base.errors import with_extra
from albert_tf.serving.formats import open_export

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TEXTS = ["좋다", "", "정말 재미있는 영화 " * 20, "\x00 ㅋㅋ 👩‍🚀"]


class Server:
    """A running server."""

    def __init__(self, folder, environment, **flags):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        values = {"model_dir": folder, "port": self.port, "request_timeout": 2, **flags}
        command = [sys.executable, "-m", "albert_tf", "serve", *(f"--{name}={value}" for name, value in values.items())]
        self.process = subprocess.Popen(
            command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.first_line = self.process.stdout.readline()

    def ask(self, path, body=None, headers=None):
        """Returns status and JSON of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        body = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request("GET" if body is None else "POST", path, body, headers or {})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, json.loads(content) if content.startswith((b"{", b"[")) else content.decode()

    def predict(self, **values):
        return self.ask("/v1/models/films:predict", values)

    def stop(self):
        """Returns the exit code, and what else was printed, but for what LiteRT says of itself."""
        self.process.send_signal(signal.SIGTERM)
        rest, errors = self.process.communicate(timeout=60)
        errors = [line for line in errors.splitlines() if not line.startswith("INFO: Created TensorFlow Lite")]
        return self.process.returncode, rest, errors


@pytest.fixture(scope="module")
def start(exported_classifier, export_classifier, tmp_path_factory):
    """Starts servers of one model; LiteRT's in processes in which TensorFlow can't be imported."""
    pytest.importorskip("starlette", reason="needs uvicorn and starlette: pip install 'albert_tf[serve]'")
    pytest.importorskip("uvicorn", reason="needs uvicorn and starlette: pip install 'albert_tf[serve]'")

    def run(model_format, **flags):
        if model_format == "saved_model":
            return Server(exported_classifier, None, **flags)
        pytest.importorskip("ai_edge_litert", reason="needs ai-edge-litert: pip install 'albert_tf[litert]'")
        without = tmp_path_factory.mktemp("without_tensorflow")
        (without / "tensorflow.py").write_text("raise ImportError('TensorFlow is not wanted here')")
        return Server(export_classifier("litert"), {**os.environ, "PYTHONPATH": str(without)}, **flags)

    return run


@pytest.fixture(scope="module", params=["saved_model", "litert"])
def server(request, start):
    running = start(request.param, max_request_bytes=100_000, max_characters=10_000)
    yield running
    running.process.kill()
    running.process.wait()


def expected_rows(exported_classifier, texts):
    outputs = open_export(exported_classifier).compute("serving_default", {"text": texts})
    return [(label.decode(), probability) for label, probability in zip(outputs["label"], outputs["probability"])]


@pytest.mark.slow
def test_answers_are_those_of_the_export(server, exported_classifier):
    assert server.first_line == f"serving films, version 1: http://127.0.0.1:{server.port}/v1/models/films\n"
    status, found = server.predict(instances=TEXTS)
    assert status == 200
    for row, (label, probability) in zip(found["predictions"], expected_rows(exported_classifier, TEXTS), strict=True):
        assert row["label"] == label and row["probability"] == pytest.approx(probability, abs=1e-5)
        assert row["labels"] == ["나쁨", "좋음"]
    assert server.ask("/v1/models/films/versions/1:predict", {"instances": TEXTS}) == (200, found)
    status, columns = server.predict(inputs={"text": TEXTS})
    assert (status, columns["outputs"]["label"]) == (200, [row["label"] for row in found["predictions"]])


@pytest.mark.slow
def test_flags_reach_the_server(server):
    assert server.ask("/v1/models/films/metadata")[1]["model_card"]["labels"] == ["나쁨", "좋음"]
    for body, code, sentence in (
        ({"instances": ["가" * 10_001]}, 400, "text 0 has 10,001 characters, but at most 10,000 are accepted"),
        (b" " * (20 << 20), 413, "the request is larger than 100,000 bytes; send less at once"),
    ):
        assert server.ask("/v1/models/films:predict", body) == (code, {"error": sentence})
    with socket.create_connection(("127.0.0.1", server.port)) as slow:
        slow.sendall(b"POST /v1/models/films:predict HTTP/1.1\r\nHost: x\r\nContent-Length: 90\r\n\r\n{")
        assert server.predict(instances=["x"])[0] == 200
        slow.settimeout(30)
        assert slow.recv(100).startswith(b"HTTP/1.1 408 ")


@pytest.mark.slow
def test_stopped_under_load_it_counts_what_clients_saw(start):
    running = start("litert")
    body = json.dumps({"instances": TEXTS})

    def ask_until_told():
        connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
        num_asked, is_told = 0, False
        while not is_told:
            connection.request("POST", "/v1/models/films:predict", body)
            answer = connection.getresponse()
            assert answer.status == 200 and len(json.loads(answer.read())["predictions"]) == 4
            num_asked, is_told = num_asked + 1, answer.will_close
        return num_asked

    # Requests that are sent as a whole, and whose answers nobody has read yet.
    sent = [http.client.HTTPConnection("127.0.0.1", running.port, timeout=60) for _ in range(200)]
    with concurrent.futures.ThreadPoolExecutor(8) as clients:
        asking = [clients.submit(ask_until_told) for _ in range(8)]
        time.sleep(1)
        assert not any(client.done() for client in asking)
        for connection in sent:
            connection.request("POST", "/v1/models/films:predict", body)
        returncode, rest, errors = running.stop()
        num_asked = sum(client.result() for client in asking)
    assert all(len(json.loads(each.getresponse().read())["predictions"]) == 4 for each in sent)
    counts = re.fullmatch(
        r"stopped; (\S+) requests were answered, (\S+) of them after the signal, and 0 were not\n", rest
    )
    assert int(counts[1].replace(",", "")) == num_asked + 200
    assert 0 < int(counts[2].replace(",", "")) <= num_asked + 200
    assert (returncode, errors) == (0, [])
    with pytest.raises(OSError):
        running.ask("/")


@pytest.mark.slow
def test_taken_port_is_named(exported_classifier):
    pytest.importorskip("starlette", reason="needs uvicorn and starlette: pip install 'albert_tf[serve]'")
    pytest.importorskip("uvicorn", reason="needs uvicorn and starlette: pip install 'albert_tf[serve]'")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "albert_tf", "serve", f"--model_dir={exported_classifier}", f"--port={port}"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    reason = "(Address already in use); choose another port\n"
    assert done.stderr == f"error: can't listen on --host=127.0.0.1 --port={port} {reason}"


def test_folder_without_an_export_is_refused(run_script, tmp_path, assert_refused):
    message = assert_refused(lambda: run_script("serve", model_dir=tmp_path), tmp_path)
    said = f"{tmp_path} holds no exported model; write one with export_model.py"
    assert message.startswith((said, "albert-tf serve needs"))
    message = assert_refused(lambda: run_script("serve", model_dir=tmp_path / "nowhere"), tmp_path)
    assert message == f"--model_dir={tmp_path}/nowhere: there is no such folder; put the name right"


def test_limits_that_can_not_be_kept_are_refused(run_script, tmp_path, assert_refused):
    message = assert_refused(lambda: run_script("serve", model_dir=tmp_path, max_held_bytes=100), tmp_path)
    assert message == (
        "--max_held_bytes=100 is less than --max_request_bytes=4194304: no request of that size would ever be "
        "answered; raise it"
    )


def test_missing_library_is_named(run_script, tmp_path, assert_refused, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "albert_tf.server.server", raising=False)
    message = assert_refused(lambda: run_script("serve", model_dir=tmp_path), tmp_path)
    assert message.startswith("albert-tf serve needs uvicorn, starlette and prometheus_client (")
    assert message.endswith(f"); pip install {with_extra('serve')}")
