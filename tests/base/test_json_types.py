"""What is written as JSON and read again has the types that are expected, or is told in a sentence."""

import typing

import pytest

from albert_tf.base.errors import InputError
from albert_tf.base.settings import check_types

TYPES = {
    "flag": bool,
    "count": int,
    "rate": float,
    "name": str | None,
    "labels": list[str],
    "sizes": dict[str, int],
    "inside": {"length": int},
    "anything": typing.Any,
}


def test_values_of_the_expected_types_pass():
    values = {"flag": True, "count": 3, "rate": 1, "name": None, "labels": ["a"], "sizes": {"a": 1}}
    values |= {"inside": {"length": 2, "more": None}, "anything": [None], "unexpected": {}}
    assert check_types(values, TYPES, "a.json") is values
    assert check_types({}, TYPES, "a.json") == {}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"flag": 1}, '"flag" must be true or false. Received: 1 (int); the file was changed, or another program'),
        ({"count": True}, '"count" must be a whole number. Received: True (bool)'),
        ({"count": 1.0}, '"count" must be a whole number. Received: 1.0 (float)'),
        ({"rate": "1"}, "\"rate\" must be a number. Received: '1' (str)"),
        ({"name": 5}, '"name" must be a text or null. Received: 5 (int)'),
        ({"labels": ["a", 1]}, "\"labels\" must be a list. Received: ['a', 1] (list)"),
        ({"sizes": {"a": None}}, "\"sizes\" must be an object. Received: {'a': None} (dict)"),
        ({"inside": []}, 'a.json, "inside" must hold a JSON object. Received: [] (list)'),
        ({"inside": {"length": "2"}}, 'a.json, "inside": "length" must be a whole number. Received: \'2\' (str)'),
    ],
)
def test_value_of_another_type_is_named(changes, message):
    with pytest.raises(InputError) as error:
        check_types(changes, TYPES, "a.json")
    assert message in str(error.value)


def test_what_is_missing_is_named():
    with pytest.raises(
        InputError,
        match=r'a.json: "count" is missing; the file was changed, or another program '
        r"wrote it",
    ):
        check_types({"flag": True}, TYPES, "a.json", required=("flag", "count"))
    with pytest.raises(InputError, match=r"a.json must hold a JSON object. Received: None"):
        check_types(None, TYPES, "a.json")
