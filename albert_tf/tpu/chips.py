"""The figures of each TPU, as Google publishes them."""

import dataclasses

from albert_tf.errors import InputError


@dataclasses.dataclass(frozen=True)
class Tpu:
    name: str
    topology: str  # the name that the compiler knows it by
    num_replicas: int  # how many train on it: chips, or on v2 and v3 the two cores of each
    memory_bytes: int  # of one replica
    peak_flops: float  # bfloat16 operations a second of one replica
    bandwidth: float  # bytes a second between one replica and its memory
    # Whether the compiler takes Pallas kernels for it. Before v4 it knows no product of bfloat16 in them.
    runs_pallas_kernels: bool = True


_GIB = 2**30

# cloud.google.com/tpu/docs/v2, v3, v4, v5e, v5p and v6e: memory, peak and bandwidth of a chip, halved for a core.
TPUS = {
    tpu.name: tpu
    for tpu in (
        Tpu("v2-8", "v2:2x2", 8, 8 * _GIB, 22.5e12, 350e9, False),
        Tpu("v3-8", "v3:2x2", 8, 16 * _GIB, 61.5e12, 450e9, False),
        Tpu("v4-8", "v4:2x2x1", 4, 32 * _GIB, 275e12, 1200e9),
        Tpu("v5e-1", "v5e:2x2", 1, 16 * _GIB, 197e12, 819e9),
        Tpu("v5e-8", "v5e:2x4", 8, 16 * _GIB, 197e12, 819e9),
        Tpu("v5e-256", "v5e:16x16", 256, 16 * _GIB, 197e12, 819e9),
        Tpu("v5p-8", "v5p:2x2x1", 4, 95 * _GIB, 459e12, 2765e9),
        Tpu("v6e-8", "v6e:2x4", 8, 32 * _GIB, 918e12, 1638e9),
    )
}
_ONE_CHIP = {"v5e": "v5e-1"}


def find_tpu(name: str) -> Tpu:
    """Returns the TPU of a name; "v5e" is one chip."""
    name = _ONE_CHIP.get(name, name)
    if name not in TPUS:
        raise InputError(f"`tpu={name}` is unknown; it must be one of {', '.join([*_ONE_CHIP, *TPUS])}")
    return TPUS[name]
