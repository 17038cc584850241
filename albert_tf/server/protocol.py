"""TensorFlow Serving's REST protocol for texts: what requests ask, and answers as they are sent.

https://www.tensorflow.org/tfx/serving/api_rest; of its forms all that make sense for string inputs: rows under
"instances", or columns under "inputs". No sentence repeats what the request holds: a stranger decides how long that is.
"""

import base64
import json
import typing

from albert_tf.exports import DEFAULT, Export
from albert_tf.server.options import RefusedError


class Question(typing.NamedTuple):
    """What a request asks.

    Attributes:
        signature: Of which signature.
        texts: UTF-8 by input, as many of each.
        has_rows: Whether answers are sent as rows too.
    """

    signature: str
    texts: dict[str, list[bytes]]
    has_rows: bool


def parse_request(body: bytes, model: Export, max_texts: int, max_characters: int) -> Question:
    """Returns what a request asks.

    Args:
        body: The request's JSON.
        model: Whom it asks.
        max_texts: Most texts in one request.
        max_characters: Longest text.

    Raises:
        RefusedError: Nothing that the model can answer.
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
    columns = (_columns_of_rows if has_rows else _columns)(values["instances" if has_rows else "inputs"], names)
    count = len(columns[names[0]])
    if any(len(column) != count for column in columns.values()):
        raise RefusedError(400, f"the lists {', '.join(names)} must be of one length")
    if not 0 < count <= max_texts:
        raise RefusedError(400, f"the request holds {count:,} texts; send 1 to {max_texts:,} at once")
    texts = {
        name: [_text(value, f"{name} {number}", max_characters) for number, value in enumerate(columns[name])]
        for name in names
    }
    return Question(signature, texts, has_rows)


def row_as_json(row: dict[str, typing.Any]) -> dict[str, str]:
    """Returns what a model says of a text as JSON by name, which costs time and so is best done in another thread.

    Raises:
        ValueError: A number is infinite, or none.
    """
    return {
        name: json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        for name, value in row.items()
    }


def format_answer(question: Question, rows: list[dict[str, str]]) -> bytes:
    """Returns what a request is answered, given JSON for each text; where there is one output, only its values."""
    names = list(rows[0])
    if question.has_rows:
        items = ",".join(_object(row) if len(names) > 1 else row[names[0]] for row in rows)
        return f'{{"predictions":[{items}]}}'.encode()
    columns = {name: f"[{','.join(row[name] for row in rows)}]" for name in names}
    return f'{{"outputs":{_object(columns) if len(names) > 1 else columns[names[0]]}}}'.encode()


def status(model: Export) -> dict:
    """Returns what GET /v1/models/NAME answers of a model that can be asked."""
    state = {"error_code": "OK", "error_message": ""}
    return {"model_version_status": [{"version": str(model.version), "state": "AVAILABLE", "status": state}]}


def metadata(name: str, model: Export) -> dict:
    """Returns what GET /v1/models/NAME/metadata answers, and the model's card beside it."""
    definitions = {
        signature: {
            "inputs": {each: _tensor_info("string", [None]) for each in about["inputs"]},
            "outputs": {each: _tensor_info(dtype, shape) for each, (dtype, shape) in about["outputs"].items()},
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
    raise RefusedError(400, "the request holds a number, and models read texts alone; write it as a string")


def _object_of_pairs(pairs):
    values = dict(pairs)
    if len(values) < len(pairs):
        raise RefusedError(400, "an object in the request has the same name twice")
    return values


# No request that can be answered holds a number, so that none is ever converted, however many digits it has.
_DECODER = json.JSONDecoder(
    parse_int=_refuse_number,
    parse_float=_refuse_number,
    parse_constant=_refuse_number,
    object_pairs_hook=_object_of_pairs,
)


def _columns_of_rows(rows, names):
    if not isinstance(rows, list):
        raise RefusedError(400, '"instances" must be a list')
    for number, row in enumerate(rows):
        if not (len(names) == 1 and _is_text(row)) and not (isinstance(row, dict) and row.keys() == set(names)):
            or_text = "a string or " if len(names) == 1 else ""
            raise RefusedError(400, f"instance {number} must be {or_text}an object with {_quoted(names)}")
    return {name: [row if len(names) == 1 and _is_text(row) else row[name] for row in rows] for name in names}


def _columns(inputs, names):
    if len(names) == 1 and not (isinstance(inputs, dict) and inputs.keys() == set(names)):
        inputs = {names[0]: inputs}
    if not isinstance(inputs, dict) or inputs.keys() != set(names):
        raise RefusedError(400, f'"inputs" must be an object with {_quoted(names)}')
    columns = {name: [column] if _is_text(column) else column for name, column in inputs.items()}
    for name, column in columns.items():
        if not isinstance(column, list):
            raise RefusedError(400, f'"{name}" must be a list of strings')
    return columns


def _is_text(value):
    return isinstance(value, str) or (isinstance(value, dict) and list(value) == ["b64"])


def _text(value, place, max_characters):
    """Returns a string, or what {"b64": ...} stands for, as UTF-8."""
    if isinstance(value, dict) and list(value) == ["b64"]:
        try:
            value = base64.b64decode(value["b64"], validate=True).decode("utf-8")
        except (TypeError, ValueError) as error:
            raise RefusedError(400, f"{place} is no UTF-8 text in base64") from error
    if not isinstance(value, str):
        raise RefusedError(400, f"{place} must be a string")
    if len(value) > max_characters:
        raise RefusedError(400, f"{place} has {len(value):,} characters, and at most {max_characters:,} are taken")
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise RefusedError(400, f"{place} holds half a surrogate pair, which is no character") from error


def _object(values):
    return "{" + ",".join(f'"{name}":{value}' for name, value in values.items()) + "}"


def _quoted(names):
    return " and ".join(f'"{name}"' for name in names)


def _tensor_info(dtype, shape):
    sizes = [{"size": str(-1 if size is None else size), "name": ""} for size in shape]
    dtype = {"string": "DT_STRING", "float32": "DT_FLOAT", "int32": "DT_INT32"}[dtype]
    return {"dtype": dtype, "tensor_shape": {"dim": sizes, "unknown_rank": False}, "name": ""}
