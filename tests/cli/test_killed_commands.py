"""Every command that writes: killed at a change of a file, and repeated; stopped by SIGTERM; two at once.

Here a few changes of each quick command are tried. ALBERT_TF_KILLS=20 tries so many of every command, and
ALBERT_TF_KILLS=10000 all there are, which takes hours.
"""

import os
import re
import shutil
import signal

import pytest
from flag_matrix import registered_flags
from writing_commands import NOT_HERE, OUTPUT_FLAGS, SLOW

from albert_tf.base.folders import hold
from albert_tf.cli.commands import COMMANDS

KILLS = int(os.environ.get("ALBERT_TF_KILLS", 0))
KILLS_BY_DEFAULT = 2

pytestmark = pytest.mark.slow


def contents(folder):
    """Returns every file below a folder by name, folders that are empty too.

    TensorBoard's files are named after time and process, and a run that goes on begins another. Those of AutoGraph, two
    of 1 kB with names drawn at random, TensorFlow makes while it saves a SavedModel, and deletes when the process ends.
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        name = re.sub(r"events\.out\.tfevents\..*", "events", str(path.relative_to(folder)))
        if "__autograph_generated_file" in name:
            continue
        if path.is_file():
            found[name] = path.read_bytes()
        elif path.is_dir() and not any(path.iterdir()) and name != "temporary":
            found[f"{name}/"] = b""
    return found


def difference(found, expected):
    """Returns the names of files that are missing, too many, or other than they should be."""
    return sorted(
        name
        for name in found.keys() | expected.keys()
        if name not in found or name not in expected or (expected[name] is not None and found[name] != expected[name])
    )


@pytest.fixture(scope="module")
def undisturbed(run_case, tmp_path_factory):
    """Runs a command once for all tests, and returns what it leaves and how many changes of files it makes."""
    found = {}

    def run(case):
        if case.name not in found:
            folder = tmp_path_factory.mktemp("undisturbed")
            ended = run_case(case, folder)
            assert ended.code == 0, ended.errors
            found[case.name] = contents(folder), ended.num_changes
            shutil.rmtree(folder)
        return found[case.name]

    return run


def bad_ends(run_case, case, tmp_path, numbers, expected):
    """Returns what is wrong after a kill at each of the changes, and what it was repeated to."""
    wrong = {}
    for number in numbers:
        folder = tmp_path / "killed"
        ended = run_case(case, folder, number)
        repeated = None
        if ended.code == 0 or difference(contents(folder), expected):
            repeated = run_case(case, folder)
        if different := difference(contents(folder), expected):
            wrong[number] = different, repeated.errors[-300:]
        shutil.rmtree(folder)
    return wrong


def test_killed_command_can_be_repeated(run_case, undisturbed, writing_case, tmp_path):
    if not KILLS and writing_case.name in SLOW:
        pytest.skip("takes long; set ALBERT_TF_KILLS to try it")
    one, num_changes = undisturbed(writing_case)
    assert run_case(writing_case, tmp_path / "second").code == 0
    other = contents(tmp_path / "second")
    assert one.keys() == other.keys()
    expected = {name: one[name] if one[name] == other[name] else None for name in one}  # None: as it comes
    count = min(KILLS or KILLS_BY_DEFAULT, num_changes)
    numbers = [1 + num_changes * part // count for part in range(count)]
    wrong = bad_ends(run_case, writing_case, tmp_path, numbers, expected)
    print(f"{writing_case.name}: {len(wrong)} bad of {len(numbers)} kills at one of {num_changes} changes each")
    assert not wrong


def test_sigterm_ends_a_command_as_ctrl_c_does(run_case, undisturbed, writing_case, tmp_path):
    if not KILLS and writing_case.name in SLOW:
        pytest.skip("takes long; set ALBERT_TF_KILLS to try it")
    _, num_changes = undisturbed(writing_case)
    folder = tmp_path / "stopped"
    ended = run_case(writing_case, folder, num_changes // 2, signal.SIGTERM)
    if writing_case.script.startswith("run_"):  # it has saved
        assert ended.code == 143, ended.errors
        return
    assert ended.code == 143, (ended.code, ended.errors)
    assert ended.errors.splitlines()[-1].startswith("interrupted"), ended.errors
    goes_on = writing_case.name == "data"
    assert goes_on or not [name for name in contents(folder) if name != "out/"]


def test_folder_is_written_by_one_command_at_a_time(run_case, writing_case, tmp_path):
    if writing_case.flag == "plot":
        pytest.skip("a plot comes into any folder")
    is_file = writing_case.file_name in ("out.jsonl", "out.tsv")
    held = tmp_path / "out" / (f".{writing_case.file_name}.unfinished" if is_file else "")
    with hold(held):
        ended = run_case(writing_case, tmp_path)
    assert ended.code == 1, ended.errors
    said = f"error: {tmp_path / 'out'}"
    assert ended.errors.splitlines()[-1].startswith(said), ended.errors
    assert " is in use by another command; wait until " in ended.errors
    assert not [name for name in contents(tmp_path) if name != "out/"]


def test_no_command_that_writes_is_left_out(writing_cases):
    missing = {}
    for stage, *_ in COMMANDS:
        name = stage.replace("-", "_")
        if name in NOT_HERE:
            continue
        known = {case.flag for case in writing_cases if case.script in (stage, f"{name}.py")}
        missing[name] = set(registered_flags(name)) & set(OUTPUT_FLAGS) - known
    assert not any(missing.values()), missing
