"""How much is said follows one setting; warnings are always said."""

import subprocess
import sys

import pytest

from albert_tf.base.console import DETAILS, RESULTS, WARNINGS, ProgressLine, at_most, tell
from albert_tf.reading.bad_rows import tell_once


@pytest.mark.parametrize(
    ("most", "told"),
    [
        (WARNINGS, ["warning: a"]),
        (RESULTS, ["warning: a", "a result"]),
        (DETAILS, ["a detail", "warning: a", "a result"]),
    ],
)
def test_less_is_said_if_asked_for(capsys, most, told):
    with at_most(most):
        tell("a detail\nwarning: a")
        tell("a result", RESULTS)
    assert capsys.readouterr().out.splitlines() == told
    tell("a detail again")
    assert capsys.readouterr().out == "a detail again\n"


def test_progress_is_shown_unless_only_warnings_are(capsys):
    for most, told in ((WARNINGS, ""), (RESULTS, "half\n"), (DETAILS, "half\n")):
        with at_most(most):
            ProgressLine().show("half")
        assert capsys.readouterr().out == told


def test_what_is_told_once_is_told_later_if_it_was_not_before(capsys):
    with at_most(WARNINGS):
        tell_once("of a file that is read twice")
    tell_once("of a file that is read twice")
    tell_once("of a file that is read twice")
    assert capsys.readouterr().out == "of a file that is read twice\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "part", ["tokenization", "modeling", "optimization", "interchange.conversion", "pretraining_data.shards"]
)
def test_tensorflow_says_nothing_when_a_part_is_imported(part):
    code = f"import os; os.environ.pop('TF_CPP_MIN_LOG_LEVEL', None); import albert_tf.{part}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
