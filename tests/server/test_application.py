"""What each route answers, and that there is no other route."""

import json
import re

from fake_server import PREDICT, checksum

MODEL = "/v1/models/films"


def test_predictions_are_those_of_the_model_in_order(start):
    server = start()
    texts = [f"글 {number}" for number in range(100)]  # several batches
    assert server.predict({"instances": texts}).content == {"predictions": [checksum(text) for text in texts]}
    assert server.predict({"inputs": texts}).content == {"outputs": [checksum(text) for text in texts]}
    rows = [{"text": "가", "text_pair": "나"}, {"text": "다", "text_pair": "라"}]
    expected = [{"checksum": checksum("가\t나"), "one": 1}, {"checksum": checksum("다\t라"), "one": 1}]
    assert server.predict({"instances": rows, "signature_name": "pairs"}).content == {"predictions": expected}
    columns = {"text": ["가", "다"], "text_pair": ["나", "라"]}
    expected = {name: [row[name] for row in expected] for name in ("checksum", "one")}
    assert server.predict({"inputs": columns, "signature_name": "pairs"}).content == {"outputs": expected}
    versioned = server.ask(f"{MODEL}/versions/3:predict", json.dumps({"instances": ["가"]}).encode())
    assert (versioned.status, versioned.content) == (200, {"predictions": [checksum("가")]})


def test_it_tells_what_it_serves_and_how_it_is(start):
    server = start()
    for path in (MODEL, f"{MODEL}/versions/3"):
        assert server.ask(path).content["model_version_status"][0]["state"] == "AVAILABLE"
        assert server.ask(f"{path}/metadata").content["model_card"]["task"] == "none"
    assert server.ask("/v2/health/live").content == {"live": True}
    assert server.ask("/v2/health/ready").content == {"ready": True}
    assert server.ask("/v2/health/ready", method="HEAD").content == b""


def test_metrics_are_those_of_prometheus(start):
    server = start()
    server.predict({"instances": ["가"] * 3})
    server.predict(b"")
    answer = server.ask("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = dict(line.rsplit(" ", 1) for line in answer.content.decode().splitlines() if not line.startswith("#"))
    assert found['answers_total{code="200"}'] == found['answers_total{code="400"}'] == "1"
    buckets = [found[f'batch_size_texts_bucket{{le="{bound}"}}'] for bound in ("2.0", "4.0", "+Inf")]
    assert buckets == ["0.0", "1.0", "1.0"]
    assert (found["batch_size_texts_count"], found["batch_size_texts_sum"]) == ("1.0", "3.0")
    assert found['request_predict_seconds_count{model_name="films"}'] == "1.0"
    assert all(re.fullmatch(r"\w+(\{[^{}]+\})?", key) and float(value) >= 0 for key, value in found.items())


def test_there_is_nothing_else(start):
    server = start()
    for method, path, status in (
        ("GET", PREDICT, 405),
        ("PUT", PREDICT, 405),
        ("POST", MODEL, 405),
        ("DELETE", "/metrics", 405),
        ("POST", "/v1/models/others:predict", 404),
        ("GET", f"{MODEL}/versions/2", 404),
        ("GET", f"{MODEL}/", 404),
        ("GET", f"/{MODEL}", 404),
        ("GET", "/", 404),
        ("GET", "/%ff%00", 404),
        ("GET", "/v1/models", 404),
        ("GET", "/docs", 404),
        ("GET", "/openapi.json", 404),
        ("POST", f"{MODEL}:explain", 404),
        ("POST", "/v2/models/films/infer", 404),
        ("POST", "/v2/repository/models/films/unload", 404),
        ("OPTIONS", "*", 404),
        ("CONNECT", "films:80", 404),
    ):
        answer = server.ask(path, b"{}" if method in ("PUT", "POST") else None, method)
        assert (path, answer.status, "allow" in answer.headers) == (path, status, status == 405)
        assert answer.content == {"error": f"there is nothing at this path for this method; ask by POST {PREDICT}"}


def test_failure_of_the_model_is_told_and_logged(start, caplog):
    server = start()
    answer = server.predict({"instances": ["가"], "signature_name": "broken"})
    assert (answer.status, answer.content) == (
        500,
        {"error": "the server has failed at this request; its log says why"},
    )
    assert "ValueError" in caplog.text
    caplog.clear()
    assert server.predict({"instances": ["가"]}).status == 200
