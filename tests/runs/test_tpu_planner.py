"""The search for the largest batch, and what a plan says."""

import functools
import json
import multiprocessing
import os
import sys
import threading
import types
from multiprocessing import connection

import pytest

from albert_tf.base.errors import InputError
from albert_tf.runs import tpu_planner
from albert_tf.runs.tpu_compiler import UnsupportedOperationError, compile_program
from albert_tf.runs.tpu_planner import (
    TPUS,
    CompiledSteps,
    Figures,
    find_gradient_accumulation,
    find_largest_batch,
    find_tpu,
    format_table,
    make_plan,
)
from benchmarks.traffic import COPIED, IN_FAST_MEMORY, IN_MEMORY, traffic

FIGURES = Figures(temporary_bytes=10, argument_bytes=5, bytes_accessed=819e9, flops=2 * 197e12, compile_seconds=1.5)


MEMORY = 10**9


def figures_up_to(limit, recomputes_from=10**9, fixed_bytes=10**8, optimism=1.0):
    """Returns the figures of made-up steps that fit up to a batch size, and the sizes that were asked for.

    Each example takes the same of what `fixed_bytes` leaves; `optimism` says how much less the compiler reports.
    """
    asked = []

    def figures_of(batch_size):
        asked.append(batch_size)
        flops = batch_size * (1.3 if batch_size >= recomputes_from else 1.0)
        temporary_bytes = int((MEMORY - fixed_bytes) / limit * batch_size / optimism)
        return Figures(temporary_bytes, fixed_bytes, 1.0, flops, 1.0) if batch_size <= limit else None

    return figures_of, asked


@pytest.mark.parametrize("limit", [8, 15, 16, 100, 333, 1000, 3999])
@pytest.mark.parametrize("optimism", [0.8, 1.0, 1.1, 1.3])
def test_largest_batch_is_found_in_few_steps(limit, optimism):
    figures_of, asked = figures_up_to(limit, optimism=optimism)
    largest = find_largest_batch(figures_of, MEMORY)
    assert largest.batch_size % 8 == 0
    assert limit / 1.04 - 8 <= largest.batch_size <= limit
    assert len(set(asked)) == len(asked) <= (8 if optimism == 1.0 else 20)
    assert max(asked) <= 1.4 * limit + 8, "far beyond the memory the compiler may not answer"
    assert figures_of(largest.batch_size) == largest.figures


def test_nothing_fits():
    largest = find_largest_batch(figures_up_to(7)[0], MEMORY)
    assert (largest.batch_size, largest.figures) == (0, None)
    assert make_plan(TPUS["v2-8"], largest, None, 4096, 1000) == {
        "tpu": "v2-8",
        "replicas": 8,
        "largest_batch_of_a_replica": 0,
    }


def test_search_ends_where_it_is_told_to():
    assert find_largest_batch(figures_up_to(10**6)[0], MEMORY, largest=64).batch_size == 64


@pytest.mark.parametrize(("recomputes_from", "expected"), [(64, True), (72, False)])
def test_recomputation_by_the_compiler_is_noticed(recomputes_from, expected):
    assert find_largest_batch(figures_up_to(64, recomputes_from)[0], MEMORY).is_recomputing is expected


@pytest.mark.parametrize(
    ("num_replicas", "largest", "target", "expected"),
    [
        (8, 512, 4096, 1),  # all at once
        (8, 184, 4096, 4),  # three parts would not be equal
        (1, 1456, 4096, 4),
        (8, 16, 1000, 25),
        (8, 128, 4096, 8),  # a part of 128 has no room beside the sums
        (8, 184, 4095, None),
        (8, 0, 4096, None),
    ],
)
def test_a_batch_is_computed_in_the_fewest_equal_parts_that_fit(num_replicas, largest, target, expected):
    def fits(batch_size, parts):
        assert batch_size == target // num_replicas and batch_size % parts == 0
        return batch_size // parts < 0.9 * largest

    assert find_gradient_accumulation(fits, num_replicas, largest, target) == expected


def test_plan_follows_from_the_figures():
    largest = tpu_planner.LargestBatch(16, FIGURES, False)
    plan = make_plan(TPUS["v5e-8"], largest, 25, target_batch_size=1000, num_train_steps=86400)
    assert plan["largest_global_batch"] == 128 and plan["gradient_accumulation_steps"] == 25
    # Two seconds of operations; memory alone would take one.
    assert plan["roofline_examples_per_second"] == pytest.approx(64)
    assert plan["roofline_days"] == pytest.approx(1000 / 64)


def test_plans_are_shown():
    plans = [
        make_plan(TPUS["v5e-8"], tpu_planner.LargestBatch(16, FIGURES, True), 32, 4096, 125000),
        make_plan(TPUS["v2-8"], tpu_planner.LargestBatch(0, None, False), None, 4096, 125000),
    ]
    header, first, second = format_table(plans).splitlines()
    assert header.split()[0] == "tpu" and first.split()[:4] == ["v5e-8", "8", "16", "True"]
    assert second.split() == ["v2-8", "8", "0", "-", "-", "-", "-"]


PROGRAM = functools.partial(str, "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> { return %a : tensor<8xf32> }")


@pytest.fixture
def compiler():
    """Skips a test where the compiler is not installed."""
    pytest.importorskip("jax")
    pytest.importorskip("libtpu")


class _Thread(threading.Thread):
    """Stands in for the process that compiles."""

    exitcode = None

    def __init__(self, target, args, daemon):
        sender, *others = args
        # The caller closes its end.
        sender = connection.Connection(os.dup(sender.fileno()), readable=False)
        super().__init__(target=target, args=(sender, *others), daemon=daemon)

    def kill(self):
        """Does nothing: whoever calls it waits for the end."""


