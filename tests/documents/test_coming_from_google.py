"""docs/coming-from-google-albert.md, in both languages, names flags and tests that are there."""

import re

import pytest
from pages import ROOT

PAGES = {
    language: (ROOT / "docs" / f"coming-from-google-albert{suffix}").read_text(encoding="utf-8")
    for language, suffix in (("en", ".md"), ("ko", ".ko.md"))
}
COMMANDS = ("create_pretraining_data", "run_pretraining", "run_classifier", "run_squad", "run_race")


def flags_of_table(page, command):
    """Returns the flags in the first column of a command's table."""
    section = page.split(f"### {command}\n", 1)[1].split("\n#", 1)[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `--")]
    return {flag for row in rows for flag in re.findall(r"`--(\w+)`", row)}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_flag_is_one_of_the_command(run_script, command):
    given = set(re.findall(r"^ +--(?:\[no\])?(\w+)", run_script(f"{command}.py", helpfull=True).output, re.MULTILINE))
    listed = flags_of_table(PAGES["en"], command)
    assert len(listed) > 10
    assert listed <= given
    assert flags_of_table(PAGES["ko"], command) == listed


@pytest.mark.parametrize("language", PAGES)
def test_every_test_that_is_named_is_there(language):
    named = set(re.findall(r"`(test_[a-z0-9_]+)`", PAGES[language]))
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    tests = {name for source in sources for name in re.findall(r"^def (test_\w+)", source, re.MULTILINE)}
    assert len(named) > 24
    assert named - tests == set()


@pytest.mark.parametrize("language", PAGES)
def test_every_defect_has_its_row(language):
    assert [int(number) for number in re.findall(r"^\| (\d+) \|", PAGES[language], re.MULTILINE)] == list(range(1, 25))
