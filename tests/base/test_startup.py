"""The end of a script when the import of TensorFlow crashes, fails or is interrupted, each in a process of its own."""

import os
import pathlib
import platform
import signal
import subprocess
import sys

import pytest
import tensorflow as tf

from albert_tf.base import startup
from albert_tf.cli.commands import COMMANDS

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def run_with(tmp_path):
    """Runs a script, or a stage, with a package `tensorflow` that does nothing but this."""

    def run(code, command=("build_vocab.py",), **environment):
        (tmp_path / "tensorflow").mkdir(exist_ok=True)
        (tmp_path / "tensorflow" / "__init__.py").write_text(f"import os, signal, sys\n{code}\n")
        started = [str(ROOT / command[0])] if command[0].endswith(".py") else ["-m", "albert_tf", command[0]]
        return run_python([*started, *command[1:]], PYTHONPATH=str(tmp_path), **environment)

    return run


def run_python(arguments, **changes):
    not_kept = "TF_CPP_MIN_LOG_LEVEL", "TF_ENABLE_ONEDNN_OPTS"
    kept = {name: value for name, value in os.environ.items() if name not in not_kept}
    return subprocess.run(
        [sys.executable, *arguments], env={**kept, **changes}, cwd=ROOT, capture_output=True, text=True, timeout=60
    )


def test_missing_tensorflow_costs_one_sentence(run_with):
    result = run_with("raise ModuleNotFoundError('No module named tensorflow', name='tensorflow')")
    assert result.returncode == 1 and result.stdout == ""
    assert result.stderr.startswith(f"error: {sys.executable} has no TensorFlow; use the environment that has it")
    assert result.stderr.count("\n") == 1


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="oneDNN is chosen for x86-64")
def test_onednn_computes_the_products_of_commands_on_every_processor(run_with, tmp_path):
    def products_of(*command, **environment):
        shown = "print(os.environ.get('TF_ENABLE_ONEDNN_OPTS'), flush=True); os._exit(0)"
        return run_with(shown, command, **environment).stdout.strip()

    assert products_of("run_pretraining.py") == "1"
    assert products_of("run_pretraining.py", TF_ENABLE_ONEDNN_OPTS="0") == "0"
    assert products_of("serve", f"--model_dir={tmp_path}") == "None"  # its texts come one by one


@pytest.mark.parametrize("module", sorted({place.partition(":")[0] for _, place, _ in COMMANDS}))
def test_every_command_lets_the_quiet_start_import_tensorflow(module):
    """Whatever imports it before does so with its messages, slowly, and ends in a traceback where it is not there."""
    result = run_python(["-c", f"import sys; sys.modules['tensorflow'] = None; import albert_tf.cli.{module}"])
    assert "Traceback" not in result.stderr and result.stderr.count("\n") <= 1, result.stderr


def test_crash_says_that_tensorflow_was_imported(run_with):
    result = run_with("os.kill(os.getpid(), signal.SIGILL)")
    assert result.returncode == -signal.SIGILL
    assert result.stderr.startswith("Fatal Python error") and "tensorflow/__init__.py" in result.stderr


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL, ""),
        ("os.kill(os.getpid(), signal.SIGTERM)", 128 + signal.SIGTERM, "interrupted\n"),
        ("os.kill(os.getpid(), signal.SIGINT)", 128 + signal.SIGINT, "interrupted\n"),
        ("raise KeyboardInterrupt", 128 + signal.SIGINT, "interrupted\n"),
    ],
)
def test_import_that_is_killed_or_interrupted_shows_no_message_of_the_library(run_with, end, code, said):
    result = run_with(f"os.write(2, b'a message\\n')\n{end}")
    assert (result.returncode, result.stdout, result.stderr) == (code, "", said)


@pytest.mark.parametrize(
    "part", ["tokenization", "modeling", "optimization", "interchange.conversion", "pretraining_data.shards"]
)
def test_part_that_users_import_lets_the_quiet_start_import_tensorflow(part):
    shown = "import albert_tf.base.startup as quiet; quiet.import_tensorflow = lambda: sys.exit('quiet')"
    result = run_python(["-c", f"import sys; {shown}; import albert_tf.{part}"], PYTHONPATH=str(ROOT))
    assert (result.stdout, result.stderr) == ("", "quiet\n")


def test_words_of_an_import_that_fails_are_shown(run_with):
    result = run_with("os.write(2, b'no library\\n')\nraise ImportError('broken')")
    assert result.returncode == 1
    assert result.stderr.startswith("no library\nTraceback") and result.stderr.endswith("ImportError: broken\n")


