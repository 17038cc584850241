"""A task is one file and a line in `TASKS`; whatever else has to know of it looks in its kind."""

import ast
import json
import pathlib
import textwrap

import pytest
from runs import assert_same_variables, write_model
from tiny_config import tiny_config
from urgency import Urgency

import albert_tf
from albert_tf.asking.answers import DEFAULT, rows_of
from albert_tf.base.files import write_json
from albert_tf.finetuning import TASKS
from albert_tf.interchange.conversion import convert_checkpoint
from albert_tf.interchange.portable_model import ReadOptions
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.runs.tpu_compiler import planned_names, planned_objective
from albert_tf.serving.exporting import export_model
from albert_tf.serving.formats import open_export

LIBRARY = pathlib.Path(__file__).resolve().parent.parent.parent / "albert_tf"
COMMAND = """
    from albert_tf.cli.training import training_command
    from albert_tf.runs.finetune import finetune
    from urgency import UrgencySettings

    training_command(finetune, UrgencySettings)()
"""


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(TASKS, Urgency.kind.name, Urgency)


@pytest.fixture
def trained(tmp_path, sample_tokenizer, run_script, folder_of_run):
    """The folder of a run of the command; not to be changed."""
    if folder_of_run.exists():
        return folder_of_run
    model = write_model(tmp_path / "model", AlbertForPreTraining(tiny_config(len(sample_tokenizer))), sample_tokenizer)
    lines = "".join(f"{'!' * (number % 2)}{number} 번 영화\n" for number in range(16))
    (tmp_path / "lines.txt").write_text(lines, encoding="utf-8")
    (tmp_path / "run_urgency.py").write_text(textwrap.dedent(COMMAND), encoding="utf-8")
    sizes = {"num_train_steps": 2, "train_batch_size": 8, "max_seq_length": 8, "dev_fraction": 0.25}
    places = {"lines": tmp_path / "lines.txt", "init_checkpoint": model, "output_dir": folder_of_run}
    run_script(str(tmp_path / "run_urgency.py"), do_train=True, do_eval=True, word="now", **sizes, **places).succeeded()
    return folder_of_run


def settings_in(folder):
    return json.loads((folder / "run_settings.json").read_text(encoding="utf-8"))


def test_task_is_planned_by_its_name():
    assert "urgency" in planned_names() and type(planned_objective("urgency", tiny_config(7))) is Urgency


@pytest.mark.slow
def test_command_trains_it_and_its_model_goes_to_transformers_and_comes_back(trained, tmp_path):
    pytest.importorskip("safetensors")
    settings = settings_in(trained)
    assert (settings["command"], settings["objective"]) == ("run_urgency", "Urgency")
    assert settings["labels"] == ["calm", "now"]
    assert "\npipeline_tag: text-classification\n" in (trained / "README.md").read_text(encoding="utf-8")
    ours, theirs = str(tmp_path / "ours"), tmp_path / "theirs"
    convert_checkpoint("albert_tf", "huggingface", str(trained), str(theirs))
    config = json.loads((theirs / "config.json").read_text(encoding="utf-8"))
    assert config["architectures"] == ["AlbertForSequenceClassification"]
    assert (config["problem_type"], config["id2label"]["1"]) == ("single_label_classification", "now")
    convert_checkpoint("huggingface", "albert_tf", str(theirs), ours)
    assert settings_in(tmp_path / "ours")["objective"] == "Urgency"
    # Where nothing of ours says what the head is for, the task can be named.
    del config["albert_tf_settings"]
    write_json(str(theirs / "config.json"), config)
    convert_checkpoint("huggingface", "albert_tf", str(theirs), str(tmp_path / "named"), ReadOptions(task="urgency"))
    assert settings_in(tmp_path / "named")["objective"] == "Urgency"
    assert_same_variables(f"{ours}/model.ckpt-0", tmp_path / "named" / "model.ckpt-0")


@pytest.mark.slow
def test_its_model_is_exported_served_and_shown(trained, tmp_path):
    model, texts = albert_tf.load(trained), ["!지금 와", "나중에"]
    expected = model.predict(texts)
    assert set(expected[0]["probabilities"]) == {"calm", "now"}
    for model_format in ("saved_model", "litert"):
        if model_format == "litert":
            pytest.importorskip("ai_edge_litert", reason="needs ai-edge-litert: pip install 'albert_tf[litert]'")
        folder = tmp_path / model_format
        export_model(trained, folder, model_format=model_format)
        for found, other in zip(albert_tf.load(folder).predict(texts), expected):
            assert found["probabilities"] == pytest.approx(other["probabilities"], abs=2e-5)
        rows = rows_of(open_export(folder).compute(DEFAULT, {"text": texts}))  # as a server answers
        assert [row["label"] for row in rows] == [each["label"] for each in expected]
        assert open_export(folder).card["task"] == "Urgency"
    pytest.importorskip("gradio", reason="needs gradio: pip install 'albert_tf[playground]'")
    from albert_tf.cli.playground import build_page

    assert build_page(model, "").fn(texts[0])[1] == expected[0]


def test_nothing_is_known_of_a_task_by_its_name_elsewhere():
    classes = {task.__name__ for task in TASKS.values()} | {task.kind.head.hf_class for task in TASKS.values()}
    found = []
    # Elsewhere a name may be that of an ability, a setting or a format of files.
    parts = dict.fromkeys(("interchange/**/*.py", "training/**/*.py", "runs/tpu_*.py"), classes | {*TASKS})
    parts |= {f"{part}/**/*.py": classes for part in ("asking", "serving", "runs", "cli")}
    for part, names in parts.items():
        for path in LIBRARY.glob(part):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in names:
                    found.append(f"{path.name}, line {node.lineno}: {node.value}")
    assert not found
