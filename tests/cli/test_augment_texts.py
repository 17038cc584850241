"""augment_texts.py: a file in, a table out that is read as texts without labels, and mistakes in what is asked."""

import dataclasses
import unicodedata

import pytest
import varied_data as data

from albert_tf.finetuning.datasets import DATASETS
from albert_tf.finetuning.labelled_text import read_examples

SETTINGS = {"num_copies": 3, "replaced_share": 0.7}


@pytest.fixture
def augment(run_script, checkpoint, tmp_path):
    """Runs the script; flags may be added, replaced or, with None, left out."""
    usual = {"model_dir": checkpoint, "output_file": tmp_path / "out.tsv", **SETTINGS}

    def run(**changes):
        given = {name: value for name, value in {**usual, **changes}.items() if value is not None}
        return run_script("augment_texts.py", **given)

    return run


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nsmc", "klue_nli", "cola"])
def test_copies_of_a_task_are_read_as_its_texts_without_labels(augment, tmp_path, name):
    files = DATASETS[name]
    source = data.write_data_set(tmp_path / name, name) / (files.train[0])
    result = augment(task_name=name, input_file=source)
    assert (result.code, result.errors) == (0, "")
    unlabelled = dataclasses.replace(files, label_column="")
    originals, copies = (read_examples(str(path), unlabelled, False) for path in (source, tmp_path / "out.tsv"))
    texts, new = ({tuple(each.columns.values()) for each in examples} for examples in (originals, copies))
    assert len(copies) == len(new) > len(texts) and not new & texts
    assert (
        f"\nwrote {tmp_path / 'out.tsv'}: {len(copies)} copies of {len(originals)} texts\n  the first: "
        in result.output
    )
    assert (
        f"\nleft out because they equal a text or another copy: {3 * len(originals) - len(copies)}; " in result.output
    )
    header = (tmp_path / "out.tsv").read_text().splitlines()[0].split("\t")
    assert header == list(files.text_columns) or files.columns


@pytest.mark.slow
def test_same_flags_give_the_same_bytes_and_nothing_is_replaced_unasked(augment, tmp_path, assert_refused):
    (tmp_path / "in.txt").write_text("오늘은 비가 온다\n\n내일은 눈이 온다고 하니 친구와 집에서 밥을 먹자\n")
    output, flags = tmp_path / "out.tsv", {"input_file": tmp_path / "in.txt"}
    result = augment(**flags)
    assert (
        result.code == 0 and f"{tmp_path / 'in.txt'}: 2 lines of text\n  the first: 오늘은 비가 온다\n" in result.output
    )
    before = output.read_bytes()
    assert before.startswith(b"document\n")
    told = assert_refused(lambda: augment(**flags), tmp_path)
    assert told == f"{output} is there already; choose another place, or pass --overwrite to replace it"
    assert augment(**flags, overwrite=True).code == 0 and output.read_bytes() == before
    assert augment(**flags, overwrite=True, random_seed=1).code == 0 and output.read_bytes() != before


@pytest.mark.slow
def test_lines_of_any_characters_become_a_table_that_is_read(augment, tmp_path):
    lines = ['오늘은\t비가 "온다', "내일은\r눈이 온다\t", "", " \t ", "친구와\u2028집에서\x85밥을", "'먹자\r"]
    (tmp_path / "in.txt").write_bytes("\n".join(["첫 줄은 비가 온다", *lines]).encode())
    result = augment(input_file=tmp_path / "in.txt", num_copies=20)
    assert (result.code, result.errors) == (0, "")
    assert "in.txt: 5 lines of text\n" in result.output
    unlabelled = dataclasses.replace(DATASETS["tsv"], label_column="")
    copies = [each.text for each in read_examples(str(tmp_path / "out.tsv"), unlabelled, False)]
    assert not any(mark in copy for copy in copies for mark in "\t\r")
    for marks in (' "', "\u2028", "\x85", "'"):
        assert any(marks in copy for copy in copies), marks
    # In jamo, as macOS writes them, they are the same texts.
    (tmp_path / "jamo.txt").write_bytes(
        unicodedata.normalize("NFD", (tmp_path / "in.txt").read_bytes().decode()).encode()
    )
    result = augment(input_file=tmp_path / "jamo.txt", num_copies=20, output_file=tmp_path / "jamo.tsv")
    assert (result.code, result.errors) == (0, "")
    assert (tmp_path / "jamo.tsv").read_bytes() == (tmp_path / "out.tsv").read_bytes()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"input_file": None}, "--input_file is missing; see --help"),
        ({"output_file": None}, "--output_file is missing; see --help"),
        (
            {"output_file": "out.jsonl"},
            "--output_file=out.jsonl: the output is a tab-separated table; use a name such as something.tsv",
        ),
        ({"num_copies": 0}, "--num_copies must be a whole number from 1 on. Received: 0"),
        ({"replaced_share": 1.5}, "--replaced_share must be a number greater than 0 and at most 1. Received: 1.5"),
        ({"input_file": "{folder}/empty.txt"}, "{folder}/empty.txt has no line of text that can be used"),
        (
            {"input_file": "{folder}/empty.txt", "task_name": "nsmc"},
            "{folder}/empty.txt is empty; its first line must name",
        ),
        (
            {"input_file": "{folder}/two.tsv"},
            "{folder}/two.tsv, line 1: no column named document; the header has a, b; ",
        ),
        (
            {"input_file": "{folder}/tabs.txt"},
            "{folder}/tabs.txt, line 1: no column named document; the header has 비가,",
        ),
        ({"text_column": "text"}, "{folder}/in.txt, line 1: no column named text; the header has 12.; "),
        ({}, "no copy differs from its text: the texts have no words that could be replaced"),
        ({"model_dir": "nowhere"}, "nowhere"),
    ],
)
def test_mistake_costs_one_sentence(augment, tmp_path, assert_refused, changes, message):
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "two.tsv").write_text("a\tb\n1\t2\n")
    (tmp_path / "in.txt").write_text("12.\n3\n")
    (tmp_path / "tabs.txt").write_text("비가\t온다\n눈이 온다\n")
    changes = {name: value and str(value).format(folder=tmp_path) for name, value in changes.items()}
    flags = {"input_file": tmp_path / "in.txt", **changes}
    assert message.format(folder=tmp_path) in assert_refused(lambda: augment(**flags), tmp_path)


def test_causal_model_is_refused(augment, causal_checkpoint, tmp_path, assert_refused):
    (tmp_path / "in.txt").write_text("오늘은\n")
    flags = {"input_file": tmp_path / "in.txt", "model_dir": causal_checkpoint}
    told = assert_refused(lambda: augment(**flags), tmp_path)
    assert "and so it has no fill_mask; it has" in told and told.endswith(
        "fills in masks, because words are replaced in this way"
    )
