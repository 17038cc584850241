"""Inside the data's packages imports go one way too: who reads data needs nothing of what builds it."""

import fnmatch
import pathlib

import pytest
from test_imports import LIBRARY, ROOT, imported_modules

# Files, and the rooms that they must not import.
CLOSED = {"pretraining_data/*.py": ["albert_tf.pretraining_data.making"]}
PAIRS = [(path, rooms) for pattern, rooms in CLOSED.items() for path in sorted(LIBRARY.glob(pattern))]


@pytest.mark.parametrize(
    ("path", "rooms"), PAIRS, ids=lambda value: value.stem if isinstance(value, pathlib.Path) else ""
)
def test_room_is_left_alone(path, rooms):
    imported = imported_modules(path.read_text(encoding="utf-8"))
    assert not [name for name in imported for room in rooms if name == room or name.startswith(f"{room}.")]


def test_pytest_looks_into_every_folder_of_tests(request):
    folders = {path.parent.name for path in (ROOT / "tests").rglob("test_*.py")}
    skipped = request.config.getini("norecursedirs")  # "build" is one of them
    assert not [folder for folder in folders if any(fnmatch.fnmatch(folder, pattern) for pattern in skipped)]
