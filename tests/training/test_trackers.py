"""Trackers are told all measures, and can't end a training."""

import pathlib
import re
import sys
import types

import pytest

from albert_tf.base.errors import InputError
from albert_tf.training.progress import Progress, load_tracker

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def run_of(tmp_path, trackers, on_metrics=None):
    """Measures three times."""
    progress = Progress(str(tmp_path), "loss", on_metrics=on_metrics, trackers=trackers)
    progress.start(0, 3)
    for step in (1, 2, 3):
        progress.record(step, "held_out" if step == 2 else "train", {"loss": 1.0 / step})
    progress.finish(0)


def test_tracker_that_fails_is_left_out_and_others_are_told_what_is_measured(tmp_path, capsys):
    seen, shown = [], []

    def out_of_reach(step, split, values):
        values.clear()  # nobody else's
        if step == 2:
            raise ConnectionError("no route to host")

    run_of(tmp_path, [out_of_reach, lambda *what: seen.append(what)], lambda *what: shown.append(what))
    assert seen == shown == [(1, "train", {"loss": 1.0}), (2, "held_out", {"loss": 0.5}), (3, "train", {"loss": 1 / 3})]
    warning = "warning: the tracker out_of_reach failed at step 2, and is left out: no route to host\n"
    assert capsys.readouterr().out == warning


def test_trackers_are_told_which_training_begins_and_that_it_ends(tmp_path, capsys):
    told = []

    class Log:
        def begin(self, output_dir):
            told.append(("begin", pathlib.Path(output_dir).name))

        def __call__(self, step, split, values):
            told.append(step)

        def end(self):
            told.append("end")

    tracker = Log()
    for name in ("first", "second"):
        run_of(tmp_path / name, [tracker])
    assert told == [("begin", "first"), 1, 2, 3, "end", ("begin", "second"), 1, 2, 3, "end"]
    assert "warning" not in capsys.readouterr().out


def test_tracker_that_cannot_tell_trainings_apart_is_named(tmp_path, capsys):
    def log(step, split, values):
        pass

    for name in ("first", "first", "second"):
        run_of(tmp_path / name, [log])
    printed = capsys.readouterr().out
    assert printed.count("warning: the tracker log is told of") == 1
    assert f"{tmp_path / 'second'} after {tmp_path / 'first'}, and can't tell the two apart" in printed


def test_tracker_that_cannot_begin_is_left_out(tmp_path, capsys):
    class Log:
        def begin(self, output_dir):
            raise ConnectionError("no route to host")

        def __call__(self, step, split, values):
            raise AssertionError

    run_of(tmp_path, [Log()])
    warning = "warning: the tracker Log failed as training began, and is left out: no route to host\n"
    assert capsys.readouterr().out.startswith(warning)


def test_one_tracker_needs_no_list_and_names_are_no_functions(tmp_path):
    seen = []
    run_of(tmp_path, lambda step, split, values: seen.append(step))
    assert seen == [1, 2, 3]
    with pytest.raises(InputError, match="`trackers` must be functions"):
        run_of(tmp_path, ["wandb_hook:log"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("wandb", "`trackers=wandb` must be module:function, such as wandb_hook:log"),
        (":log", "must be module:function"),
        ("no_such_module:log", r"can't import it \(No module named 'no_such_module'\)"),
        ("broken_hook:log", r"can't import it \(No module named 'a_library'\)"),
        ("good_hook:lag", r"can't import it \(module 'good_hook' has no attribute 'lag'\)"),
    ],
)
def test_tracker_that_is_none_is_named(tmp_path, monkeypatch, name, message):
    (tmp_path / "broken_hook.py").write_text("import a_library\n")
    (tmp_path / "good_hook.py").write_text("def log(step, split, values):\n    pass\n")
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    with pytest.raises(InputError, match=message):
        load_tracker(name)
    assert load_tracker("good_hook:log").__module__ == "good_hook"
    assert sys.path == before
    sys.modules.pop("good_hook")


def test_examples_of_the_documents_tell_the_services(tmp_path, monkeypatch):
    """The services' own libraries are large: modules with the functions that are called stand in for them."""
    told = []
    services = {
        "wandb": types.SimpleNamespace(
            init=lambda **named: (
                told.append(named)
                or types.SimpleNamespace(
                    log=lambda values, step: told.append((step, values)), finish=lambda: told.append("finished")
                )
            ),
        ),
        "mlflow": types.SimpleNamespace(
            set_experiment=lambda name: None,
            start_run=lambda run_name: told.append({"project": "albert", "name": run_name}),
            log_metrics=lambda values, step: told.append((step, values)),
            end_run=lambda: told.append("finished"),
        ),
    }
    text = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    for service, module in services.items():
        [code] = [block for block in re.findall(r"```python\n(.*?)```", text, re.S) if f"import {service}\n" in block]
        monkeypatch.setitem(sys.modules, service, module)
        monkeypatch.chdir(tmp_path)
        (tmp_path / f"{service}_hook.py").write_text(code)
        told.clear()
        run_of(tmp_path / service, [load_tracker(f"{service}_hook:Log")])
        sys.modules.pop(f"{service}_hook")
        values = [(1, {"train/loss": 1.0}), (2, {"held_out/loss": 0.5}), (3, {"train/loss": 1 / 3})]
        assert told == [{"project": "albert", "name": str(tmp_path / service)}, *values, "finished"]
