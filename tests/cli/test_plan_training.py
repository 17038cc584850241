"""plan_training.py: measures the training that the flags ask for, estimates other machines, and writes nothing."""

import json
import types

import pytest
import tensorflow as tf

from albert_tf.cli.plan_training import ESTIMATED, MEASURED, estimates, format_table, plan, tell
from albert_tf.interchange.conversion import convert_checkpoint
from albert_tf.training import Phase
from albert_tf.training.pace import Pace


@pytest.fixture
def plan_training(run_script, flag_values):
    """Runs the script for the run of four steps; flags may be replaced or, with None, left out."""

    def run(**changes):
        given = {name: value for name, value in {**flag_values, "seconds": 1, **changes}.items() if value is not None}
        return run_script("plan_training.py", **given)

    return run


def phase(end_step):
    """Returns a phase without data."""
    return Phase(end_step, {"example_weights": tf.TensorSpec([4])}, None)


def test_training_of_the_flags_is_measured_and_nothing_is_written(plan_training, tmp_path, contents):
    before = contents(tmp_path)
    result = plan_training()
    assert result.code == 0, result.errors
    assert " s a step of 4 examples of 32 pieces, by " in result.output
    names = [line.split("  ")[0] for line in result.output.splitlines() if line.endswith((MEASURED, ESTIMATED))]
    assert names == ["this machine", "T4, in float32", "v5e-1", "v5e-8"]
    assert "operations alone can't tell: steps shorter than 0.02 s, an objective" in result.output
    assert contents(tmp_path) == before


def test_json_has_the_same_in_full(plan_training):
    result = plan_training(json=True)
    found = json.loads(result.output)
    here, *others = found["machines"]
    assert here["basis"] == MEASURED and here["hours"] == pytest.approx(4 * found["seconds_per_step"][0] / 3600)
    assert here["hours_of_one_pass"] > 0 and found["flops_per_step"][0] > 1e6 and found["measured_steps"][0] > 0
    assert [machine["hours"] for machine in others] == [None] * 3, "steps of this size say nothing of other machines"


def test_estimates_are_the_operations_at_two_fifths_of_the_peak():
    # The operations of configs/recipes/base_v5e8.cfg, whose comment has the sum: 31 hours.
    flops = 2.747e11 * 1024
    seconds = estimates([flops], 768)["v5e-8"]
    assert seconds == [pytest.approx(flops / (0.4 * 8 * 197e12))]
    assert plan([phase(250_000)], seconds, "v5e-8", ESTIMATED).hours == pytest.approx(31, abs=0.5)


def test_nothing_is_said_of_small_steps_and_on_tpus_of_narrow_layers():
    small, large = 1e9, 1e14
    assert set(estimates([small], 768).values()) == {None}
    found = estimates([large], 256)
    assert found["T4, in float32"] and found["v5e-1"] is None and found["v5e-8"] is None


def test_each_phase_has_its_own_pace():
    machine = plan([phase(90), phase(100)], [1.0, 5.0], "this machine", MEASURED)
    assert machine.hours == pytest.approx((90 * 1.0 + 10 * 5.0) / 3600)
    assert machine.hours_of_one_pass is None


def test_table_has_times_people_read():
    machines = [plan([phase(7200)], [0.5], "this machine", MEASURED), plan([phase(7200)], None, "T4", ESTIMATED)]
    assert format_table(machines, [phase(7200)]).splitlines()[1:] == [
        "this machine      1:00:00                       -  measured",
        "T4                      -                       -  estimated",
    ]


def test_table_says_which_steps_and_data_its_times_are_of():
    machines = [plan([phase(90), phase(100)], [1.0, 5.0], "this machine", MEASURED)]
    assert format_table(machines, [phase(100)]).split("\n")[0].split("  ")[-2:] == [
        "100 steps",
        "one pass over the data",
    ]
    assert (
        format_table(machines, [phase(90), phase(100)]).split("\n")[0].endswith("one pass over the last phase's data")
    )


def test_of_an_objective_that_counts_no_operations_no_rate_is_told(capsys):
    phases, machines = [phase(100)], [plan([phase(100)], None, name, ESTIMATED) for name in estimates([0], 768)]
    tell(types.SimpleNamespace(json=False), phases, [0], [Pace(4, 2.0)], machines)
    told = capsys.readouterr().out
    assert told.splitlines()[0] == "0.5 s a step of 4 examples of 0 pieces, by 4 steps"
    assert "an objective that doesn't count them" in told


def test_several_trainings_are_refused(plan_training, tmp_path, assert_refused):
    message = assert_refused(lambda: plan_training(num_trials=3, do_train=True), tmp_path)
    assert "plan_training.py plans one training" in message


def test_damaged_shards_are_named(plan_training, shards, tmp_path):
    damaged = tmp_path / "train.tfrecord"
    damaged.write_bytes((shards / "train.tfrecord").read_bytes()[:-7])
    for name in ("held_out.tfrecord", "manifest.json", "tokenizer.json", "vocab.txt"):
        (tmp_path / name).write_bytes((shards / name).read_bytes())
    result = plan_training(input_file=damaged, seconds=30)
    assert result.code == 1 and str(damaged) in result.errors.splitlines()[-1]


def test_models_of_other_libraries_are_read_as_a_training_reads_them(plan_training, pretrained, tmp_path, contents):
    convert_checkpoint("albert_tf", "huggingface", str(pretrained), str(tmp_path / "theirs"))
    before = contents(tmp_path)
    result = plan_training(init_checkpoint=tmp_path / "theirs", albert_config_file=None)
    assert result.code == 0, result.errors
    assert contents(tmp_path) == before
