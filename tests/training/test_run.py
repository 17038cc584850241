"""A run without any flag: trained, resumed, evaluated and restored as a notebook would."""

import dataclasses
import json
import os
import signal

import numpy as np
import pytest
import tensorflow as tf
from tiny_training import CONFIG, SEQUENCE_LENGTH, make_examples

from albert_tf.base.errors import InputError
from albert_tf.base.files import write_json
from albert_tf.modeling.layers import named_variables
from albert_tf.objectives import make_objective
from albert_tf.objectives.losses import Pretraining
from albert_tf.objectives.objective import with_batch_size
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.training import Phase, RunSettings, TrainingRun
from albert_tf.training.progress import read_metrics
from albert_tf.training.run_folder import held_folder
from albert_tf.training.run_folder.guard import read_settings

pytestmark = pytest.mark.slow

BATCH_SIZE = 4
OBJECTIVE = make_objective("albert", CONFIG, masking=MaskingOptions(4))
RESULT_SETTINGS = RunSettings.names(same_on_resume=True)
SETTINGS = RunSettings(
    num_train_steps=6,
    train_batch_size=BATCH_SIZE,
    learning_rate=0.01,
    optimizer="adamw",
    eval_batch_size=BATCH_SIZE,
    save_checkpoints_steps=3,
    eval_every_steps=3,
    eval_checkpoint="latest",
    ema_decay=0.9,  # so that what is used after training is not what was trained last
)
# Another value of every setting, with what it needs.
OTHER_VALUES = {
    "num_train_steps": 7,
    "train_batch_size": 8,
    "learning_rate": 0.02,
    "num_warmup_steps": 1,
    "gradient_accumulation_steps": 2,
    "optimizer": "lamb",
    "reference_batch_size": 16,
    "scale_learning_rate": "sqrt",
    "poly_power": 2.0,
    "schedule": "original",
    "weight_decay": 0.1,
    "bias_correction": True,
    "ema_decay": 0.5,
    "freeze": ("pooler",),
    "init_checkpoint": "elsewhere",
    "random_seed": 1,
    "head_learning_rate": 1e-3,
    "layer_decay": 0.5,
    "beta_2": 0.98,
    "clip_norm": 0.0,
    "eval_batch_size": 8,
    "max_eval_steps": 1,
    "eval_every_steps": 2,
    "evaluates_first": True,
    "early_stopping": 1,
    "eval_checkpoint": "best",
    "save_checkpoints_steps": 2,
    "keep_checkpoint_max": 1,
    "max_skipped_steps": 0,
    "iterations_per_loop": 1,
    "profile_steps": (1, 2),
    "peak_tflops": 1.0,
}
SCALING = {"scale_learning_rate": "sqrt", "reference_batch_size": 16}


def held_out():
    return tf.data.Dataset.from_tensor_slices(make_examples(8, seed=1)).batch(BATCH_SIZE)


def make_phase(make_eval_dataset=held_out, end_step=6):
    def make_dataset(start_step, host_index, num_hosts):
        return tf.data.Dataset.from_tensor_slices(make_examples(24)).repeat().batch(BATCH_SIZE).skip(start_step)

    spec = with_batch_size(OBJECTIVE.batch_spec(SEQUENCE_LENGTH), BATCH_SIZE)
    return Phase(end_step, spec, make_dataset, make_eval_dataset, num_examples=24)


def start(folder, settings=SETTINGS, strategy=None, **options):
    tf.keras.utils.set_random_seed(0)
    with (strategy or tf.distribute.get_strategy()).scope():
        model = OBJECTIVE.make_model()
    return TrainingRun(folder, OBJECTIVE, model, settings, **options)


def values(run):
    return {name: variable.numpy() for name, variable in named_variables(run._models["model"]).items()}


