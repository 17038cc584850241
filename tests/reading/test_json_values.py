"""Whatever a table holds is written into an answer as JSON that every program reads."""

import datetime
import decimal
import json
import math
import uuid

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from albert_tf.asking.batch_prediction import BatchOptions, predict_file
from albert_tf.base.errors import InputError
from albert_tf.base.files import read_json, to_json, write_json
from albert_tf.base.texts import TextTask
from albert_tf.reading.values import json_value

VALUES = [
    (None, None),
    (math.nan, None),
    (np.float32("nan"), None),
    (True, True),
    (np.bool_(True), True),
    (np.int64(3), 3),
    (1.5, 1.5),
    ("가", "가"),
    (datetime.datetime(2024, 1, 2, 3, tzinfo=datetime.timezone.utc), "2024-01-02T03:00:00+00:00"),
    (datetime.date(2024, 1, 2), "2024-01-02"),
    (datetime.time(1, 2), "01:02:00"),
    (datetime.timedelta(hours=1), "1:00:00"),
    (decimal.Decimal("12.50"), "12.50"),
    (b"\x00\xff", "00ff"),
    (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    ([1, math.nan, [datetime.date(2024, 1, 2)]], [1, None, ["2024-01-02"]]),
    (np.array([1.0, math.nan]), [1.0, None]),
    ({"a": math.nan, "b": {"c": b"\x01"}}, {"a": None, "b": {"c": "01"}}),
]


@pytest.mark.parametrize(("value", "written"), VALUES, ids=lambda value: str(value)[:20])
def test_value_is_written_as_json(value, written):
    found = json_value({"id": value}, "id")
    assert found == written and json.loads(to_json(found)) == written


@pytest.mark.parametrize("value", [math.inf, [-math.inf], object()])
def test_value_that_json_lacks_is_named(value):
    with pytest.raises(InputError, match=r"id holds .* which can't be written into an answer; leave the column out"):
        json_value({"id": value}, "id")


class Labels:
    """Stands for a model, so that nothing has to be trained."""

    task, identity, num_cut, num_unknown = TextTask(("text",)), "a model", 0, 0

    def predict(self, texts, batch_size=1):
        return [{"label": "1"} for _ in texts]


def test_ids_of_parquet_come_back_in_answers(tmp_path):
    table = {"id": [1.0, math.nan], "text": ["가", "나"]}
    pyarrow.parquet.write_table(pyarrow.table(table), tmp_path / "in.parquet")
    predict_file(Labels(), str(tmp_path / "in.parquet"), str(tmp_path / "out.jsonl"), BatchOptions())
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [json.loads(line, parse_constant=pytest.fail)["id"] for line in lines] == [1.0, None]


def test_what_is_no_number_is_neither_written_nor_read(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", {"loss": math.nan})
    assert not list(tmp_path.iterdir())
    (tmp_path / "a.json").write_text('{"loss": NaN}')
    with pytest.raises(InputError, match=r"a.json: not a JSON object that can be read \(NaN is no JSON\)"):
        read_json(tmp_path / "a.json", "the results")
