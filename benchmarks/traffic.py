"""The memory traffic of a compiled step, array by array, read off the program that the TPU's compiler made.

Bytes accessed, the compiler's own figure, counts what every operation reads and writes, whether it lies in memory (HBM)
or in the fast memory on the chip, and every copy from one to the other besides. Here they are apart.
"""

import collections
import re

IN_MEMORY, IN_FAST_MEMORY, COPIED = "in memory", "in fast memory", "copied between"

_INSTRUCTION = re.compile(r"\n  (?:ROOT )?%(\S+) = (.+?) ([a-z-]+)\(([^)]*)\)([^\n]*)")
_ARRAY = re.compile(r"([a-z]+)(\d*)\[([\d,]*)\](\{[^}]*\})?")
# They move nothing: they name what is there already, or wait for a copy.
_NAMING = ("parameter", "constant", "get-tuple-element", "bitcast", "tuple", "copy-done", "slice-done")
_COPYING = ("copy-start", "slice-start")


def traffic(program: str) -> dict[str, collections.Counter]:
    """Returns how many bytes of each array of a `CompiledStep.text` are moved outside of loops.

    For each dtype and shape, such as "bf16[32,512,768]", they are the bytes that operations read and write `IN_MEMORY`
    and `IN_FAST_MEMORY`, and those `COPIED` between the two. What an operation reads a part of is counted whole.
    """
    types, moved = {}, collections.defaultdict(collections.Counter)
    entry = program[program.index("\nENTRY ") :]
    for name, result, operation, operands, attributes in _INSTRUCTION.findall(entry):
        types[name] = result
        if operation in _NAMING or '"ConcatBitcast"' in attributes:
            continue
        inputs = [types[operand] for operand in re.findall(r"%([^\s,]+)", operands)]
        if operation in _COPYING:
            # Of a whole copy the second array of the result is the source, of a slice it is the slice.
            source, size = _arrays(inputs[0])[0][0], _arrays(result)[1][1]
            moved[source][COPIED] += size
            continue
        for array, size, is_in_fast_memory in _arrays(" ".join([result, *inputs])):
            moved[array][IN_FAST_MEMORY if is_in_fast_memory else IN_MEMORY] += size
    return dict(moved)


def _arrays(shape):
    """Returns each array of a type in XLA's notation, its bytes, and whether it lies in fast memory."""
    found = []
    for kind, bits, sizes, layout in _ARRAY.findall(shape):
        size = int(bits or 8) // 8
        for length in filter(None, sizes.split(",")):
            size *= int(length)
        found.append((f"{kind}{bits}[{sizes}]", size, "S(1)" in layout))
    return found
