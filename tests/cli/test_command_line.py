"""Mistakes in the command line itself, which all scripts share, and flags that the original's commands may hold."""

import pathlib
import re
import runpy
from unittest import mock

import pytest
import setuptools

from albert_tf.base.errors import InputError
from albert_tf.cli.commands import COMMANDS, find_command

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def refused(run_script, assert_refused, tmp_path):
    """Returns the sentence that a script ends with."""
    return lambda **flags: assert_refused(lambda: run_script("build_vocab.py", **flags), tmp_path)


def test_short_help_is_no_failure(run_script):
    assert "--vocab_size" in run_script("build_vocab.py", helpshort=True).succeeded().output


@pytest.mark.parametrize("stage", [stage for stage, *_ in COMMANDS if stage != "files"])
def test_help_shows_no_more_than_a_person_sets(run_script, stage):
    result = run_script(stage, help=True).succeeded()
    assert result.output.startswith(f"Usage: albert-tf {stage} --flag=value ...\n")
    shown = re.findall(r"^ +--(?:\[no\])?(\w+):", result.output, re.MULTILINE)
    assert 0 < len(shown) <= 30, "leave what is rare to --helpfull, with group=RARE"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"inptu_file": "a"}, "there is no flag --inptu_file; did you mean --input_file?; see --help"),
        ({"do_lower_csae": False}, "there is no flag --nodo_lower_csae; did you mean --nodo_lower_case?; see --help"),
        ({"wordpiece_scheme": "end"}, "--wordpiece_scheme must be one of continuation, end_of_word. Received: end"),
        ({"vocab_size": "many"}, "--vocab_size must be a whole number, at least 6. Received: many"),
        ({"flagfile": "nowhere.cfg"}, "can't read --flagfile=nowhere.cfg: No such file or directory"),
    ],
)
def test_wrong_flag_costs_one_sentence(refused, flags, message):
    assert refused(**flags) == message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"input_file=a\n", "unexpected argument input_file=a; every setting is a flag, --name=value"),
        ("--input_file=말뭉치.txt\n".encode("cp949"), "can't read the --flagfile: it is not UTF-8"),
    ],
)
def test_mistake_in_a_flagfile_costs_one_sentence(refused, tmp_path, content, message):
    (tmp_path / "flags.cfg").write_bytes(content)
    assert refused(flagfile=tmp_path / "flags.cfg") == message


def test_every_console_command_is_there(monkeypatch):
    given = {}
    monkeypatch.setattr(setuptools, "setup", lambda **options: given.update(options))
    runpy.run_path(str(ROOT / "setup.py"))
    expected = [f"albert-{stage}=albert_tf.cli.{place}" for stage, place, _ in COMMANDS]
    assert given["entry_points"]["console_scripts"] == ["albert-tf=albert_tf.cli.main:run", *expected]
    assert all(callable(find_command(stage)) for stage, *_ in COMMANDS)


def test_scripts_of_the_top_level_are_stages(run_script):
    names = {path.stem for path in ROOT.glob("*.py")} - {"setup"}
    assert names < {stage.replace("-", "_") for stage, *_ in COMMANDS}
    for name in names:
        assert run_script(f"{name}.py", help=True).output.startswith(f"Usage: {name}.py --flag=value ...\n")


def test_flags_are_read_in_one_place():
    names = [
        path.stem
        for path in sorted((ROOT / "albert_tf").rglob("*.py"))
        if re.search(r"\bFLAGS\b|\bDEFINE_|flagsaver", path.read_text(encoding="utf-8"))
    ]
    assert names == ["command"], "commands are given their settings"


@pytest.mark.parametrize("stage", [stage for stage, *_ in COMMANDS if stage != "files"])
def test_default_of_every_flag_is_possible(stage):
    settings = find_command(stage).settings()
    for name in settings.names():
        assert getattr(settings, name) == settings.__dataclass_fields__[name].default, name


def test_settings_in_sentences_are_called_as_flags_are(run_script, monkeypatch):
    sentence = "`vocab_size=5` and `prune` are flags, `attention=flash` is none; run --this"
    monkeypatch.setattr("albert_tf.cli.build_vocab.prepare_output", mock.Mock(side_effect=InputError(sentence)))
    result = run_script("build_vocab.py", input_file="corpus.txt")
    expected = "--vocab_size=5 and --prune are flags, `attention=flash` is none; run --this"
    assert (result.code, result.errors) == (1, f"error: {expected}\n")


# Those of the other commands are tried in test_every_flag.py.
@pytest.mark.parametrize(
    ("script", "flags"),
    [
        (
            "create_pretraining_data.py",
            {"input_file": "missing.txt", "output_file": "out", "vocab_file": "missing", "input_file_mode": "r"},
        ),
        (
            "run_squad.py",
            {"train_file": "missing", "albert_config_file": "missing", "output_dir": "out", "do_train": True}
            | {"train_feature_file": "a", "predict_feature_left_file": "b", "use_einsum": False, "dropout_prob": 0.1},
        ),
    ],
)
def test_flags_without_effect_are_taken_and_other_values_refused(run_script, script, flags):
    result = run_script(script, **flags)
    assert result.code == 1 and "missing" in result.errors, "what comes after the flags: the files are missing"
    assert "not supported" not in result.errors
    if script == "run_squad.py":
        result = run_script(script, **{**flags, "dropout_prob": 0.2})
        assert result.errors.startswith("error: --dropout_prob=0.2 is not supported: ")
        assert result.code == 1 and result.errors.count("\n") == 1
