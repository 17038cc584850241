"""What is read off a compiled program, of one that can be added up by hand."""

from benchmarks.traffic import COPIED, IN_FAST_MEMORY, IN_MEMORY, traffic

PROGRAM = """HloModule step, is_scheduled=true

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
    assert traffic(PROGRAM) == {
        "bf16[8,128]": {COPIED: 2048, IN_FAST_MEMORY: 2048, IN_MEMORY: 2 * 2048},
        "f32[2,128]": {COPIED: 512},
        "f32[1,128]": {IN_FAST_MEMORY: 512},
        "f32[2]": {IN_MEMORY: 8},
        "pred[]": {IN_MEMORY: 1},
    }
