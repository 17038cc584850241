"""Both READMEs stay short enough to read in five minutes, and their tables say something in every cell."""

import re

import pytest
from pages import ROOT, blocks_of

READMES = ["README.md", "README.ko.md"]
MOST_LINES = 120
MOST_ROWS_OF_THE_COMPARISON = 8


def tables_of(text):
    """Returns the tables of a page, each as rows of cells without the line of dashes."""
    for block in blocks_of(text):
        text = text.replace(block.text, "")
    tables = re.findall(r"(?:^\|.*\|\n?)+", text, flags=re.MULTILINE)
    rows = [[line.strip("|").split("|") for line in table.splitlines()] for table in tables]
    return [[[cell.strip() for cell in row] for row in table[:1] + table[2:]] for table in rows]


def blank_cells(table):
    """Returns the rows in which a cell says nothing; only the corner of the heading may be empty."""
    heading, *rows = table
    rows = [["corner", *heading[1:]], *rows]
    return [row for row in rows if not all(re.search(r"\w", cell) for cell in row)]


@pytest.mark.parametrize("name", READMES)
def test_is_short(name):
    assert len((ROOT / name).read_text(encoding="utf-8").splitlines()) <= MOST_LINES


@pytest.mark.parametrize("name", READMES)
def test_no_cell_is_blank(name):
    tables = tables_of((ROOT / name).read_text(encoding="utf-8"))
    assert tables and [row for table in tables for row in blank_cells(table)] == []


@pytest.mark.parametrize("name", READMES)
def test_comparison_is_short(name):
    tables = tables_of((ROOT / name).read_text(encoding="utf-8"))
    (comparison,) = [table for table in tables if "albert_tf" in table[0]]
    assert len(comparison) - 1 <= MOST_ROWS_OF_THE_COMPARISON


def test_both_languages_have_the_same_tables():
    english, korean = (tables_of((ROOT / name).read_text(encoding="utf-8")) for name in READMES)
    assert [[len(row) for row in table] for table in english] == [[len(row) for row in table] for table in korean]


def test_blank_cells_are_found():
    (table,) = tables_of("a\n\n| | x |\n|---|---|\n| a | yes |\n| b | |\n| c | – |\n\n```\n| not | |\n```\n")
    assert blank_cells(table) == [["b", ""], ["c", "–"]]
