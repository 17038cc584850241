"""Whatever is sent, the answer is right or a sentence, is short, and leaves nothing in the log."""

import base64
import http.client
import json
import random
import re

from fake_server import PREDICT, checksum
from hypothesis import given, settings
from hypothesis import strategies as st

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**6)
    | st.floats()
    | st.text()
    | st.sampled_from(["\ud800", "\udfff가", "\x00", "가" * 2000])
)
VALUES = st.recursive(
    SCALARS,
    lambda values: (
        st.lists(values, max_size=4)
        | st.dictionaries(st.sampled_from(["text", "text_pair", "b64", "x", "\ud800"]), values, max_size=3)
    ),
    max_leaves=12,
)
TEXTS = st.text(st.characters(blacklist_categories=("Cs",)), max_size=20)
# As near to a request as can be, with anything where a request has texts.
REQUESTS = st.fixed_dictionaries(
    {},
    optional={
        "instances": VALUES | st.lists(TEXTS | VALUES, max_size=5),
        "inputs": VALUES | st.fixed_dictionaries({"text": VALUES | st.lists(TEXTS), "text_pair": VALUES | TEXTS}),
        "signature_name": st.sampled_from(["serving_default", "pairs", "none", "가" * 1000]) | VALUES,
        "parameters": VALUES,
    },
)
# What JSON allows to write and few parsers are asked to read.
ODDITIES = [
    b'{"instances": ["a"], "instances": ["b"]}',
    b'{"instances": [{"text": "a", "text": "b"}]}',
    b'{"instances": [NaN]}',
    b'{"instances": [' + b"9" * 50_000 + b"]}",
    b'{"instances": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    b'{"inputs": ' * 900 + b"{}" + b"}" * 900,
    b'{"instances": ["\\ud800"]}',
    b'{"signature_name": "\\ud800", "instances": ["a"]}',
    b'{"instances": ["' + b"\\u0000" * 20_000 + b'"]}',
    b'{"instances": [{"b64": "' + b"A" * 60_001 + b'"}]}',
    b'{"instances": [{"b64": {"b64": "QQ=="}}]}',
    '{"instances": ["가"]}'.encode("utf-16"),
    b'\xef\xbb\xbf{"instances": ["a"]}',
    b"\xed\xa0\x80",
    b"",
]
BODIES = (
    st.binary(max_size=200)
    | REQUESTS.map(lambda values: json.dumps(values).encode())
    | st.tuples(REQUESTS, st.randoms()).map(lambda pair: _damage(*pair))
)


def _damage(values, at_random: random.Random):
    """Returns JSON with a byte of it gone wrong."""
    body = bytearray(json.dumps(values, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    body[at_random.randrange(len(body))] = at_random.randrange(256)
    return bytes(body)


def right_answer(body):
    values = json.loads(body.decode("utf-8-sig"))
    assert set(values) <= {"instances", "inputs", "signature_name"}
    names = ["text", "text_pair"] if values.get("signature_name") == "pairs" else ["text"]
    if "instances" in values:
        rows = [row if isinstance(row, dict) and "b64" not in row else {"text": row} for row in values["instances"]]
    else:
        columns = values["inputs"] if set(names) == set(values["inputs"]) else {"text": values["inputs"]}
        columns = {name: column if isinstance(column, list) else [column] for name, column in columns.items()}
        rows = [dict(zip(names, row)) for row in zip(*(columns[name] for name in names), strict=True)]
    checksums = [checksum(b"\t".join(_utf8(row[name]) for name in names)) for row in rows]
    if len(names) == 1:
        return {"predictions": checksums} if "instances" in values else {"outputs": checksums}
    if "instances" in values:
        return {"predictions": [{"checksum": each, "one": 1} for each in checksums]}
    return {"outputs": {"checksum": checksums, "one": [1] * len(checksums)}}


def _utf8(value):
    return base64.b64decode(value["b64"]) if isinstance(value, dict) else value.encode()


def check_answer(connection, body):
    """Returns the status of an answer, which is right or a sentence."""
    connection.request("POST", PREDICT, body, {"content-type": "application/json"})
    answer = connection.getresponse()
    content = answer.read()
    assert connection.sock is not None and len(content) < 250
    if answer.status == 200:
        assert json.loads(content) == right_answer(body)
    else:
        (error,) = json.loads(content).values()
        assert answer.status == 400 and re.fullmatch("[^\\n]+", error)
    return answer.status


def test_oddities_get_a_right_answer_or_a_sentence(start):
    server = start(max_characters=1000)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    statuses = [check_answer(connection, body) for body in ODDITIES]
    assert [ODDITIES[number] for number, status in enumerate(statuses) if status == 200] == [ODDITIES[-3]]
    connection.close()


def test_every_body_gets_a_right_answer_or_a_sentence(start):
    server = start(max_characters=1000, max_texts=4)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    statuses = set()

    @settings(max_examples=100, deadline=None)
    @given(BODIES)
    def send(body):
        statuses.add(check_answer(connection, body))

    send()
    connection.close()
    assert 400 in statuses and statuses <= {200, 400}
    assert server.predict({"instances": ["가"]}).content == {"predictions": [checksum("가")]}
