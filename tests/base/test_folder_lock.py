"""One command at a time writes into a folder; one that is gone, however it went, doesn't keep it."""

import concurrent.futures
import contextlib
import errno
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import types

import pytest

from albert_tf.base.errors import InputError
from albert_tf.base.files import write_text
from albert_tf.base.folders import hold

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# A process that holds a folder until it is told to go on, or killed.
HOLDER = """
import sys
from albert_tf.base.folders import hold
with hold(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def other_process():
    """Starts processes that hold a folder."""
    started = []

    def start(folder):
        command = [sys.executable, "-c", HOLDER, str(folder)]
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_folder_that_another_process_holds_is_refused_until_that_ends(other_process, tmp_path):
    folder = tmp_path / "run"
    other = other_process(folder)
    with pytest.raises(InputError) as refused, hold(folder):
        pass
    assert str(refused.value) == (
        f"{folder} is in use by another command; wait until that has ended, stop it (fuser -v shows its "
        "process), or choose another folder"
    )
    assert os.listdir(folder) == []
    other.communicate("\n")
    assert not folder.exists()
    with hold(folder):
        pass


def test_folder_is_the_same_by_every_name_and_free_once_the_process_is_killed(other_process, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(tmp_path / "run")
    other = other_process(tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    for name in ("./run/", "link", "run/../run"):
        with pytest.raises(InputError, match="is in use by another command"), hold(name):
            pass
    other.kill()
    other.wait()
    with hold(tmp_path / "run"):
        assert os.listdir(tmp_path / "run") == []


def test_thread_may_hold_twice_and_two_threads_may_not(tmp_path):
    def hold_it():
        with hold(tmp_path):
            pass

    with concurrent.futures.ThreadPoolExecutor(1) as other:
        with hold(tmp_path):
            hold_it()
            with pytest.raises(InputError, match="is in use by another command;"):
                other.submit(hold_it).result()
        other.submit(hold_it).result()


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.EBADF])
def test_where_there_are_no_locks_a_warning_has_to_do(tmp_path, monkeypatch, capsys, code):
    def flock(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("fcntl.flock", flock)
    with hold(tmp_path):
        pass
    said = f"warning: {tmp_path} can't be locked ({os.strerror(code)}); don't run another command in it meanwhile\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("name", ["run", "above/run"])
def test_of_many_that_come_at_once_each_is_alone(tmp_path, name):
    # The folder comes and goes with whoever holds it.
    folder, inside, most = tmp_path / name, [], []

    def work(_):
        while True:
            try:
                with hold(folder):
                    inside.append(1)
                    most.append(len(inside))
                    (folder / "file").touch()
                    (folder / "file").unlink()
                    inside.pop()
                    return
            except InputError as error:
                assert "is in use by" in str(error)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(100)))
    assert set(most) == {1} and len(most) == 100


def test_folder_stays_if_it_was_there_or_holds_something(tmp_path):
    (tmp_path / "mine").mkdir()
    for name in ("mine", "new", "full"):
        with hold(tmp_path / name):
            if name == "full":
                (tmp_path / "full" / "file").touch()
    assert sorted(os.listdir(tmp_path)) == ["full", "mine"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("file", "Not a directory"),
        ("file/run", "Not a directory|File exists"),
        ("link", "no such file"),
        ("n" * 300, "File name too long"),
        ("/sys/albert_tf/run", "Operation not permitted|Permission denied|Read-only file system"),
        ("/proc/albert_tf", "no such file"),
    ],
)
def test_place_that_can_not_be_written_to_is_named_before_any_work(tmp_path, monkeypatch, name, reason):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("file").write_text("mine")
    pathlib.Path("link").symlink_to("nowhere")
    message = rf"`output_file={re.escape(name)}` can't be written to \((?:{reason})\); name another folder"
    with pytest.raises(InputError, match=f"^{message}$"), hold(name, "output_file"):
        pass
    assert sorted(os.listdir()) == ["file", "link"]


def test_what_can_not_be_written_leaves_no_file_behind(tmp_path, monkeypatch):
    @contextlib.contextmanager
    def full_disk(path, _):
        open(path, "w").close()
        yield io.StringIO()
        raise OSError(28, "No space left on device")

    gfile = types.SimpleNamespace(GFile=full_disk, remove=os.remove)
    monkeypatch.setattr("albert_tf.base.folders.gfile_for", lambda _: gfile)
    with pytest.raises(InputError, match=r"can't be written to \(No space left on device\)"), hold(tmp_path / "run"):
        pass
    assert os.listdir(tmp_path) == []


def test_what_killed_commands_left_is_cleared_away(other_process, tmp_path):
    for name in (".report.json.unfinished", "mine.txt", ".mine", "half.txt", "half/b", ".1.unfinished/a"):
        write_text(tmp_path / name, "")
    other_process(tmp_path / ".busy.unfinished")
    (tmp_path / ".unfinished").write_text(json.dumps(["half.txt", "half", "gone.txt"]))
    with hold(tmp_path):
        assert sorted(os.listdir(tmp_path)) == [".busy.unfinished", ".mine", "mine.txt"]


def test_list_of_what_is_half_written_leads_to_no_other_folder(tmp_path):
    write_text(tmp_path / "mine.txt", "")
    write_text(tmp_path / "run" / ".unfinished", json.dumps(["../mine.txt"]))
    with pytest.raises(InputError, match=r"names \"\.\./mine\.txt\", which is not a file in"), hold(tmp_path / "run"):
        pass
    assert (tmp_path / "mine.txt").exists()


def test_folder_elsewhere_is_checked_and_not_locked(tmp_path):
    with hold(f"ram://{tmp_path.name}/run"), hold(f"ram://{tmp_path.name}/run"):
        pass
    with pytest.raises(InputError, match=r"^`output_dir=nowhere://a` can't be written to \("), hold("nowhere://a"):
        pass
