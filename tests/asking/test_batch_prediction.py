"""Files of predictions: an answer a line, whole or not at all, and files that can't be read."""

import gzip
import json

import pytest
from tables import write_table
from tiny_config import tiny_config

from albert_tf.asking.batch_prediction import BatchOptions, predict_file
from albert_tf.asking.input_rows import InputRows
from albert_tf.base.errors import InputError
from albert_tf.base.texts import TextTask
from albert_tf.finetuning import Classification, MultipleChoice, QuestionAnswering
from albert_tf.finetuning.datasets import DataFiles

pytestmark = pytest.mark.usefixtures("opened_by")

CONFIG = tiny_config(100)
TEXTS = Classification(CONFIG, ("0", "1"))
PAIRS = Classification(CONFIG, ("0", "1"), DataFiles(text_pair_column="other"))
CHOICES = MultipleChoice(CONFIG, num_choices=3)
OPTIONS = BatchOptions(batch_size=1)


class Echo:
    """Answers with what it is asked; after so many answers it dies."""

    num_cut, num_unknown = 0, 0

    def __init__(self, task=TEXTS, dies_after=None):
        self.task, self.dies_after, self.largest = task, dies_after, 0

    def predict(self, inputs, batch_size):
        if self.dies_after is not None:
            self.dies_after -= len(inputs)
            if self.dies_after < 0:
                raise KeyboardInterrupt
        self.largest = max(self.largest, sum(len(str(value)) for value in inputs))
        return [{"asked": value} for value in inputs]


@pytest.fixture
def write(tmp_path):
    """Writes a file, a gzip file if it is called so, and returns its path."""

    def write_file(name, text):
        path = tmp_path / name
        content = text if isinstance(text, bytes) else text.encode("utf-8")
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return str(path)

    return write_file


def ask(rows):
    return [rows.parse(row).value for row in rows]


