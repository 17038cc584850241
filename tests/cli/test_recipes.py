"""configs/recipes: every recipe is a command that run_pretraining.py would accept."""

import json
import pathlib
import re

import pytest
from absl import flags

from albert_tf.cli.command import define_flags, settings_from_flags

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RECIPES = sorted((ROOT / "configs" / "recipes").glob("*.cfg"))


def test_there_are_recipes():
    assert RECIPES


@pytest.fixture
def values_of(run_script, monkeypatch):
    """Reads a flagfile with a script's own flags; returns the value of each."""

    def read(path, script):
        read_values = {}

        def read_without_work(main, settings, output_flag=None):
            define_flags(settings)
            flags.FLAGS([str(ROOT / script), f"--flagfile={path}"])
            found = settings_from_flags(settings)
            read_values.update(vars(found))
            read_values["schedule"] = found.with_steps(found.num_train_steps, "num_train_steps").make_schedule()

        monkeypatch.setattr("albert_tf.cli.command.run", read_without_work)
        assert run_script(script).code == 0
        return read_values

    return read


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipe_can_be_run(path, values_of):
    values = values_of(path, "run_pretraining.py")
    config = ROOT / values["albert_config_file"]
    assert config.parent == ROOT / "configs" and json.loads(config.read_text())["vocab_size"] > 0
    assert values["schedule"].num_warmup_steps > 0, "warm-up that is shorter than the training, checked by the schedule"
    replicas = int(re.search(r"^# replicas: (\d+)$", path.read_text(), re.MULTILINE)[1])
    parts = values["gradient_accumulation_steps"]
    for count in (parts, values["phase2_gradient_accumulation_steps"] or parts):
        assert values["train_batch_size"] % (replicas * count) == 0
    assert values["eval_batch_size"] % replicas == 0
    if values["phase2_start_step"]:
        assert values["phase2_start_step"] < values["num_train_steps"]
    assert values["use_tpu"] == ("TPU" in re.search(r"^# Hardware: (.*)$", path.read_text(), re.MULTILINE)[1])


# Lan et al. (2020), table 14: learning rate, batch size, dropout of ALBERT, steps, warm-up, length.
PUBLISHED = {
    "cola": (1e-5, 16, 0.0, 5336, 320, 512),
    "sts-b": (2e-5, 16, 0.0, 3598, 214, 512),
    "sst-2": (1e-5, 32, 0.0, 20935, 1256, 512),
    "mnli": (3e-5, 128, 0.0, 10000, 1000, 512),
    "qnli": (1e-5, 32, 0.0, 33112, 1986, 512),
    "qqp": (5e-5, 128, 0.1, 14000, 1000, 512),
    "rte": (3e-5, 32, 0.1, 800, 200, 512),
    "mrpc": (2e-5, 32, 0.0, 800, 200, 512),
    "wnli": (2e-5, 16, 0.1, 2000, 250, 512),
    "race": (2e-5, 32, 0.1, 12000, 1000, 512),
    "squad_v1": (5e-5, 48, 0.0, 3649, 365, 384),
    "squad_v2": (3e-5, 48, 0.0, 8144, 814, 512),
}
# Where it is not run_classifier.py.
SCRIPTS = {"race": "run_race.py", "squad_v1": "run_squad.py", "squad_v2": "run_squad.py"}


@pytest.mark.parametrize("task", PUBLISHED)
def test_recipe_of_a_task_is_the_published_one(task, values_of):
    path = ROOT / "configs" / "recipes" / "finetuning" / f"{task}.cfg"
    script = SCRIPTS.get(task, "run_classifier.py")
    found = values_of(path, script)
    assert f"#   python {script} --flagfile=configs/recipes/finetuning/{task}.cfg " in path.read_text()
    names = ("learning_rate", "train_batch_size", "dropout", "num_train_steps", "num_warmup_steps", "max_seq_length")
    assert tuple(found[name] for name in names) == PUBLISHED[task]
    assert found["do_train"] and found["do_eval"]
    if script == "run_squad.py":
        assert found["version_2_with_negative"] == (task == "squad_v2")
    else:
        assert found["task_name"] == task
