"""Every command that writes, told to write where that can't be: one sentence, and nothing is left or changed."""

import contextlib
import os
import pathlib
import stat
import subprocess

import pytest
from test_killed_commands import KILLS, contents
from writing_commands import SLOW

pytestmark = pytest.mark.slow


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
