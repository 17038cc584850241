"""The command `plan_training.py`."""

from albert_tf.cli import app  # first: it keeps TensorFlow quiet at its start

# isort: split
import contextlib
import dataclasses
import json
import sys
import tempfile
import typing

from absl import flags

from albert_tf.cli import run_pretraining, training_flags
from albert_tf.cli.flag_groups import in_helpfull
from albert_tf.cli.flag_parsing import resolved_flags
from albert_tf.cli.model_files import with_our_init_checkpoint
from albert_tf.cli.pretraining_setup import check_batch_sizes, find_config, find_known_entities, set_up
from albert_tf.errors import InputError
from albert_tf.progress_line import ProgressLine, format_seconds
from albert_tf.tpu.chips import TPUS
from albert_tf.training import Phase
from albert_tf.training.devices.workers import has_several_workers
from albert_tf.training.pace import measure_pace

flags.disclaim_key_flags()

# Of what a chip can do at most, as its maker publishes it, the share that estimates count on, as in the recipes.
_SHARE_OF_PEAK = 0.4
_T4_FLOPS = 8.1e12  # float32, for it has no bfloat16; nvidia.com/en-us/data-center/tesla-t4
_TPUS = ("v5e-1", "v5e-8")
# Of a step that takes less, no count of operations tells how long it takes: what is not a product decides.
_LEAST_SECONDS = 0.02
# Nor on a TPU if layers are narrower: its memory is too slow for them. Of a step of ELECTRA-small, whose width is 256,
# the compiler says that a v5e takes 45 ms to move its bytes, and that its operations at this share of the peak take 15.
_LEAST_WIDTH = 512
MEASURED, ESTIMATED = "measured", "estimated"


def define_flags():
    """Defines the flags of this command: all of run_pretraining.py, and its own."""
    run_pretraining.define_flags()
    flags.DEFINE_float("seconds", 60.0, "How long to measure, besides compiling.", 1.0)
    with in_helpfull():
        flags.DEFINE_bool("json", False, "Print only JSON.")


class Machine(typing.NamedTuple):
    """How long it takes on a machine.

    Attributes:
        name: Of the machine.
        basis: `MEASURED` or `ESTIMATED`.
        hours: Of all steps; None where operations don't tell it.
        hours_of_one_pass: Of as many as read all examples of the last phase once; None likewise, and where their number
            is unknown.
    """

    name: str
    basis: str
    hours: float | None
    hours_of_one_pass: float | None


def estimates(phases_flops: list[float], hidden_size: int) -> dict[str, list[float] | None]:
    """Returns seconds of a step of each phase by machine, from its operations; None where these don't tell them."""
    peaks = {"T4, in float32": _T4_FLOPS} | {name: TPUS[name].num_replicas * TPUS[name].peak_flops for name in _TPUS}
    found = {name: [flops / (_SHARE_OF_PEAK * peak) for flops in phases_flops] for name, peak in peaks.items()}
    is_narrow = hidden_size < _LEAST_WIDTH
    return {
        name: None if min(seconds) < _LEAST_SECONDS or (is_narrow and name in _TPUS) else seconds
        for name, seconds in found.items()
    }


def plan(phases, seconds_per_step: list[float] | None, name: str, basis: str) -> Machine:
    """Returns how long phases take, of which each has its own seconds for a step, None if they are not known."""
    if seconds_per_step is None:
        return Machine(name, basis, None, None)
    begins = [0, *(phase.end_step for phase in phases)]
    total = sum((phase.end_step - begin) * each for phase, begin, each in zip(phases, begins, seconds_per_step))
    last = phases[-1]
    of_pass = last.num_examples / last.examples * seconds_per_step[-1] / 3600 if last.num_examples else None
    return Machine(name, basis, total / 3600, of_pass)


