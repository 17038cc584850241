"""A setting's value, or one that is read from JSON, is of its type, or refused in a sentence."""

import dataclasses
import math
import pathlib
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tf.base.errors import InputError
from albert_tf.base.settings import LOGARITHMIC, Settings, changed, check_types, free, place, setting, settings_of


@dataclasses.dataclass(frozen=True, kw_only=True)
class Several(Settings):
    count: int = setting(3, "How many.", least=1, most=9)
    rate: float = setting(0.5, "How fast.", above=0, below=1, search=LOGARITHMIC)
    kind: str = setting("plain", "Which.", choices=("plain", "Fancy"))
    is_on: bool | None = setting(None, "Whether.")
    labels: tuple[str, ...] = free((), "Of what.")
    steps: tuple[int, ...] | None = free(None, "When.", in_python=False)
    folder: str | None = place(None, "Where.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class More(Several):
    count: int = changed(5, most=None)


KNOWN = settings_of(Several)


def outcome(function, value):
    try:
        return function(value)
    except InputError as error:
        return str(error)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("count", 0, "`count` must be a whole number, at least 1 and at most 9. Received: 0"),
        ("count", True, "`count` must be a whole number, at least 1 and at most 9. Received: True"),
        ("rate", 1, "`rate` must be a number above 0 and below 1. Received: 1"),
        ("rate", math.nan, "`rate` must be a number above 0 and below 1. Received: nan"),
        ("kind", "odd", "`kind` must be one of plain, Fancy. Received: odd"),
        ("is_on", "perhaps", "`is_on` must be true or false. Received: perhaps"),
        ("labels", "a", "`labels` must be a list of texts. Received: a"),
        ("folder", 5, "`folder` must be a text. Received: 5"),
        ("count", None, "`count` must be a whole number, at least 1 and at most 9. Received: None (NoneType)"),
    ],
)
def test_what_it_can_not_be_is_refused(name, value, message):
    with pytest.raises(InputError) as error:
        Several(**{name: value})
    assert str(error.value) == message


@given(st.one_of(st.integers(), st.floats(), st.booleans(), st.text(max_size=9)))
def test_number_is_one_as_a_text_too(value):
    for name in ("count", "rate"):
        of_text = outcome(KNOWN[name].parse, f"{value:.10g}" if isinstance(value, float) else str(value))
        found = outcome(KNOWN[name].check, value)
        if isinstance(found, str) or isinstance(value, bool):
            assert found.startswith(f"`{name}` must be ")
        elif isinstance(value, int | float):
            assert of_text == pytest.approx(found)


@given(st.lists(st.text(st.characters(exclude_characters='",\n\r\0', exclude_categories=["Cs"]), min_size=1)))
def test_list_is_one_as_a_text_too(values):
    values = [value.strip() or "x" for value in values]
    assert KNOWN["labels"].parse(",".join(values)) == tuple(values) == KNOWN["labels"].check(values)


def test_texts_are_read_as_flags_are():
    assert KNOWN["labels"].parse('a,"b,c"') == ("a", "b,c")
    assert outcome(KNOWN["labels"].parse, '"a') == "`labels=\"a` can't be split at its commas (unexpected end of data)"
    assert KNOWN["kind"].parse("fancy") == "Fancy"
    assert [KNOWN["is_on"].parse(text) for text in ("true", "F", "1")] == [True, False, True]
    assert KNOWN["steps"].parse("1,2") == (1, 2)
    assert Several(folder=pathlib.Path("a")).folder == "a"


def test_what_is_known_is_looked_up():
    assert Several.names(same_on_resume=True) == ("count", "rate", "kind", "is_on")
    assert Several.names(place=True) == ("folder",)
    assert Several(labels=["a"]).kept() == {"count": 3, "rate": 0.5, "kind": "plain", "is_on": None}
    assert (More().count, settings_of(More)["count"].most, More(count=99).count) == (5, None, 99)
    assert More.assumed()["count"] == 5
    given_ones = Several.of({"rate": 0.1})
    assert given_ones.given == {"rate"} and given_ones.changed(rate=0.2).given == {"rate"}
    for name, message in (("rat", "did you mean rate?"), ("steps", "is not a setting"), ("lr", "is called rate here")):
        with pytest.raises(InputError, match=message.replace("?", r"\?")):
            Several.of({name: 1}, {"lr": "rate"})


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
        ({"rate": "1"}, "\"rate\" must be a number. Received: '1' (str)"),
        ({"name": 5}, '"name" must be a text or null. Received: 5 (int)'),
        ({"labels": ["a", 1]}, "\"labels\" must be a list. Received: ['a', 1] (list)"),
        ({"sizes": {"a": None}}, "\"sizes\" must be an object. Received: {'a': None} (dict)"),
        ({"inside": {"length": "2"}}, 'a.json, "inside": "length" must be a whole number. Received: \'2\' (str)'),
    ],
)
def test_value_of_another_type_is_named(changes, message):
    with pytest.raises(InputError) as error:
        check_types(changes, TYPES, "a.json")
    assert message in str(error.value)


def test_what_is_missing_is_named():
    with pytest.raises(InputError, match=r'a.json: "count" is missing; the file was changed, or another program wrote'):
        check_types({"flag": True}, TYPES, "a.json", required=("flag", "count"))
    with pytest.raises(InputError, match=r"a.json must hold a JSON object. Received: None"):
        check_types(None, TYPES, "a.json")