def stop_then_evaluate():
    os.kill(os.getpid(), signal.SIGTERM)
    return held_out()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run that came to its end in one go, its folder, and of which metrics it told when."""
    folder, told = tmp_path_factory.mktemp("finished"), []
    run = start(folder, on_metrics=lambda step, split, _: told.append((step, split)))
    assert run.train(make_phase())
    return run, folder, told


def test_run_trains_writes_what_it_found_and_is_restored(finished, capsys):
    run, folder, told = finished
    assert told == [(3, "train"), (3, "held_out"), (6, "train"), (6, "held_out")]
    results = run.evaluate(held_out())
    assert run.step == results["global_step"] == 6
    assert json.loads((folder / "eval_results.json").read_text()) == results
    assert f"wrote the results to {folder}/eval_results.json" in capsys.readouterr().out
    restored = start(folder)
    restored.restore()
    np.testing.assert_equal(values(restored), values(run))
    assert restored.evaluate(held_out()) == pytest.approx(results, rel=1e-6)


def test_stopped_run_resumes_to_the_same_weights(finished, tmp_path):
    stopped = start(tmp_path)
    assert not stopped.train(make_phase(stop_then_evaluate)), "a signal came during the first evaluation"
    assert stopped.step == 3
    resumed = start(tmp_path)
    assert resumed.train(make_phase())
    np.testing.assert_equal(values(resumed), values(finished[0]))


@pytest.mark.usefixtures("quick_to_trace")
@pytest.mark.parametrize("split", ["train", "held_out"])
def test_run_whose_folder_is_taken_over_writes_no_more(tmp_path, monkeypatch, split):
    def take_over(step, told, values):
        if told == split:
            write_json(str(tmp_path / held_folder.OWNER_FILE), {"host": "elsewhere", "process": 7, "token": 1})

    monkeypatch.setattr(held_folder, "_SECONDS_BETWEEN_LOOKS", 0.0)
    with pytest.raises(InputError, match="was taken over by process 7 on elsewhere; nothing more is written"):
        start(tmp_path, on_metrics=take_over).train(make_phase())
    rows = [(row["step"], row["split"]) for row in read_metrics(str(tmp_path))]
    assert rows == [(3, "train"), (3, "held_out")][: 1 + (split == "held_out")]
    assert not list(tmp_path.glob("model.ckpt-6*"))


def test_evaluation_of_weights_from_elsewhere_is_no_row_of_the_run(finished, tmp_path):
    checkpoint = f"{finished[1]}/model.ckpt-3"
    for changes in ({"eval_checkpoint": checkpoint}, {"init_checkpoint": checkpoint}):
        run = start(tmp_path, dataclasses.replace(SETTINGS, **changes))
        run.restore()
        run.evaluate(held_out())
    assert (tmp_path / "eval_results.json").exists() and not (tmp_path / "metrics.jsonl").exists()


def test_another_value_of_every_setting_is_tried():
    assert OTHER_VALUES.keys() == set(RunSettings.names())


@pytest.mark.parametrize("name", RESULT_SETTINGS)
def test_setting_that_changes_the_result_is_refused_when_a_run_is_resumed(finished, name):
    changes = SCALING if name in SCALING else {name: OTHER_VALUES[name]}
    with pytest.raises(InputError, match=f"holds another run: `({'|'.join(changes)})` is"):
        settings = dataclasses.replace(SETTINGS, **changes)
        start(finished[1], settings).train(make_phase(end_step=settings.num_train_steps))


def test_other_settings_may_change(finished):
    changes = {name: value for name, value in OTHER_VALUES.items() if name not in RESULT_SETTINGS}
    run = start(finished[1], dataclasses.replace(SETTINGS, **changes))
    assert run.train(make_phase()), "there is nothing left to train"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_batch_size": 0}, "`train_batch_size` must be a whole number, at least 1. Received: 0"),
        (
            {"random_seed": 2**31},
            "`random_seed` must be a whole number, at least 0 and at most 2147483647. Received: 2147",
        ),
        ({"scale_learning_rate": "root"}, "`scale_learning_rate` must be one of none, sqrt. Received: root"),
        ({"scale_learning_rate": "sqrt"}, 'scale_learning_rate="sqrt" and reference_batch_size go together'),
    ],
)
def test_settings_that_can_not_be_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        dataclasses.replace(SETTINGS, **changes)


def test_run_that_fails_before_it_has_saved_leaves_its_folder_free(finished, tmp_path, monkeypatch):
    """Whatever it had written by then; evaluation before the first step records a row."""
    settings = dataclasses.replace(SETTINGS, evaluates_first=True, learning_rate=0.1)
    with monkeypatch.context() as patch:
        patch.setattr(Pretraining, "loss_weights", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            start(tmp_path, settings).train(make_phase())
    assert (tmp_path / "metrics.jsonl").exists() and read_settings(str(tmp_path)) is None
    run = start(tmp_path, dataclasses.replace(SETTINGS, evaluates_first=True))
    assert run.train(make_phase())
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [(row["split"], row["step"]) for row in rows if row["split"] == "held_out"] == [
        ("held_out", step) for step in (0, 3, 6)
    ]
    np.testing.assert_equal(values(run), values(finished[0]))


def test_phase_of_another_length_than_the_learning_rates_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"ends at step 5, but .* `num_train_steps=6`; make"):
        start(tmp_path).train(make_phase(end_step=5))


def test_run_of_another_objective_is_refused(finished):
    other = make_objective("roberta", CONFIG, masking=MaskingOptions(4))
    with pytest.raises(InputError, match="`objective` is roberta, and was albert"):
        TrainingRun(finished[1], other, other.make_model(), SETTINGS).train(make_phase())
