"""The package: what importing it costs, what comes along, and what sdist and wheel hold."""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

from albert_tf import __version__
from albert_tf.base import shipped_files
from albert_tf.base.errors import InputError
from albert_tf.base.shipped_files import SHIPPED_FOLDERS, did_you_mean, find_or_shipped, shipped_path
from albert_tf.cli import demo
from albert_tf.cli.commands import COMMANDS

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOT_SOURCE = ("build", "dist", "demo_output")


def run_python(*arguments, folder=ROOT, path=ROOT):
    """Runs Python in a folder, with the package of a path."""
    environment = {**os.environ, "PYTHONPATH": str(path)}
    return subprocess.run([sys.executable, *arguments], env=environment, cwd=folder, capture_output=True, text=True)


def test_importing_the_package_imports_neither_tensorflow_nor_numpy():
    code = "import sys, albert_tf; print({'tensorflow', 'numpy', 'keras', 'absl'} & set(sys.modules))"
    assert run_python("-c", code).stdout == "set()\n"


def test_what_comes_along_is_found_in_a_checkout():
    assert shipped_path() == str(ROOT)
    for name in (*SHIPPED_FOLDERS, "configs/recipes/ko_small.cfg"):
        assert shipped_path(name) == str(ROOT / name)


@pytest.mark.parametrize("name", ["models/albert_ko_huge", "setup.py", "configs/../setup.py", "..", "/etc/passwd"])
def test_what_does_not_come_along_is_refused(name):
    with pytest.raises(InputError, match=r"is included; look in configs, models, samples in "):
        shipped_path(name)


def test_folder_that_is_mistyped_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run" / "reviews").mkdir(parents=True)
    for name in ("models/albert_ko_smal", "albert_ko_small", "model/albert_ko_small"):
        assert did_you_mean(name) == "; did you mean models/albert_ko_small?"
    assert did_you_mean("run/review") == "; did you mean run/reviews?"
    assert did_you_mean("nowhere") == did_you_mean("no/where") == ""


def test_name_of_a_model_on_the_hub_is_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_or_shipped("models/albert_ko_small") == str(ROOT / "models" / "albert_ko_small")
    assert find_or_shipped("run/nsmc/1") == "run/nsmc/1"
    with pytest.raises(InputError, match="a folder must be named by its path"):
        find_or_shipped(None)
    with pytest.raises(InputError, match="first run hf download klue/bert-base, which prints"):
        find_or_shipped("klue/bert-base")
    (tmp_path / "klue" / "bert-base").mkdir(parents=True)
    assert find_or_shipped("klue/bert-base") == "klue/bert-base"


def test_command_prints_paths_without_tensorflow():
    code = "import sys; from albert_tf.cli.main import files; files(); print('tensorflow' in sys.modules)"
    result = run_python("-c", code, "models/albert_ko_small")
    assert result.stdout.splitlines() == [str(ROOT / "models" / "albert_ko_small"), "False"]
    failed = run_python("-c", code, "models/albert_ko_huge")
    assert failed.returncode == 1 and failed.stderr.startswith("error: no models/albert_ko_huge is included")


def test_stages_of_the_demo_are_scripts_in_a_checkout_and_commands_in_a_wheel(tmp_path, monkeypatch):
    assert demo.command_line("run_classifier")[1] == "python run_classifier.py"
    monkeypatch.setattr(shipped_files, "_IN_WHEEL", str(tmp_path))
    start, typed = demo.command_line("run_classifier")
    assert typed == "albert-tf run-classifier" and start[0] == sys.executable


def _not_source(folder, names):
    """Returns which names of a folder of the checkout are no source."""
    return [
        name
        for name in names
        if name.startswith(".")
        or name == "__pycache__"
        or name.endswith(".egg-info")
        or (name in NOT_SOURCE and pathlib.Path(folder) == ROOT)
    ]


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """The names of the files in an sdist of the checkout, and the wheel that pip makes of this sdist."""
    source, built = tmp_path_factory.mktemp("source") / "albert_tf", tmp_path_factory.mktemp("built")
    shutil.copytree(ROOT, source, ignore=_not_source)
    result = run_python("setup.py", "-q", "sdist", "-d", str(built), folder=source)
    assert result.returncode == 0, result.stderr
    [sdist] = built.glob("*.tar.gz")
    make = ("-m", "pip", "wheel", "-q", "--no-deps", "--no-index", "--no-build-isolation", "-w", str(built), str(sdist))
    result = run_python(*make, folder=built, path="")
    assert result.returncode == 0, result.stderr
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    [wheel] = built.glob("*.whl")
    return names, wheel


@pytest.mark.slow
def test_sdist_and_wheel_hold_what_is_needed(distributions):
    in_sdist, wheel = distributions
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = set(archive.namelist())
        [entry_points] = [archive.read(name).decode() for name in in_wheel if name.endswith("entry_points.txt")]
    assert wheel.name.startswith(f"albert_tf-{__version__}-py3-none-any")

    library = {str(path.relative_to(ROOT)) for path in (ROOT / "albert_tf").rglob("*.py")}
    assert {*library, "albert_tf/py.typed"} <= in_wheel & in_sdist
    shipped = {
        str(path.relative_to(ROOT))
        for folder in SHIPPED_FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert "models/albert_ko_small/vocab.txt" in shipped and shipped <= in_sdist
    assert {f"albert_tf/shipped/{name}" for name in shipped} <= in_wheel
    scripts = {path.name for path in ROOT.glob("*.py")}
    assert {*scripts, "tests/conftest.py", "docs/model.md", "Makefile", "LICENSE"} <= in_sdist
    assert not [name for name in in_wheel if name.startswith(("tests", "benchmarks", "configs"))]
    assert "albert-tf = albert_tf.cli.main:run\n" in entry_points
    assert all(f"albert-{stage} = albert_tf.cli.{place}\n" in entry_points for stage, place, _ in COMMANDS)


@pytest.mark.slow
def test_wheel_works_from_another_folder(distributions, tmp_path):
    _, wheel = distributions
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:  # which is what pip does with a wheel of Python alone
        archive.extractall(installed)
    code = "from albert_tf.cli.main import files; files()"
    result = run_python("-c", code, "models/albert_ko_small", folder=tmp_path, path=installed)
    model = pathlib.Path(result.stdout.strip())
    assert model.is_relative_to(installed) and (model / "tokenizer.json").exists()
    config = model / "albert_config.json"
    demo_config = run_python(
        "-c", "from albert_tf.cli import demo; print(demo.CONFIG)", folder=tmp_path, path=installed
    ).stdout.strip()
    assert pathlib.Path(demo_config).is_relative_to(installed) and config.exists()