@pytest.fixture
def in_this_process(monkeypatch):
    """Compiles in this process, because in each new one TensorFlow and JAX take seconds to import."""
    context = types.SimpleNamespace(Pipe=multiprocessing.Pipe, Process=_Thread)
    monkeypatch.setattr(tpu_planner.multiprocessing, "get_context", lambda method: context)


@pytest.mark.slow
@pytest.mark.usefixtures("compiler", "in_this_process")
def test_a_program_is_compiled_once(tmp_path):
    cache_file = tmp_path / "compiled_steps.json"
    steps = CompiledSteps(str(cache_file))
    figures = steps.figures(PROGRAM, TPUS["v5e-1"])
    assert figures.argument_bytes >= 8 * 4 and figures == steps.figures(PROGRAM, TPUS["v5e-1"])
    known = json.loads(cache_file.read_text())
    (key,) = known
    # What is in the file is taken for what the compiler said.
    cache_file.write_text(json.dumps({key: FIGURES.to_dict()}))
    assert CompiledSteps(str(cache_file)).figures(PROGRAM, TPUS["v5e-1"]) == FIGURES
    cache_file.write_text(json.dumps({key: None}))
    assert CompiledSteps(str(cache_file)).figures(PROGRAM, TPUS["v5e-1"]) is None
    assert CompiledSteps(str(cache_file)).figures(PROGRAM, TPUS["v5e-8"]).argument_bytes >= 8 * 4
    assert set(json.loads(cache_file.read_text())) > {key}


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
def test_what_is_no_program_is_said():
    with pytest.raises(InputError, match="the compiler ended"):
        CompiledSteps(None).figures(functools.partial(str, "not a program"), TPUS["v5e-1"])


def _refuse():
    raise UnsupportedOperationError("XLA can't compile the step: a shape depends on values")


@pytest.mark.usefixtures("in_this_process")
def test_step_that_can_not_be_lowered_is_said():
    with pytest.raises(UnsupportedOperationError, match="a shape depends on values"):
        CompiledSteps(None).figures(_refuse, TPUS["v5e-1"])


@pytest.mark.usefixtures("compiler", "in_this_process")
def test_what_took_too_long_is_tried_again_with_more_time_only(tmp_path):
    cache_file = tmp_path / "compiled_steps.json"
    assert CompiledSteps(str(cache_file), timeout=0.001).figures(PROGRAM, TPUS["v5e-1"]) is None
    assert list(json.loads(cache_file.read_text()).values()) == [0.001]
    assert CompiledSteps(str(cache_file), timeout=600).figures(PROGRAM, TPUS["v5e-1"]) is not None
    (key,) = json.loads(cache_file.read_text())
    cache_file.write_text(json.dumps({key: 600}))
    assert CompiledSteps(str(cache_file), timeout=600).figures(PROGRAM, TPUS["v5e-1"]) is None


def test_tpus_are_found_by_name():
    assert find_tpu("v5e") is TPUS["v5e-1"]
    with pytest.raises(InputError, match="`tpu=v9` is unknown; it must be one of v5e, v2-8"):
        find_tpu("v9")


def test_missing_compiler_costs_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "libtpu", None)
    with pytest.raises(InputError, match=r"the TPU compiler is missing .*pip install .*\[tpu-compile\]"):
        compile_program("module {}", "v5e:2x2")


SCHEDULED = """HloModule step, is_scheduled=true

%fused_computation (param_0: bf16[8,128]) -> bf16[8,128] {
  %param_0 = bf16[8,128]{1,0:T(8,128)(2,1)} parameter(0)
  ROOT %negate = bf16[8,128]{1,0:T(8,128)(2,1)} negate(%param_0)
}

ENTRY %main (states: bf16[8,128], weights: f32[2,128]) -> (bf16[8,128], f32[2]) {
  %states = bf16[8,128]{1,0:T(8,128)(2,1)} parameter(0)
  %weights = f32[2,128]{1,0:T(2,128)} parameter(1)
  %copy-start = (bf16[8,128]{1,0:T(8,128)(2,1)S(1)}, bf16[8,128]{1,0:T(8,128)(2,1)}, u32[]{:S(2)}) copy-start(%states)
  %slice-start.1 = ((f32[2,128]{1,0}), f32[1,128]{1,0:S(1)}, s32[]{:S(2)}) slice-start(%weights), slice={[0:1], [0:128]}
  %copy-done = bf16[8,128]{1,0:T(8,128)(2,1)S(1)} copy-done(%copy-start)
  %slice-done.1 = f32[1,128]{1,0:S(1)} slice-done(%slice-start.1)
  %whole = f32[1,128]{1,0:S(1)} custom-call(%slice-done.1), custom_call_target="ConcatBitcast"
  %fusion = (bf16[8,128]{1,0:T(8,128)(2,1)}, /*index=1*/f32[2]{0}) fusion(%copy-done, %whole), kind=kLoop, calls=%fused_computation
  %first = bf16[8,128]{1,0:T(8,128)(2,1)} get-tuple-element(%fusion), index=0
  %is_finite = pred[]{:T(512)} custom-call(%first), custom_call_target="tpu_custom_call"
  ROOT %tuple = (bf16[8,128]{1,0:T(8,128)(2,1)}, f32[2]{0}) tuple(%first, %fusion)
}
"""  # noqa: E501


def test_bytes_are_where_the_program_says():
    assert traffic(SCHEDULED) == {
        "bf16[8,128]": {COPIED: 2048, IN_FAST_MEMORY: 2048, IN_MEMORY: 2 * 2048},
        "f32[2,128]": {COPIED: 512},
        "f32[1,128]": {IN_FAST_MEMORY: 512},
        "f32[2]": {IN_MEMORY: 8},
        "pred[]": {IN_MEMORY: 1},
    }