def answers(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


@pytest.mark.parametrize("ending", ["txt", "txt.gz"])
def test_every_line_gets_an_answer_in_its_place(write, tmp_path, ending):
    path = write(f"in.{ending}", "\ufeff좋다\n\n  나쁘다\t끝 \r\n\u2028\x0b\x00ㅋㅋ")
    assert predict_file(Echo(), path, str(tmp_path / "out.jsonl"), OPTIONS) == (4, 0)
    found = [answer["asked"] for answer in answers(tmp_path / "out.jsonl")]
    assert found == ["좋다", "", "  나쁘다\t끝 ", "\u2028\x0b\x00ㅋㅋ"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"in.{ending}", "out.jsonl"]


def test_objects_keep_their_ids(write, tmp_path):
    path = write("in.jsonl.gz", '{"text": "좋다", "id": 7}\n"나쁘다"\n{"id": "b", "text": "", "more": 1}\n')
    predict_file(Echo(), path, str(tmp_path / "out.jsonl"), OPTIONS)
    assert answers(tmp_path / "out.jsonl") == [
        {"id": 7, "asked": "좋다"},
        {"asked": "나쁘다"},
        {"id": "b", "asked": ""},
    ]


def test_what_was_asked_stands_beside_the_answers_if_wanted(write, tmp_path):
    options = BatchOptions(skips_bad_lines=True, keeps_inputs=True)
    path = write("in.jsonl", '{"text": "좋다", "id": 7}\n"나쁘다"\n{\n')
    predict_file(Echo(), path, str(tmp_path / "out.jsonl"), options)
    *found, error = answers(tmp_path / "out.jsonl")
    assert found == [{"id": 7, "text": "좋다", "asked": "좋다"}, {"text": "나쁘다", "asked": "나쁘다"}]
    assert list(error) == ["error"]
    predict_file(Echo(CHOICES), write("in.tsv", "글\t물음\t가\t나\t다\n"), str(tmp_path / "two.jsonl"), options)
    [found] = answers(tmp_path / "two.jsonl")
    assert found.pop("asked") and found == {"passage": "글", "question": "물음", "options": ["가", "나", "다"]}
    named = BatchOptions(input_fields=["review"], keeps_inputs=True)
    predict_file(Echo(), write("named.jsonl", '{"review": "좋다"}\n'), str(tmp_path / "three.jsonl"), named)
    assert answers(tmp_path / "three.jsonl") == [{"review": "좋다", "asked": "좋다"}]


def test_id_is_the_files_and_not_one_that_a_task_gives(write, tmp_path, monkeypatch):
    monkeypatch.setattr(Echo, "predict", lambda self, inputs, batch_size: [{"id": "0", "text": ""} for _ in inputs])
    path = write("in.jsonl", '{"id": "a", "text": ""}\n{"text": ""}\n')
    predict_file(Echo(), path, str(tmp_path / "out.jsonl"), OPTIONS)
    assert answers(tmp_path / "out.jsonl") == [{"id": "a", "text": ""}, {"text": ""}]


def test_nothing_is_left_where_the_first_line_is_bad_or_there_is_none(write, tmp_path):
    output = tmp_path / "out.jsonl"
    with pytest.raises(InputError, match="line 1: not JSON"):
        predict_file(Echo(), write("in.jsonl", "{"), str(output), OPTIONS)
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]
    assert predict_file(Echo(), write("in.jsonl", ""), str(output), OPTIONS) == (0, 0)
    assert output.read_bytes() == b"" and len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("task", "name", "line", "value"),
    [
        (PAIRS, "a.tsv", "좋다\t나쁘다", ("좋다", "나쁘다")),
        (QuestionAnswering(CONFIG), "a.txt", "누가?\t내가", ("누가?", "내가")),
        (QuestionAnswering(CONFIG), "a.jsonl", '{"context": "나", "question": "가"}', ("가", "나")),
        (TEXTS, "a.jsonl", r'{"text": "좋\ud800"}', "좋\ufffd"),
        (CHOICES, "a.tsv", "글\t물음\t가\t나\t다", ("글", "물음", ["가", "나", "다"])),
        (CHOICES, "a.json", '[{"passage": "a", "question": "b", "options": ["c", "d", "e"]}]', ("a", "b", [*"cde"])),
    ],
)
def test_lines_ask_what_the_task_reads(write, task, name, line, value):
    assert ask(InputRows(task, write(name, line))) == [value]


LABELLED = [{"id": "7", "document": "좋다, 참", "label": "1"}, {"id": "8", "document": "나쁘다", "label": "0"}]


def labelled(form, columns=("id", "document", "label")):
    """Returns the rows of a labelled file as a file of some form writes them."""
    if form == "jsonl":
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in LABELLED)
    quote = '"{}"'.format if form == "csv" else str
    rows = [[quote(row[name]) for name in columns] for row in LABELLED]
    return "".join({"csv": ",", "tsv": "\t", "txt": "\t"}[form].join(row) + "\n" for row in [columns, *rows])


@pytest.mark.parametrize("form", ["tsv", "jsonl", "csv.gz", "parquet"])
def test_labelled_file_is_understood_as_in_training(write, tmp_path, capsys, form):
    if form == "parquet":
        columns = {name: [row[name] for row in LABELLED] for name in LABELLED[0]}
        path = write_table(tmp_path / f"in.{form}", columns)
    else:
        path = write(f"in.{form}", labelled(form.removesuffix(".gz")))
    assert predict_file(Echo(), path, str(tmp_path / "out.jsonl"), OPTIONS) == (2, 0)
    assert [answer["asked"] for answer in answers(tmp_path / "out.jsonl")] == ["좋다, 참", "나쁘다"]
    understood = {"jsonl": "JSON lines; document is read", "parquet": "Parquet; document is read, id, label not"}
    separated = "comma" if "csv" in form else "tab"
    expected = understood.get(form, f"{separated}-separated; document is read, id, label not")
    assert capsys.readouterr().out == f"{path}: {expected}\n  the first: 좋다, 참\n"


