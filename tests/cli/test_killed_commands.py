"""Every command that writes: killed at a change of a file, and repeated; stopped; two at once; where that can't be.

Here a few changes of each quick command are tried. ALBERT_TF_KILLS=20 tries so many of every command, and
ALBERT_TF_KILLS=10000 all there are, which takes hours.
"""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess

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


@pytest.fixture
def disk(tmp_path):
    """Mounts a small disk; it may be made read-only, or left with so many bytes."""
    with contextlib.ExitStack() as stack:

        def make(free=None, read_only=False) -> pathlib.Path:
            folder = tmp_path / "disk"
            folder.mkdir()
            mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(folder)]
            if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
                pytest.skip("needs to mount a disk, which takes root")
            stack.callback(subprocess.run, ["umount", "-l", str(folder)], check=True)
            if free is not None:
                with contextlib.suppress(OSError), open(folder / "filler", "wb", buffering=0) as file:
                    while file.write(bytes(4096)):
                        pass
                size = (folder / "filler").stat().st_size
                os.truncate(folder / "filler", size - free)
            if read_only:
                subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
            return folder

        yield make


def place_of(kind, case, folder, disk):
    """Returns where the output is to be, and the folder that must stay as it is."""
    if kind in ("full disk", "nearly full disk", "read-only disk"):
        free = {"full disk": 0, "nearly full disk": 4096 * 5}.get(kind)
        root = disk(free, kind == "read-only disk")
        return root / "out" / case.file_name, root
    (folder / "mine").mkdir()
    (folder / "mine" / "file").write_text("mine")
    if kind == "below a file":
        return folder / "mine" / "file" / "out" / case.file_name, folder / "mine"
    if kind == "device":
        if os.geteuid():
            pytest.skip("needs to make a device, which takes root")
        os.mknod(folder / "mine" / "full", 0o600 | stat.S_IFCHR, os.makedev(1, 7))  # as /dev/full
        below = case.file_name if case.flag_values.get("num_shards") else ""  # each shard has a name of its own
        return folder / "mine" / "full" / below, folder / "mine"
    if case.file_name:  # onto a folder
        return folder / "mine", folder / "mine"
    return folder / "mine" / "file", folder / "mine"


# Before any work each command asks the same function whether it can write there: one of a folder, and one of a file,
# try what else that may be.
ANYWHERE = ("published model", "predictions")


@pytest.mark.parametrize(
    "kind", ["full disk", "nearly full disk", "read-only disk", "below a file", "onto what is there", "device"]
)
def test_place_that_can_not_be_written_costs_a_sentence(forked, writing_case, kind, tmp_path, disk):
    takes_long = kind == "nearly full disk" and writing_case.name in SLOW
    is_alike = kind not in ("full disk", "nearly full disk", "below a file") and writing_case.name not in ANYWHERE
    if (takes_long or is_alike) and not KILLS:
        pytest.skip("takes long; set ALBERT_TF_KILLS to try it")
    place, kept = place_of(kind, writing_case, tmp_path, disk)
    before = contents(kept)
    ended = forked.run(writing_case.script, {**writing_case.flag_values, writing_case.flag: place}, tmp_path)
    if kind == "nearly full disk" and ended.code == 0:
        return  # there was room enough
    lines = [line for line in ended.errors.splitlines() if line]
    assert ended.code == 1, (ended.code, lines, ended.output[-500:])
    assert "Traceback" not in ended.errors and lines[-1].startswith("error: "), ended.errors[-3000:]
    assert str(place).rstrip("/") in lines[-1] or str(kept) in lines[-1], lines[-1]
    if kind == "nearly full disk" and writing_case.script.startswith(("run_", "create_", "score-")):
        return  # what they have done is kept, to go on from
    after = contents(kept)
    if writing_case.name == "plot":
        after.pop("out/", None)  # it holds no folder, and leaves one that it has made
    assert after == before
    assert not contents(tmp_path / "temporary")
