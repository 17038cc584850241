"""What this machine can do."""


def computes_in_bfloat16() -> bool:
    """Returns whether the processor multiplies matrices in bfloat16; where it can't, TensorFlow is slow at it."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return bool({"avx512_bf16", "amx_bf16"} & set(file.read().split()))