def test_words_are_not_held_back_on_request(run_with):
    result = run_with("os.write(2, b'a message\\n')\nos.abort()", TF_CPP_MIN_LOG_LEVEL="0")
    assert (result.returncode, result.stderr) == (-signal.SIGABRT, "a message\n")


def test_messages_of_an_import_that_succeeds_are_not_shown():
    code = (
        "import faulthandler, os\n"
        "from albert_tf.base.startup import without_messages_of_libraries\n"
        "with without_messages_of_libraries():\n"
        "    os.write(2, b'a message')\n"
        "os.write(2, b'the rest')\n"
        "assert not faulthandler.is_enabled()\n"
    )
    result = run_python(["-c", code])
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "the rest")


def test_import_leaves_out_what_is_only_looked_for_and_collects_no_garbage(tmp_path):
    for name in ("sklearn", "pandas"):
        (tmp_path / f"{name}.py").write_text("")
    code = (
        "import gc, sys\n"
        "import pandas as imported_before\n"
        "from albert_tf.base.startup import fast_import\n"
        "with fast_import():\n"
        "    import pandas\n"
        "    assert pandas is imported_before\n"
        "    assert not gc.isenabled()\n"
        "    try:\n"
        "        import sklearn\n"
        "    except ImportError:\n"
        "        print('left out')\n"
        "import sklearn\n"
        "assert gc.isenabled() and gc.get_freeze_count()\n"
    )
    result = run_python(["-c", code], PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
    assert (result.returncode, result.stdout, result.stderr) == (0, "left out\n", "")


def test_commands_start_without_messages_and_what_is_only_looked_for():
    code = (
        "import sys\n"
        "from albert_tf.cli import app\n"
        "import tensorflow_text\n"
        "print(*sorted({'IPython', 'jax', 'matplotlib', 'pandas', 'sklearn'} & set(sys.modules)))\n"
    )
    result = run_python(["-c", code])
    assert (result.returncode, result.stdout, result.stderr) == (0, "\n", "")


@pytest.mark.parametrize(("interrupt", "line"), [("", "interrupted"), ("'saved at step 3'", "saved at step 3")])
def test_interrupted_program_waits_for_nobody(interrupt, line):
    code = (
        "import multiprocessing, threading, time\n"
        "from albert_tf.base.startup import end_in_one_line_if_interrupted\n"
        "end_in_one_line_if_interrupted()\n"
        "threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "multiprocessing.get_context('fork').Process(target=time.sleep, args=(600,)).start()\n"
        "print('printed', end='')\n"
        f"raise KeyboardInterrupt({interrupt})\n"
    )
    result = run_python(["-c", code])
    assert (result.returncode, result.stdout, result.stderr) == (130, "printed", f"{line}\n")


def test_other_errors_keep_their_traceback():
    code = (
        "from albert_tf.base.startup import end_in_one_line_if_interrupted\n"
        "end_in_one_line_if_interrupted()\n"
        "raise RuntimeError('a mistake of ours')\n"
    )
    result = run_python(["-c", code])
    assert result.returncode == 1 and result.stderr.startswith("Traceback")


def test_warnings_of_the_library_are_lines_and_others_say_where(tmp_path):
    (tmp_path / "other.py").write_text("import warnings\nwarnings.warn('theirs')\n")
    program = (
        "from albert_tf.base import startup; from albert_tf import config; import warnings\n"
        "startup.warn_in_one_line(str.upper)\n"
        "warnings.warn_explicit('ours', UserWarning, config.__file__, 1)\n"
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import other\n"
    )
    result = run_python(["-c", program])
    assert result.returncode == 0 and "\nwarning: OURS\n" in f"\n{result.stderr}"
    assert f"{tmp_path}/other.py:2: UserWarning: theirs\n" in result.stderr


def test_several_trainings_are_not_told_to_trace_too_often(caplog, monkeypatch):
    monkeypatch.setattr(tf.get_logger(), "filters", [])
    monkeypatch.setattr(tf.get_logger(), "propagate", True)

    def warnings_of_tracing_often():
        caplog.clear()
        function = tf.function(lambda value: value)
        for number in range(6):
            function(number)
        return caplog.text

    assert "triggered tf.function retracing" in warnings_of_tracing_often()
    startup.without_warnings_of_tracing()
    assert "triggered" not in warnings_of_tracing_often()
    tf.get_logger().warning("another")
    assert "another" in caplog.text
