"""Requests and answers of the server, route by route: TensorFlow Serving's forms, and a sentence for what is none."""

import base64
import json
import re
import types

import numpy as np
import pytest
from fake_server import PREDICT, checksum
from tiny_config import tiny_config

from albert_tf.asking.answers import rows_of
from albert_tf.asking.cards import check_card
from albert_tf.base.errors import InputError
from albert_tf.server.batching import RefusedError
from albert_tf.server.protocol import format_answer, metadata, parse_request, row_as_json, status

ONE = {"inputs": ["text"], "outputs": {"label": ["string", [None]], "score": ["float32", [None, 2]]}}
TWO = {"inputs": ["text", "text_pair"], "outputs": {"score": ["float32", [None]]}}
MODEL = types.SimpleNamespace(version=3, signatures={"serving_default": ONE, "pairs": TWO}, card={"task": "none"})


def parse(values, max_texts=4, max_characters=5):
    body = values if isinstance(values, bytes) else json.dumps(values).encode()
    return parse_request(body, MODEL, max_texts, max_characters)


@pytest.mark.parametrize(
    "values",
    [
        {"instances": ["가", "나"]},
        {"instances": [{"text": "가"}, "나"]},
        {"instances": [{"text": {"b64": base64.b64encode("가".encode()).decode()}}, "나"]},
        {"instances": [{"b64": base64.b64encode("가".encode()).decode()}, "나"]},
        {"inputs": ["가", "나"]},
        {"inputs": {"text": ["가", "나"]}, "signature_name": "serving_default"},
    ],
)
def test_every_form_asks_the_same(values):
    assert parse(values) == ("serving_default", [("가".encode(),), ("나".encode(),)], "instances" in values)


def test_pairs_come_as_objects_or_columns():
    expected = [(b"a", b"c"), (b"b", b"d")]
    rows = [{"text": "a", "text_pair": "c"}, {"text_pair": "d", "text": "b"}]
    assert parse({"signature_name": "pairs", "instances": rows})[1] == expected
    columns = {"text": ["a", "b"], "text_pair": ["c", "d"]}
    assert parse({"signature_name": "pairs", "inputs": columns})[1] == expected
    assert parse({"signature_name": "pairs", "inputs": {"text": "a", "text_pair": "c"}})[1] == expected[:1]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (b"{", "the request is not valid JSON: "),
        (b"\xff", "the request is not valid JSON: "),
        (b"[" * 100_000, "the request is nested too deeply"),
        ([], 'the request must be an object of "instances" or "inputs" and perhaps "signature_name"'),
        ({}, "an object in the request is empty"),
        ({"signature_name": "pairs"}, 'the request needs either "instances", a list of rows, or "inputs", lists by'),
        ({"instances": ["a"], "signature_name": "x"}, "there is no such signature; there are serving_default, pairs"),
        ({"instances": "a"}, '"instances" must be a list'),
        ({"instances": []}, "the request holds 0 texts; send 1 to 4 at once"),
        ({"instances": ["a"] * 5}, "the request holds 5 texts; send 1 to 4 at once"),
        ({"instances": ["a", None]}, "instance 1 must be a string or an object of text"),
        ({"instances": [{"txt": "a"}]}, "instance 0 must be a string or an object of text"),
        ({"instances": [{"text": ["a"]}]}, "text 0 must be a string"),
        ({"instances": ["123456"]}, "text 0 has 6 characters, but at most 5 are accepted"),
        ({"instances": [{"b64": "?"}]}, "text 0 is not UTF-8 text in base64"),
        ({"instances": [{"b64": "/w=="}]}, "text 0 is not UTF-8 text in base64"),
        (rb'{"instances": ["\ud800"]}', "text 0 holds half a surrogate pair, which is not a character"),
        ({"instances": ["a"], "signature_name": "pairs"}, "instance 0 must be an object of text and text_pair"),
        ({"inputs": {"text": ["a"]}, "signature_name": "pairs"}, '"inputs" must be an object of text and text_pair'),
        (
            {"inputs": {"text": ["a"], "text_pair": ["a", "b"]}, "signature_name": "pairs"},
            "text and text_pair must be lists of strings, and of one length",
        ),
        ({"inputs": [None]}, "text 0 must be a string"),
        ({"instances": [1]}, "the request holds a number, but models read only texts; write it as a string"),
        (b'{"inputs": "a", "inputs": "b"}', "an object in the request is empty, or has the same name twice"),
    ],
)
def test_what_can_not_be_answered_is_said_in_a_sentence(values, message):
    with pytest.raises(RefusedError) as error:
        parse(values)
    assert error.value.status == 400 and str(error.value).startswith(message)


def answer(rows, has_rows):
    return json.loads(format_answer([row_as_json(row) for row in rows], has_rows))


