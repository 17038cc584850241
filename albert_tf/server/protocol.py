"""TensorFlow Serving's REST protocol for texts: requests, and answers as they are sent.

https://www.tensorflow.org/tfx/serving/api_rest; of its forms all that make sense for string inputs: rows under
"instances", or columns under "inputs". No sentence repeats a part of the request: a stranger decides how long it is.
"""

import base64
import json
import typing

from albert_tf.asking.answers import DEFAULT, LENGTHS
from albert_tf.asking.backend import Export
from albert_tf.server.batching import RefusedError


def parse_request(
    body: bytes, model: Export, max_texts: int, max_characters: int
) -> tuple[str, list[tuple[bytes, ...]], bool]:
    """Returns a request's signature, rows of UTF-8 texts, and whether it wants rows rather than columns.

    RefusedError if the model can't answer it.
    """
    values = _parse_json(body)
    if not isinstance(values, dict) or not values.keys() <= {"signature_name", "instances", "inputs"}:
        raise RefusedError(400, 'the request must be an object of "instances" or "inputs" and perhaps "signature_name"')
    signature = values.get("signature_name", DEFAULT)
    if not isinstance(signature, str) or signature not in model.signatures:
        raise RefusedError(400, f"there is no such signature; there are {', '.join(model.signatures)}")
    has_rows = "instances" in values
    if has_rows == ("inputs" in values):
        raise RefusedError(400, 'the request needs either "instances", a list of rows, or "inputs", lists by name')
    names = model.signatures[signature]["inputs"]
    if has_rows:
        rows = _rows(values["instances"], names, max_texts)
    else:
        rows = _rows_of_columns(values["inputs"], names, max_texts)
    texts = [
        tuple(_text(value, f"{name} {number}", max_characters) for name, value in zip(names, row))
        for number, row in enumerate(rows)
    ]
    return signature, texts, has_rows


def row_as_json(row: dict[str, typing.Any]) -> dict[str, bytes]:
    """Returns a row of outputs as JSON by name; raises ValueError if a number is infinite or NaN."""
    return {
        name: json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        for name, value in row.items()
    }


def format_answer(rows: list[dict[str, bytes]], has_rows: bool) -> bytes:
    """Returns the body of an answer, given JSON for each row; where there is one output, only its values."""
    names = list(rows[0])
    if has_rows:
        items = (_object(row) if len(names) > 1 else row[names[0]] for row in rows)
        return b'{"predictions":[%b]}' % b",".join(items)
    columns = {name: b"[%b]" % b",".join(row[name] for row in rows) for name in names}
    return b'{"outputs":%b}' % (_object(columns) if len(names) > 1 else columns[names[0]])


def status(model: Export) -> dict:
    """Returns the answer of GET /v1/models/NAME for a model that can be asked."""
    state = {"error_code": "OK", "error_message": ""}
    return {"model_version_status": [{"version": str(model.version), "state": "AVAILABLE", "status": state}]}


def metadata(name: str, model: Export) -> dict:
    """Returns the answer of GET /v1/models/NAME/metadata, and the model's card beside it."""
    definitions = {
        signature: {
            "inputs": {each: _tensor_info("string", [None]) for each in about["inputs"]},
            "outputs": {
                each: _tensor_info(dtype, shape)
                for each, (dtype, shape) in about["outputs"].items()
                if each != LENGTHS  # rows are sent without filler
            },
            "method_name": "tensorflow/serving/predict",
        }
        for signature, about in model.signatures.items()
    }
    return {
        "model_spec": {"name": name, "signature_name": "", "version": str(model.version)},
        "metadata": {"signature_def": {"signature_def": definitions}},
        "model_card": model.card,
    }


def _parse_json(body):
    try:
        return _DECODER.decode(body.decode("utf-8-sig"))
    except RecursionError as error:
        raise RefusedError(400, "the request is nested too deeply") from error
    except ValueError as error:
        raise RefusedError(400, f"the request is not valid JSON: {error}") from error


def _refuse_number(_):
    raise RefusedError(400, "the request holds a number, but models read only texts; write it as a string")


def _object_of_pairs(pairs):
    values = dict(pairs)
    if not 0 < len(values) == len(pairs):
        raise RefusedError(400, "an object in the request is empty, or has the same name twice")
    return values


# No request that can be answered holds a number, so that none is ever converted, however many digits it has.
_DECODER = json.JSONDecoder(
    parse_int=_refuse_number,
    parse_float=_refuse_number,
    parse_constant=_refuse_number,
    object_pairs_hook=_object_of_pairs,
)


def _rows(instances, names, max_texts):
    if not isinstance(instances, list):
        raise RefusedError(400, '"instances" must be a list')
    _check_count(len(instances), max_texts)
    rows = [{names[0]: row} if len(names) == 1 and _is_text(row) else row for row in instances]
    for number, row in enumerate(rows):
        if not isinstance(row, dict) or row.keys() != set(names):
            or_text = "a string or " if len(names) == 1 else ""
            raise RefusedError(400, f"instance {number} must be {or_text}an object of {' and '.join(names)}")
    return [[row[name] for name in names] for row in rows]


def _rows_of_columns(inputs, names, max_texts):
    if len(names) == 1 and not (isinstance(inputs, dict) and inputs.keys() == set(names)):
        inputs = {names[0]: inputs}
    if not isinstance(inputs, dict) or inputs.keys() != set(names):
        raise RefusedError(400, f'"inputs" must be an object of {" and ".join(names)}')
    columns = [[inputs[name]] if _is_text(inputs[name]) else inputs[name] for name in names]
    if not all(isinstance(column, list) for column in columns) or len({len(column) for column in columns}) > 1:
        raise RefusedError(400, f"{' and '.join(names)} must be lists of strings, and of one length")
    _check_count(len(columns[0]), max_texts)
    return list(zip(*columns))


def _check_count(count, max_texts):
    if not 0 < count <= max_texts:
        raise RefusedError(400, f"the request holds {count:,} texts; send 1 to {max_texts:,} at once")


def _is_text(value):
    return isinstance(value, str) or (isinstance(value, dict) and list(value) == ["b64"])


def _text(value, place, max_characters):
    """Returns a string, or what {"b64": ...} stands for, as UTF-8."""
    if isinstance(value, dict) and list(value) == ["b64"]:
        try:
            value = base64.b64decode(value["b64"], validate=True).decode("utf-8")
        except (TypeError, ValueError) as error:
            raise RefusedError(400, f"{place} is not UTF-8 text in base64") from error
    if not isinstance(value, str):
        raise RefusedError(400, f"{place} must be a string")
    if len(value) > max_characters:
        raise RefusedError(400, f"{place} has {len(value):,} characters, but at most {max_characters:,} are accepted")
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise RefusedError(400, f"{place} holds half a surrogate pair, which is not a character") from error


def _object(values):
    return b"{%b}" % b",".join(b'"%b":%b' % (name.encode(), value) for name, value in values.items())


def _tensor_info(dtype, shape):
    sizes = [{"size": str(-1 if size is None else size), "name": ""} for size in shape]
    dtype = {"string": "DT_STRING", "float32": "DT_FLOAT", "int32": "DT_INT32"}[dtype]
    return {"dtype": dtype, "tensor_shape": {"dim": sizes, "unknown_rank": False}, "name": ""}
