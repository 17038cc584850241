"""docs/coming-from-google-albert.md, in both languages, names flags that are there, and all that have nothing to do."""

import re

from pages import ROOT

from albert_tf.cli.command import _DEFAULT_ONLY, _WITHOUT_EFFECT

COMMANDS = ("create_pretraining_data", "run_pretraining", "run_classifier", "run_squad", "run_race")


def named_flags(suffix):
    page = (ROOT / "docs" / f"coming-from-google-albert{suffix}").read_text(encoding="utf-8")
    return set(re.findall(r"--([a-z]\w+)", page.split("\n## Flags\n" if suffix == ".md" else "\n## 플래그\n", 1)[1]))


def test_every_flag_is_one_of_a_command(run_script):
    outputs = [run_script(f"{command}.py", helpfull=True).output for command in COMMANDS]
    there = {flag for output in outputs for flag in re.findall(r"^ +--(?:\[no\])?(\w+)", output, re.MULTILINE)}
    named = named_flags(".md")
    assert {*_WITHOUT_EFFECT, *_DEFAULT_ONLY} <= named <= there
    assert named_flags(".ko.md") == named