def test_rows_and_columns_are_sent_as_they_were_asked():
    rows = rows_of({"label": np.array([b"a", "나".encode()], object), "score": np.array([[0.5, 1], [2, 3]])})
    assert rows == [{"label": "a", "score": [0.5, 1.0]}, {"label": "나", "score": [2.0, 3.0]}]
    assert answer(rows, has_rows=True) == {"predictions": rows}
    columns = {"label": ["a", "나"], "score": [[0.5, 1.0], [2.0, 3.0]]}
    assert answer(rows, has_rows=False) == {"outputs": columns}
    assert answer([{"score": 1.0}, {"score": 2.0}], has_rows=True) == {"predictions": [1.0, 2.0]}
    assert answer([{"score": 1.0}], has_rows=False) == {"outputs": [1.0]}
    quoted = [{"piece": 'a"b\\\n', "place": None}]
    assert answer(quoted, has_rows=True) == {"predictions": quoted}
    with pytest.raises(ValueError):
        answer([{"score": float("nan")}], has_rows=True)


def test_filler_is_left_out_so_that_answers_do_not_depend_on_their_neighbours():
    outputs = {
        "types": np.array([[b"PER", b""], [b"LOC", b"ORG"], [b"", b""]], object),
        "begins": np.array([[0, -1], [2, 5], [-1, -1]], np.int32),
        "lengths": np.array([1, 2, 0], np.int32),
    }
    expected = [
        {"types": ["PER"], "begins": [0]},
        {"types": ["LOC", "ORG"], "begins": [2, 5]},
        {"types": [], "begins": []},
    ]
    assert rows_of(outputs) == expected
    # What is there stays, whatever it looks like.
    texts = {"texts": np.array([[b"", b"a", b""]], object), "lengths": np.array([3])}
    assert rows_of(texts) == [{"texts": ["", "a", ""]}]
    guesses = np.array([[[b"a", b"b"], [b"", b""]]], object)
    found = rows_of({"guesses": guesses, "p": np.zeros([1, 2, 2]), "lengths": np.array([1])})
    assert found == [{"guesses": [["a", "b"]], "p": [[0.0, 0.0]]}]
    nothing = {"guesses": np.zeros([2, 0, 10], object), "p": np.zeros([2, 0, 10]), "lengths": np.zeros(2, np.int32)}
    assert rows_of(nothing) == [{"guesses": [], "p": []}] * 2


def test_rows_without_lengths_are_left_as_they_are():
    assert rows_of({"mean": np.ones([2, 1]), "pooled": np.ones([2, 1])})[1] == {"mean": [1.0], "pooled": [1.0]}
    labels = {"label": np.array([b"a"], object), "labels": np.array([[b"a", b""]], object), "p": np.array([[0.5, 0.5]])}
    assert rows_of(labels) == [{"label": "a", "labels": ["a", ""], "p": [0.5, 0.5]}], "a label may be an empty string"


def test_export_that_does_not_tell_filler_is_refused():
    card = {"task": "Entities", "labels": [], "input_fields": ["text"], "max_seq_length": 8, "files": {"a": "0"}}
    card["config"] = tiny_config().to_dict()
    signature = {"inputs": ["text"], "outputs": {"types": ["string", [None, None]], "lengths": ["int32", [None]]}}
    check_card({**card, "signatures": {"entities": signature}}, "card")
    del signature["outputs"]["lengths"]
    with pytest.raises(InputError, match='card, signature "entities": there is no output "lengths" to tell filler by'):
        check_card({**card, "signatures": {"entities": signature}}, "card")


def test_model_tells_what_it_is():
    assert status(MODEL)["model_version_status"][0]["version"] == "3"
    assert status(MODEL)["model_version_status"][0]["state"] == "AVAILABLE"
    found = metadata("name", MODEL)
    assert found["model_spec"] == {"name": "name", "signature_name": "", "version": "3"}
    signature = found["metadata"]["signature_def"]["signature_def"]["serving_default"]
    assert signature["inputs"]["text"]["dtype"] == "DT_STRING"
    assert [dim["size"] for dim in signature["outputs"]["score"]["tensor_shape"]["dim"]] == ["-1", "2"]
    assert found["model_card"] == {"task": "none"}


ROUTE = "/v1/models/films"


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
    versioned = server.ask(f"{ROUTE}/versions/3:predict", json.dumps({"instances": ["가"]}).encode())
    assert (versioned.status, versioned.content) == (200, {"predictions": [checksum("가")]})


def test_it_tells_what_it_serves_and_how_it_is(start):
    server = start()
    for path in (ROUTE, f"{ROUTE}/versions/3"):
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
    for method, path, code in (
        ("GET", PREDICT, 405),
        ("POST", ROUTE, 405),
        ("DELETE", "/metrics", 405),
        ("POST", "/v1/models/others:predict", 404),
        ("GET", f"{ROUTE}/versions/2", 404),
        ("GET", "/", 404),
        ("GET", "/openapi.json", 404),
        ("POST", f"{ROUTE}:explain", 404),
        ("OPTIONS", "*", 404),
    ):
        answer = server.ask(path, b"{}" if method == "POST" else None, method)
        assert (path, answer.status, "allow" in answer.headers) == (path, code, code == 405)
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
