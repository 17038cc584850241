"""TensorFlow Serving's REST protocol for texts: what requests ask, and answers as they are sent.

https://www.tensorflow.org/tfx/serving/api_rest; of its forms all that make sense for string inputs: rows under
"instances", or columns under "inputs".
"""

import base64
import binascii
import json
import typing

from albert_tf.exports import DEFAULT, Export
from albert_tf.text_encoding import replace_halves


class BadRequestError(Exception):
    """A request that can't be answered, and a sentence that says why."""


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


def parse_request(body: typing.Any, model: Export, max_texts: int, max_characters: int) -> Question:
    """Returns what a request asks.

    Args:
        body: The request's JSON: bytes, or values that they were read as.
        model: Whom it asks.
        max_texts: Most texts in one request.
        max_characters: Longest text.

    Raises:
        BadRequestError: Nothing that the model can answer.
    """
    values = _parse_json(body)
    if not isinstance(values, dict):
        raise BadRequestError(f"the request must be a JSON object. Received: {_short(values)}")
    signature = values.get("signature_name", DEFAULT)
    if not isinstance(signature, str) or signature not in model.signatures:
        raise BadRequestError(f"there is no signature {_short(signature)}; there are {', '.join(model.signatures)}")
    has_rows = "instances" in values
    if has_rows == ("inputs" in values):
        raise BadRequestError('the request needs either "instances", a list of rows, or "inputs", lists by name')
    names = model.signatures[signature]["inputs"]
    if has_rows:
        columns = _columns_of_rows(values["instances"], names, max_texts)
    else:
        columns = _columns(values["inputs"], names, max_texts)
    texts = {
        name: [_text(value, f"{name} {number}", max_characters) for number, value in enumerate(column)]
        for name, column in columns.items()
    }
    return Question(signature, texts, has_rows)


def format_answer(question: Question, rows: list[dict[str, typing.Any]]) -> dict[str, typing.Any]:
    """Returns what a request is answered, given a row for each text; where there is one output, only its values."""
    names = list(rows[0])
    if not question.has_rows:
        columns = {name: [row[name] for row in rows] for name in names}
        return {"outputs": columns if len(names) > 1 else columns[names[0]]}
    return {"predictions": rows if len(names) > 1 else [row[names[0]] for row in rows]}


def status(model: Export) -> dict:
    """Returns what GET /v1/models/NAME answers of a model that can be asked."""
    state = {"error_code": "OK", "error_message": ""}
    return {"model_version_status": [{"version": str(model.version), "state": "AVAILABLE", "status": state}]}


def metadata(name: str, model: Export) -> dict:
    """Returns what GET /v1/models/NAME/metadata answers, and the model's card beside it."""
    definitions = {
        signature: {
            "inputs": {each: _tensor_info("DT_STRING", [-1]) for each in about["inputs"]},
            "outputs": {each: _tensor_info(_dtype(dtype), shape) for each, (dtype, shape) in about["outputs"].items()},
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
    if not isinstance(body, bytes | bytearray):
        return body
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequestError(f"the request is not valid JSON: {error}") from error


def _columns_of_rows(rows, names, max_texts):
    if not isinstance(rows, list):
        raise BadRequestError(f'"instances" must be a list. Received: {_short(rows)}')
    _check_count(len(rows), max_texts)
    for number, row in enumerate(rows):
        if len(names) == 1 and _is_text(row):
            continue
        if not isinstance(row, dict) or set(row) != set(names):
            wanted = " and ".join(f'"{name}"' for name in names)
            or_text = "a string or " if len(names) == 1 else ""
            raise BadRequestError(
                f"instance {number} must be {or_text}an object with {wanted}. Received: {_short(row)}"
            )
    return {name: [row if len(names) == 1 and _is_text(row) else row[name] for row in rows] for name in names}


def _columns(inputs, names, max_texts):
    if len(names) == 1 and not (isinstance(inputs, dict) and set(inputs) == set(names)):
        inputs = {names[0]: inputs}
    if not isinstance(inputs, dict) or set(inputs) != set(names):
        wanted = " and ".join(f'"{name}"' for name in names)
        raise BadRequestError(f'"inputs" must be an object with {wanted}. Received: {_short(inputs)}')
    columns = {name: [column] if _is_text(column) else column for name, column in inputs.items()}
    for name, column in columns.items():
        if not isinstance(column, list):
            raise BadRequestError(f'"{name}" must be a list of strings. Received: {_short(column)}')
        _check_count(len(column), max_texts)
    if len({len(column) for column in columns.values()}) > 1:
        raise BadRequestError(f"the lists {', '.join(columns)} must be of one length")
    return columns


def _check_count(count, max_texts):
    if not count:
        raise BadRequestError("the request holds no text")
    if count > max_texts:
        raise BadRequestError(f"the request holds {count:,} texts, and at most {max_texts:,} are taken; send several")


def _is_text(value):
    return isinstance(value, str) or (isinstance(value, dict) and list(value) == ["b64"])


def _text(value, place, max_characters):
    """Returns a string, or what {"b64": ...} stands for, as UTF-8."""
    if isinstance(value, dict) and list(value) == ["b64"]:
        try:
            value = base64.b64decode(value["b64"], validate=True).decode("utf-8")
        except (TypeError, ValueError, binascii.Error) as error:
            raise BadRequestError(f"{place} is no UTF-8 text in base64") from error
    if not isinstance(value, str):
        raise BadRequestError(f"{place} must be a string. Received: {_short(value)}")
    if len(value) > max_characters:
        raise BadRequestError(f"{place} has {len(value):,} characters, and at most {max_characters:,} are taken")
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadRequestError(f"{place} holds half a surrogate pair, which is no character") from error


def _tensor_info(dtype, shape):
    sizes = [{"size": str(-1 if size is None else size), "name": ""} for size in shape]
    return {"dtype": dtype, "tensor_shape": {"dim": sizes, "unknown_rank": False}, "name": ""}


def _dtype(name):
    return {"string": "DT_STRING", "float32": "DT_FLOAT", "int32": "DT_INT32"}[name]


def _short(value):
    text = replace_halves(json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= 60 else f"{text[:57]}..."