def format_table(machines: list[Machine], phases: list[Phase]) -> str:
    """Returns a table as lines of aligned columns."""
    data = "the data" if len(phases) == 1 else "the last phase's data"
    rows = [["", f"{phases[-1].end_step:,} steps", f"one pass over {data}", ""]]
    for machine in machines:
        times = ("-" if hours is None else format_seconds(3600 * hours) for hours in machine[2:])
        rows.append([machine.name, *times, machine.basis])
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join(
        f"{name:{widths[0]}}  {hours:>{widths[1]}}  {of_pass:>{widths[2]}}  {basis}".rstrip()
        for name, hours, of_pass, basis in rows
    )


def main():
    given = dataclasses.replace(resolved_flags(), do_train=True, do_eval=False)
    if given.trials or given.num_trials > 1:
        raise InputError("plan_training.py plans one training; leave --trials and --num_trials out")
    with tempfile.TemporaryDirectory(prefix="albert_tf_") as folder, contextlib.ExitStack() as stack:
        if given.json:  # and nothing else is printed
            stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        given = dataclasses.replace(given, output_dir=folder)  # into which models of other libraries are converted
        phases, flops, paces, hidden_size = measure(with_our_init_checkpoint(given))
    machines = [plan(phases, [pace.seconds_per_step for pace in paces], "this machine", MEASURED)]
    machines += [plan(phases, each, name, ESTIMATED) for name, each in estimates(flops, hidden_size).items()]
    tell(given, phases, flops, paces, machines)


def measure(given):
    """Returns the phases of a training, the operations and the pace of a step of each, and the width of the model."""
    entities = find_known_entities(given, None)
    config = find_config(given, None, entities)
    strategy = training_flags.strategy_from_flags(given)
    if has_several_workers(strategy):
        raise InputError("plan_training.py measures on one host; start it on only one")
    check_batch_sizes(given, strategy)
    setup = set_up(given, None, config, strategy, entities)
    phases, paces = setup.make_phases(), []
    line = ProgressLine(sys.stderr)
    flops = [each.flops(phase.batch_spec) for each, phase in zip(setup.objectives, phases)]
    with setup.naming_damaged_shards():
        for objective, phase in zip(setup.objectives, phases):
            line.show("compiling the step")
            seconds = given.seconds / len(phases)
            pace = measure_pace(
                strategy,
                objective,
                setup.models,
                setup.settings,
                phase,
                seconds,
                lambda steps, took, seconds=seconds: (
                    line.is_due
                    and line.show(f"{steps:,} steps in {took:.0f} of {seconds:.0f} s: {took / steps:.3g} s a step")
                ),
            )
            line.finish()
            paces.append(pace)
    return phases, flops, paces, config.hidden_size


def tell(given, phases, flops, paces, machines):
    """Prints what was found."""
    if given.json:
        print(
            json.dumps(
                {
                    "seconds_per_step": [pace.seconds_per_step for pace in paces],
                    "measured_steps": [pace.num_steps for pace in paces],
                    "flops_per_step": flops,
                    "machines": [machine._asdict() for machine in machines],
                }
            )
        )
        return
    for phase, operations, pace in zip(phases, flops, paces):
        # Not every objective knows its operations.
        rate = f"; {operations / pace.seconds_per_step / 1e12:.3g} TFLOP/s" if operations else ""
        print(
            f"{pace.seconds_per_step:.3g} s a step of {phase.examples:,} examples of {phase.sequence_length} pieces, "
            f"by {pace.num_steps:,} steps{rate}"
        )
    print(f"\n{format_table(machines, phases)}\n")
    print(
        f"estimated: the operations of a step at {_SHARE_OF_PEAK:.0%} of what the machine can do at most.\n"
        "Evaluations and checkpoints come on top."
    )
    if any(machine.hours is None for machine in machines):
        print(
            f"-: operations alone can't tell: steps shorter than {_LEAST_SECONDS:g} s, an objective that doesn't count "
            f"them or,\non a TPU, layers narrower than {_LEAST_WIDTH}, where memory decides; plan_tpu.py uses the "
            "TPU's compiler."
        )


def run():
    """Runs the command."""
    app.run(main, define_flags)