def test_columns_that_mean_nothing_to_the_model_are_refused(write):
    path = write("in.tsv", "id\treview\n7\t좋다\n")
    with pytest.raises(
        InputError, match=r"in.tsv, line 1: 2 columns, but the model reads 1 \(text\); if the line names"
    ):
        InputRows(TEXTS, path)
    assert ask(InputRows(TEXTS, path, ["review"])) == ["좋다"]
    for columns in (["text"], ["id", "text"]):
        with pytest.raises(InputError, match=r"no column named text; .* `input_fields`"):
            InputRows(TEXTS, path, columns)
    with pytest.raises(InputError, match="no column named text; the header has a, b; name the column of each text"):
        InputRows(TEXTS, write("in.csv", "a,b\n1,2\n"))


def test_columns_that_were_joined_in_training_are_joined(write):
    task = TextTask(("text",), ("title,body",))
    for name, content, asked in (
        ("a.tsv", "id\ttitle\tbody\n7\t제목\t좋다\n8\t\t나쁘다\n", ["제목 좋다", "나쁘다"]),
        ("a.csv", "body,title\n좋다,제목\n", ["제목 좋다"]),
        ("a.csv", "body,title,text\n좋다,제목,글\n", ["제목 좋다"]),
        ("a.csv", "id,text\n7,좋다\n", ["좋다"]),
        ("a.jsonl", '{"body": "좋다", "text": "글"}\n{"title": "제목", "body": "나쁘다"}\n', ["좋다", "제목 나쁘다"]),
        ("a.jsonl", '{"text": "좋다"}\n"나쁘다"\n', ["좋다", "나쁘다"]),
    ):
        assert ask(InputRows(task, write(name, content))) == asked, (name, content)
    for name, content in (
        ("a.tsv", "title\tid\n가\t7\n"),
        ("a.csv", "title,id\n가,7\n"),
        ("a.jsonl", '{"title": "가"}\n'),
    ):
        with pytest.raises(InputError, match="no column named body; the header has title"):
            InputRows(task, write(name, content))
    path = write("b.jsonl", '{"x": "가", "y": "나"}\n{"id": 1}\n')
    rows = InputRows(TEXTS, path, ["x", "y"])
    assert rows.description == f"{path}: JSON lines; x and y, joined, are read\n  the first: 가 나"
    with pytest.raises(InputError, match='no "x,y"; add it'):
        ask(rows)
    with pytest.raises(InputError, match="no column named z; the header has x, y, id; name the column of each text"):
        InputRows(TEXTS, path, ["x", "z"])


def test_fields_may_be_called_otherwise(write):
    path = write("a.jsonl", '{"hypothesis": "b", "premise": "a"}')
    assert ask(InputRows(PAIRS, path, ["premise", "hypothesis"])) == [("a", "b")]
    with pytest.raises(InputError, match="`input_fields=premise`: this model reads 2, text and text_pair"):
        InputRows(PAIRS, path, ["premise"])


@pytest.mark.parametrize(
    ("task", "name", "line", "message"),
    [
        (TEXTS, "a.txt", b"\xff", "a.txt, line 3: not valid UTF-8; convert the file"),
        (TEXTS, "a.txt", "좋다".encode("cp949"), "a.txt, line 3: not valid UTF-8 but, by its looks, CP949; convert"),
        (PAIRS, "a.tsv", b"a", "a.tsv, line 3: 1 texts with tabs between them, but the model reads 2: text, text_pair"),
        (CHOICES, "a.tsv", b"a\tb\tc\td", "a.tsv, line 3: must be a passage, a question and a list of 3 options"),
        (TEXTS, "a.jsonl", b"", "a.jsonl, line 3: an empty line, not JSON"),
        (TEXTS, "a.jsonl", b'{"text": NaN}', "a.jsonl, line 3: nothing under text but NaN"),
        (PAIRS, "a.jsonl", b'"text"', 'a.jsonl, line 3: must be a JSON object. Received: "text"'),
        (TEXTS, "a.jsonl", b'{"document": "a"}', 'a.jsonl, line 3: no "text"; add it, or name the column of each'),
        (TEXTS, "a.jsonl", b'{"text": ["a"]}', "a.jsonl, line 3: text holds a list, not one value"),
    ],
)
def test_bad_line_is_named(write, task, name, line, message):
    good = {"a.txt": b"a", "a.tsv": b"\t".join([b"a"] * len(task.input_fields)), "a.jsonl": b'{"text": "a"}'}[name]
    rows = InputRows(task, write(name, b"\n".join([good, good, line, good])))
    with pytest.raises(InputError) as error:
        rows.parse(list(rows)[2])
    assert str(error.value).partition(name)[2].startswith(message.partition(name)[2])


