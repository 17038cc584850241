"""Which test files import a module of the library; as a plugin of pytest, it runs quick tests before slow ones."""

import ast
import functools
import pathlib
import re

from albert_tf.cli.commands import COMMANDS
from benchmarks.stage import ROOT


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.get_closest_marker("slow") is not None)


@functools.cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def modules():
    """Returns the files of the library by the names of their modules."""
    paths = sorted(pathlib.Path(ROOT, "albert_tf").rglob("*.py"))
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


@functools.cache
def helpers():
    """Returns the files that tests import from one another, by name."""
    paths = pathlib.Path(ROOT, "tests").rglob("*.py")
    return {path.stem: path for path in paths if path.name != "conftest.py" and not path.stem.startswith("test_")}


def imports(path):
    """Yields what a file imports, also inside functions: a module, and a name in it or "*"."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "*") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module, alias.name) for alias in node.names)


@functools.cache
def named(module, name):
    """Returns the modules that a name of a module stands for: itself, and where the package that exports it has it."""
    if f"{module}.{name}" in modules():
        return named(f"{module}.{name}", "*")
    if module not in modules():
        return set()
    found = {module}
    if modules()[module].name == "__init__.py":
        for source, exported in imports(modules()[module]):
            if source.startswith(f"{module}.") and name in ("*", exported):
                found |= named(source, exported)
    return found


def commands_in(path):
    """Yields the modules of the commands whose scripts or names a file of tests has."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            stage = node.value.removesuffix(".py").replace("_", "-")
            yield from (f"albert_tf.cli.{place.partition(':')[0]}" for each, place, _ in COMMANDS if each == stage)


@functools.cache
def imported(path):
    """Returns the modules of the library that a file imports, a test's helpers and its folder's conftest too."""
    found = set().union(*(named(*names) for names in imports(path)))
    if "tests" in path.relative_to(ROOT).parts:
        used = {helpers()[module] for module, _ in imports(path) if module in helpers()} - {path}
        conftest = path.with_name("conftest.py")
        if path.name.startswith("test_") and conftest.exists() and conftest.parent.name != "tests":
            used.add(conftest)
        found = found.union(commands_in(path), *map(imported, used))
    return found


def words(path):
    return set(re.findall("[a-z0-9]+", str(path.relative_to(ROOT))))


def tests_of(path):
    """Returns the test files that import a module, or else what imports it, or its package, which opens it by its name.

    Those come first whose names have most words of the module's, and of these those that import least.
    """
    changed = {name for name, other in modules().items() if other == path}
    tests = sorted(pathlib.Path(ROOT, "tests").rglob("test_*.py"), key=lambda test: (len(imported(test)), test))
    tests.sort(key=lambda test: -len(words(test) & words(path)))
    while changed:
        if found := [test for test in tests if changed & imported(test)]:
            return found
        importers = {name for name, other in modules().items() if changed & imported(other)}
        packages = {name.rpartition(".")[0] for name in changed} - {""}
        changed = changed | importers if importers - changed else packages
    return []
