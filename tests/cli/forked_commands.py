"""Commands in processes of their own that start at once, and that can be killed at any change of a file.

A server process has imported TensorFlow, not used it, and forks for each command. Under it lies file_changes.c, which
sees every change of a file that the process makes, whoever makes it: that is how what can go wrong is found, and not
listed.
"""

import contextlib
import ctypes
import dataclasses
import importlib
import json
import os
import pathlib
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile

from quick_script import trace_quickly

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


@dataclasses.dataclass(frozen=True)
class Ended:
    """How a command ended.

    Attributes:
        code: Its exit code, negative for a signal.
        output: What it printed.
        errors: What it printed on standard error.
        num_changes: Of files below the folder; None if it was killed.
    """

    code: int
    output: str
    errors: str
    num_changes: int | None


class ForkedCommands:
    """Runs commands; a context manager."""

    def __enter__(self):
        self._folder = pathlib.Path(tempfile.mkdtemp())
        library = self._folder / "file_changes.so"
        source = pathlib.Path(__file__).with_name("file_changes.c")
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        environment = {**os.environ, "LD_PRELOAD": str(library), "TF_CPP_MIN_LOG_LEVEL": "3"}
        self._server = subprocess.Popen(
            [sys.executable, __file__], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *_):
        self._server.stdin.close()
        self._server.wait()
        shutil.rmtree(self._folder)

    def run(
        self,
        script: str,
        flag_values: dict[str, object],
        folder: pathlib.Path,
        signal_at: int = 0,
        number: int = signal.SIGKILL,
    ) -> Ended:
        """Runs a script of the top folder, or a stage.

        Args:
            script: Its name; scripts run as `albert-tf` runs their stages.
            flag_values: Its flags.
            folder: Whose changes count; temporary files come into a folder "temporary" in it.
            signal_at: Before which change it gets a signal; 0 for never.
            number: Which signal.
        """
        (folder / "temporary").mkdir(exist_ok=True)
        job = {
            "arguments": ["albert-tf", script, *(f"--{name}={_spell(value)}" for name, value in flag_values.items())],
            "folder": str(folder),
            "said": str(self._folder),
            "signal_at": signal_at,
            "number": number,
        }
        self._server.stdin.write(json.dumps(job) + "\n")
        self._server.stdin.flush()
        ended = json.loads(self._server.stdout.readline())
        said = [(self._folder / name).read_text(encoding="utf-8", errors="replace") for name in ("output", "errors")]
        return Ended(ended["code"], *said, ended["num_changes"])


def _spell(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def _serve():
    sys.path.insert(0, str(ROOT))
    import albert_tf.cli.app
    import albert_tf.interchange.conversion
    import albert_tf.pretraining_data.making.builder
    import albert_tf.serving.exporting
    import albert_tf.training.run  # noqa: F401

    for name in ("matplotlib.figure", "sklearn.linear_model"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    answers = os.dup(1)
    for line in sys.stdin:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            _run(json.loads(line), writing)
        os.close(writing)
        with open(reading, encoding="ascii") as file:
            num_changes = file.read()
        _, status = os.waitpid(child, 0)
        answer = {"code": os.waitstatus_to_exitcode(status), "num_changes": int(num_changes) if num_changes else None}
        os.write(answers, (json.dumps(answer) + "\n").encode())


def _run(job, writing):
    """Runs a command in a forked process, and ends it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["TMPDIR"] = tempfile.tempdir = os.path.join(job["folder"], "temporary")
    os.environ.pop("LD_PRELOAD")  # for what it starts
    for number, name in ((1, "output"), (2, "errors")):
        os.dup2(os.open(os.path.join(job["said"], name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    trace_quickly()
    library, sys.argv = ctypes.CDLL(None), job["arguments"]
    library.watch_changes(job["folder"].encode(), ctypes.c_long(job["signal_at"]), job["number"])
    code = 1
    try:
        runpy.run_module("albert_tf", run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        with contextlib.suppress(BaseException):
            sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(writing, str(library.count_changes()).encode())
        os._exit(code)


if __name__ == "__main__":
    _serve()
