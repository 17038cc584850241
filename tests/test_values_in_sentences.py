"""Whatever a user's file holds, a sentence that repeats it stays one line, and shows a hundred characters of it."""

import json
import re

import pytest
from tables import write_table
from tiny_config import tiny_config

from albert_tf.asking.cards import check_card
from albert_tf.base.errors import InputError, describe, listed, quote, shorten
from albert_tf.base.files import name_in_folder, read_json
from albert_tf.config import AlbertConfig
from albert_tf.finetuning import Classification, Entities, MultiLabel, Regression
from albert_tf.finetuning.datasets import DataFiles
from albert_tf.finetuning.tasks.multiple_choice import read_questions as read_choices
from albert_tf.finetuning.tasks.squad import read_questions
from albert_tf.finetuning.tasks.tagged_text import read_tagged
from albert_tf.pretraining_data.manifest import read_manifest
from albert_tf.reading.documents import CorpusReader
from albert_tf.reading.rows import RowFile
from albert_tf.serving.choosing import read_template
from albert_tf.tokenization import load_tokenizer
from albert_tf.tokenization.vocabulary import Vocabulary

# Each of its lines would be a line of a log.
LONG = "긴\n" * 5000
# Where a line is a row, it has other line ends than a text file's.
LINE = "긴\u2028" * 5000
WORD = "긴" * 10_000


@pytest.mark.parametrize("show", [shorten, quote, describe, lambda value: listed([value])])
@pytest.mark.parametrize("value", [LONG, LINE, WORD, [LONG], {LONG: 1}, "\x1b[31m" * 9999, "\r" * 9999])
def test_value_is_shown_in_a_line_of_a_hundred_characters(show, value):
    shown = show(value)
    assert len(shown.removesuffix(f" ({type(value).__name__})")) == 103 and shown.isprintable()


def test_short_values_are_shown_as_they_are():
    assert (shorten("가 나"), quote("가 나"), describe(1.5)) == ("가 나", "'가 나'", "1.5 (float)")
    assert (listed([]), listed(["a", 1]), listed(range(99))) == ("", "a, 1", f"{', '.join(map(str, range(50)))}, ...")


