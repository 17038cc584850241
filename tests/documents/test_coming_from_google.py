"""docs/coming-from-google-albert.md names flags and tests that are there."""

import re

import pytest
from pages import ROOT

PAGE = (ROOT / "docs" / "coming-from-google-albert.md").read_text(encoding="utf-8")
COMMANDS = ("create_pretraining_data", "run_pretraining", "run_classifier", "run_squad", "run_race")


def flags_of_table(command):
    """Returns the flags in the first column of a command's table."""
    section = PAGE.split(f"### {command}\n", 1)[1].split("\n#", 1)[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `--")]
    return {flag for row in rows for flag in re.findall(r"`--(\w+)`", row)}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_flag_is_one_of_the_command(run_script, command):
    given = set(re.findall(r"^ +--(?:\[no\])?(\w+)", run_script(f"{command}.py", help=True).output, re.MULTILINE))
    listed = flags_of_table(command)
    assert len(listed) > 10
    assert listed <= given


def test_every_test_that_is_named_is_there():
    named = set(re.findall(r"`(test_[a-z0-9_]+)`", PAGE))
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    tests = {name for source in sources for name in re.findall(r"^def (test_\w+)", source, re.MULTILINE)}
    assert len(named) > 24
    assert named - tests == set()


def test_every_defect_has_its_row():
    assert [int(number) for number in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)] == list(range(1, 25))
