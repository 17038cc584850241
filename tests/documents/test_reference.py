"""The reference shows everything public: what packages export, and what the documents' blocks import."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
import types

import pytest
from pages import PAGES, ROOT, blocks_of, name_of

import albert_tf

IDENTIFIERS = re.findall(r"^::: (\S+)$", (ROOT / "docs" / "reference.md").read_text(encoding="utf-8"), re.MULTILINE)


def resolve(identifier):
    """Returns the object that an identifier of the reference names."""
    *path, name = identifier.split(".")
    try:
        return importlib.import_module(identifier)
    except ModuleNotFoundError:
        return getattr(importlib.import_module(".".join(path)), name)


def is_shown(name, value):
    """Returns whether the reference shows something, wherever its identifier finds it."""
    return any(each.rpartition(".")[2] == name and resolve(each) is value for each in IDENTIFIERS)


def packages():
    """Yields every package of the library."""
    yield albert_tf
    for found in pkgutil.walk_packages(albert_tf.__path__, "albert_tf."):
        if found.ispkg:
            yield importlib.import_module(found.name)


def imported_by(text):
    """Yields the name and the value of each thing that a block of Python takes from a module of the library."""
    source = "".join(example.source for example in doctest.DocTestParser().get_examples(text)) or text
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module.partition(".")[0] == "albert_tf":
            for alias in node.names:
                yield alias.name, resolve(f"{node.module}.{alias.name}")


@pytest.mark.parametrize("identifier", IDENTIFIERS)
def test_reference_names_what_is_there_and_described(identifier):
    value = resolve(identifier)
    if inspect.isclass(value) or inspect.isroutine(value) or isinstance(value, types.ModuleType):
        assert inspect.getdoc(value)


def test_reference_shows_nothing_twice():
    assert len(set(IDENTIFIERS)) == len(IDENTIFIERS)


def test_all_that_packages_export_is_in_the_reference():
    missing = [
        f"{package.__name__}.{name}"
        for package in packages()
        for name in getattr(package, "__all__", ())
        if not is_shown(name, getattr(package, name))
    ]
    assert not missing


def test_all_that_blocks_of_documents_import_is_in_the_reference():
    missing = [
        f"{name_of(page)}, line {block.line}: {name}"
        for page in PAGES
        for block in blocks_of(page.read_text(encoding="utf-8"))
        if block.language == "python"
        for name, value in imported_by(block.text)
        if not (is_shown(name, value) or _is_part_of_a_module(value))
    ]
    assert not missing


def _is_part_of_a_module(value):
    """Returns whether the reference shows the whole module that something is of."""
    module = inspect.getmodule(value)
    return module is not None and module.__name__ in IDENTIFIERS


def test_what_is_missing_is_found():
    assert not is_shown("resolve", resolve)
    muon = [("Muon", albert_tf.optimization.Muon)]
    assert list(imported_by("from albert_tf.optimization import Muon\nimport os")) == muon
    assert list(imported_by(">>> from albert_tf.optimization import Muon\n>>> 1 + 1\n2\n")) == muon
