"""Imports inside the library go one way."""

import ast
import collections
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIBRARY = ROOT / "albert_tf"

# What a newcomer can hold in the head.
MOST_FOLDERS, MOST_FILES, MOST_FILES_IN_ALL, MOST_LINES, LEAST_LINES = 24, 17, 240, 500, 60
READ_WITHOUT_THE_PACKAGE = {"albert_tf.cli.commands"}  # by setup.py

# Each part of the library, from the bottom up, and the parts that it may use.
MAY_IMPORT = {
    "base": "",
    "config": "base",
    "optimization": "base",
    # Nothing of these needs TensorFlow.
    "reading": "base",
    "asking": "base config reading",
    "server": "base asking",
    "tokenization": "base",
    "modeling": "base config",  # knows nothing of text
    "pretraining_data": "base config reading tokenization",
    "objectives": "base config modeling pretraining_data",
    "training": "base config tokenization modeling optimization objectives",
    "finetuning": "base config reading asking tokenization modeling pretraining_data objectives training",
    # Other libraries' models know what their head is for, and so must we.
    "interchange": "base config tokenization modeling objectives training finetuning",
    "serving": "base config reading asking tokenization modeling objectives training finetuning",
    "runs": "base config reading asking tokenization modeling pretraining_data optimization objectives "
    "training finetuning interchange serving",
    "api": "base asking modeling interchange serving runs",
}
MAY_IMPORT = {part: set(allowed.split()) for part, allowed in MAY_IMPORT.items()}
MAY_IMPORT["cli"] = set(MAY_IMPORT)
MAY_IMPORT["__main__"] = {"cli"}
SCRIPTS = {path.stem for path in ROOT.glob("*.py")}


def part_of(path):
    """Returns the folder or module of the library that a file belongs to."""
    return path.relative_to(LIBRARY).with_suffix("").parts[0]


def imported_modules(source):
    """Returns the full names of all modules that a text imports, also inside functions."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import"
            names.add(node.module)
            # `from albert_tf import config` names a part of the library too.
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def imported_parts(source):
    """Returns the parts of the library that a text imports."""
    parts = (name.split(".") for name in imported_modules(source))
    return {names[1] for names in parts if names[0] == "albert_tf" and len(names) > 1}


LIBRARY_FILES = sorted(path for path in LIBRARY.rglob("*.py") if path != LIBRARY / "__init__.py")


@pytest.mark.parametrize("path", LIBRARY_FILES, ids=lambda path: str(path.relative_to(LIBRARY)))
def test_module_imports_only_what_lies_below_it(path):
    part = part_of(path)
    assert part in MAY_IMPORT, f"say in MAY_IMPORT what albert_tf.{part} may import"
    source = path.read_text(encoding="utf-8")
    assert imported_parts(source) <= MAY_IMPORT[part] | {part}
    assert not {name.split(".")[0] for name in imported_modules(source)} & SCRIPTS


def test_a_folder_and_a_file_can_be_held_in_the_head():
    sizes = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in LIBRARY_FILES}
    folders = collections.Counter(path.parent for path in LIBRARY_FILES if path.name != "__init__.py")
    assert len(folders) <= MOST_FOLDERS
    assert len(list(LIBRARY.rglob("*.py"))) <= MOST_FILES_IN_ALL
    assert [str(folder.relative_to(ROOT)) for folder, number in folders.items() if number > MOST_FILES] == []
    assert [str(path.relative_to(ROOT)) for path, size in sizes.items() if size > MOST_LINES] == []


def test_a_file_that_one_neighbour_imports_is_worth_opening():
    users = collections.defaultdict(set)
    for path in LIBRARY_FILES:
        for name in imported_modules(path.read_text(encoding="utf-8")):
            users[name].add(path)
    for path in LIBRARY_FILES:
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        is_opened_by_one = len(users[module]) == 1 and {each.parent for each in users[module]} == {path.parent}
        size = len(path.read_text(encoding="utf-8").splitlines())
        assert size >= LEAST_LINES or not is_opened_by_one or module in READ_WITHOUT_THE_PACKAGE, module


def test_table_has_no_cycles():
    below = set()
    for part, allowed in MAY_IMPORT.items():
        assert allowed <= below, f"{part} may import what is listed after it"
        below.add(part)


def test_flags_are_known_to_the_commands_alone():
    assert not [
        path
        for path in LIBRARY_FILES
        if part_of(path) != "cli" and {"absl.flags", "absl.app"} & imported_modules(path.read_text(encoding="utf-8"))
    ]


def test_package_itself_imports_nothing_but_its_functions():
    assert imported_parts((LIBRARY / "__init__.py").read_text(encoding="utf-8")) == {"api"}


def test_every_kind_of_import_is_seen():
    source = (
        "import albert_tf.base.files\nfrom albert_tf import config\ndef f():\n    from albert_tf.runs.trials import g\n"
    )
    assert {"base", "config", "runs"} == imported_parts(source)