def test_bad_line_is_the_end_or_is_left_out_on_request(write, tmp_path):
    lines = [f'"{number}"' for number in range(40)]
    lines[20] = "{"
    path, output = write("in.jsonl", "\n".join(lines)), tmp_path / "out.jsonl"
    with pytest.raises(InputError, match=r"in.jsonl, line 21: .*; or pass `on_bad_row=skip`$"):
        predict_file(Echo(), path, str(output), OPTIONS)
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]
    assert predict_file(Echo(), path, str(output), BatchOptions(1, None, True)) == (40, 1)
    assert list(answers(output)[20]) == ["error"] and answers(output)[21] == {"asked": "21"}


def test_what_was_cut_is_told_at_the_end_once(write, tmp_path, capsys):
    class Cutting(Echo):
        def predict(self, inputs, batch_size):
            found = super().predict(inputs, batch_size)
            self.num_cut += inputs.count("long")
            self.num_unknown += inputs.count("쀍")
            return found

    path, output = write("in.txt", "long\n쀍\n" + "가\n" * 40 + "long\n"), str(tmp_path / "out.jsonl")
    predictor = Cutting()
    assert predict_file(predictor, path, output, OPTIONS) == (43, 0)
    told = "warning: 2 inputs longer than the model can read; their ends are left out\nwarning: 1 input with words"
    assert told in capsys.readouterr().out
    # What was asked before this file is no part of it.
    predict_file(predictor, write("short.txt", "가\n"), str(tmp_path / "short.jsonl"), OPTIONS)
    assert "warning" not in capsys.readouterr().out


@pytest.mark.parametrize("ending", ["jsonl", "tsv"])
def test_stopped_anywhere_nothing_is_left_and_what_was_there_stays(write, tmp_path, ending):
    path, output = write("in.txt", "가\n" * 40), tmp_path / f"out.{ending}"
    output.write_text("before")
    # As a process that was killed leaves it.
    (tmp_path / f".out.{ending}.unfinished").mkdir()
    (tmp_path / f".out.{ending}.unfinished" / ".answers.unfinished").write_text("half")

    def fail(answers):
        raise InputError("no")

    for predictor, summarize in ((Echo(dies_after=20), None), (Echo(), fail)):
        with pytest.raises((KeyboardInterrupt, InputError)):
            predict_file(predictor, path, str(output), OPTIONS, summarize)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", output.name]
        assert output.read_text() == "before"
    assert predict_file(Echo(), path, str(output), OPTIONS) == (40, 0)
    lines = {"jsonl": ['{"asked": "가"}'] * 40, "tsv": ["asked", *["가"] * 40]}[ending]
    assert output.read_text(encoding="utf-8").splitlines() == lines
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", output.name]


def test_long_lines_come_in_parts_of_bounded_size(write, tmp_path):
    text = "가나다 " * 100_000
    path, predictor = write("in.txt", f"{text}\n" * 12), Echo()
    predict_file(predictor, path, str(tmp_path / "out.jsonl"), BatchOptions(64))
    assert predictor.largest <= 5 * len(text)
    assert len(answers(tmp_path / "out.jsonl")) == 12