def as_lines(*rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def read_rows(path):
    """Reads a file's rows, and stops at the first that can't be used."""
    for row in RowFile(path):
        if row.error:
            raise InputError(row.error)


def read_as(task, **files):
    config = tiny_config(30)
    return lambda path: task(config, files=DataFiles(**files)).read(path)


def labelled(*labels):
    return lambda path: Classification(tiny_config(30), labels).read(path)


def several(path):
    return MultiLabel(tiny_config(30), ("a", "b")).read(path)


def squad(**entry):
    entry = {"id": "1", "question": "무엇?", "answers": [], **entry}
    return json.dumps({"data": [{"paragraphs": [{"context": "글", "qas": [entry, entry]}]}]})


def choices(**values):
    return as_lines({"passage": "글", "question": "무엇?", "options": ["가", "나"], "answer": "A", **values})


def read_card(path):
    return check_card(read_json(path, "the model card"), path)


CARD = {"task": "", "labels": [], "input_fields": [], "max_seq_length": 9, "files": {"a": "0"}}
CARD["config"] = tiny_config(30).to_dict()

# The name of a file, what is in it, and what reads it.
CASES = {
    "column of a CSV file": ("rows.csv", f'"{LONG}",b\n1,2\n', labelled("0", "1")),
    "columns of a TSV file": ("rows.tsv", f"{WORD}\t" * 60 + "b\n1\t2\n", labelled("0", "1")),
    "label in CSV": ("rows.csv", f'document,label\n가,"{LONG}"\n', labelled("0", "1")),
    "list as label": ("rows.csv", f"""document,label\n가,"['{LONG}']"\n""", labelled("0", "1")),
    "one of several labels": ("rows.jsonl", as_lines({"document": "가", "label": [LONG]}), several),
    "empty label": ("rows.jsonl", as_lines({"document": "가", "label": [LONG, ""]}), several),
    "list that can't be read": ("rows.csv", f"""document,label\n가,"['{WORD}' 'x' {WORD}]"\n""", several),
    "number": ("rows.csv", f'document,label\n가,"{LONG}"\n', lambda path: Regression(tiny_config(30)).read(path)),
    "name twice in JSON": ("rows.jsonl", f'{{"{WORD}": 1, "{WORD}": 2}}\n', read_rows),
    "column inside of another": ("rows.jsonl", as_lines({LONG: {"b": 1}, f"{LONG}.b": 2}), read_rows),
    "object in place of a label": ("rows.jsonl", as_lines({"document": "가", "label": {LONG: 1}}), labelled("0", "1")),
    "id of SQuAD": ("dev.json", squad(id=LONG), lambda path: read_questions(path, False)),
    "value of SQuAD": ("dev.json", squad(question=[LONG]), lambda path: read_questions(path, False)),
    "options": ("dev.jsonl", choices(options=LONG), lambda path: read_choices(path, ())),
    "answer": ("dev.jsonl", choices(answer=LONG), lambda path: read_choices(path, ())),
    "tag": ("train.tsv", f"가\t{WORD}\n", lambda path: read_tagged(path, "words", True)),
    "type": ("train.tsv", f"가\tB-{WORD}\n", lambda path: Entities(tiny_config(30), ("PER",)).read(path)),
    "key of a config": ("config.json", json.dumps({LONG: 1}), AlbertConfig.from_json_file),
    "value of a config": ("config.json", json.dumps({"vocab_size": LONG}), AlbertConfig.from_json_file),
    "key of a manifest": ("manifest.json", json.dumps({"splits": {LONG: {"files": 1}}}), read_manifest),
    "signature of a card": ("card.json", json.dumps({**CARD, "signatures": {LONG: {"inputs": []}}}), read_card),
    "value of a card": ("card.json", json.dumps({**CARD, "task": [LONG], "signatures": {}}), read_card),
    "setting of a tokenizer": (
        "tokenizer.json",
        json.dumps({LONG: 1}),
        lambda path: load_tokenizer(path.rpartition("/")[0]),
    ),
    "piece": ("vocab.txt", f"[UNK]\n{WORD}\n{WORD}\n", Vocabulary.from_file),
    "line of a template": ("template.txt", f"{{text}} {{answer}}\n{LINE}\n", read_template),
    "label of a template": ("template.txt", f"{{text}}\n{WORD}: 가\n{WORD}: 나\n", read_template),
}


@pytest.mark.parametrize(("name", "content", "read"), CASES.values(), ids=CASES)
def test_value_of_a_file_is_repeated_in_part(tmp_path, name, content, read):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as failure:
        read(str(path))
    check_sentence(str(failure.value).replace(str(tmp_path), ""))


def check_sentence(sentence):
    assert len(sentence.splitlines()) == 1
    assert all(len(run) <= 101 for run in re.findall(r"긴(?:긴|\s|\\n|\\u2028)*", sentence))
    assert len(sentence) < 8000


def test_types_of_parquet_columns_are_repeated_in_part(tmp_path):
    path = write_table(tmp_path / "rows.parquet", {"text": [{f"{WORD}{number}": 1 for number in range(3)}], LONG: [1]})
    for text_field in ("text", "document"):
        with pytest.raises(InputError) as failure:
            list(CorpusReader([path], text_field=text_field).lines())
        check_sentence(str(failure.value).replace(str(tmp_path), ""))


def test_name_of_a_file_is_repeated_in_part():
    with pytest.raises(InputError) as failure:
        name_in_folder("run", f"../{LONG}", "index.json")
    check_sentence(str(failure.value))


def test_warnings_and_first_rows_are_repeated_in_part(tmp_path, capsys):
    path = tmp_path / "rows.jsonl"
    rows = [{"document": LONG, "label": LONG, LONG: 1}, {"document": "나", "label": "a", LONG: 1}]
    path.write_text(as_lines(*rows, {"document": "나", "label": LONG * 2, LONG: 1}), encoding="utf-8")
    Classification(tiny_config(30), (LONG, "a"), DataFiles(on_bad_row="skip")).read(str(path))
    told = capsys.readouterr().out.replace(str(tmp_path), "").splitlines()
    assert len(told) == 3 and told[2].startswith("warning: 1 row left out")
    for line in told:
        check_sentence(line)
