"""Which batch fits which TPU, and how long a recipe would take on it, before anything is rented."""

import collections.abc
import dataclasses
import hashlib
import math
import multiprocessing
import os
import typing

from albert_tf.base.errors import InputError
from albert_tf.base.files import read_json, write_json
from albert_tf.base.settings import check_types
from albert_tf.base.startup import end_with_parent
from albert_tf.runs.tpu_compiler import OutOfMemoryError, compile_program, compiler_version

# The figures of each TPU, as Google publishes them.


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


# The TPU pads the batch to a multiple of this.
BATCH_GRAIN = 8
# Near the limit the compiler computes again what it can't keep. An example takes more operations then.
_RECOMPUTATION = 1.02


@dataclasses.dataclass(frozen=True)
class Figures:
    """The figures of `CompiledStep` for one replica, but `flops` counts every round of the loss's loop."""

    temporary_bytes: int
    argument_bytes: int
    bytes_accessed: float
    flops: float
    compile_seconds: float

    def to_dict(self) -> dict[str, float]:
        return dataclasses.asdict(self)

    def roofline_seconds(self, tpu: Tpu) -> float:
        """Returns the least time that a step can take: that of its operations or that of its memory traffic."""
        return max(self.flops / tpu.peak_flops, self.bytes_accessed / tpu.bandwidth)


class CompiledSteps:
    """Compiles each step only once; results are kept in a JSON file, if there is one.

    For each program and version of the compiler it holds the figures, null for a step that doesn't fit, or the number
    of seconds after which compiling was given up: beyond the memory the compiler may look for hours for ways to
    recompute.
    """

    def __init__(self, cache_file: str | None, timeout: float = 600.0):
        self._cache_file = cache_file
        self._timeout = timeout
        self._known = _read_known(cache_file) if cache_file and os.path.exists(cache_file) else {}

    def figures(
        self, lower: collections.abc.Callable[[], str], tpu: Tpu, uncounted_flops: float = 0.0
    ) -> Figures | None:
        """Returns a program's figures; None if it doesn't fit. `lower` returns its StableHLO text, and can be pickled.

        A process of its own does this, whose memory comes back when it is killed: TensorFlow doesn't free what it made
        to lower a step, and the compiler takes gigabytes. `uncounted_flops` are added to the compiler's.
        """
        context = multiprocessing.get_context("spawn")
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_lower_and_compile, args=(sender, lower, tpu), daemon=True)
        process.start()
        sender.close()
        try:
            key = _received(receiver)
            known = self._known.get(key, 0)
            if isinstance(known, (int, float)) and known < self._timeout:
                known = _received(receiver) if receiver.poll(self._timeout) else self._timeout
                self._known[key] = known
                if self._cache_file:
                    write_json(self._cache_file, self._known)
        except EOFError as error:
            process.join()
            raise InputError(
                f"the compiler ended (exit code {process.exitcode}); it needs up to 16 GB of this machine's memory"
            ) from error
        finally:
            process.kill()
            process.join()
        return Figures(**{**known, "flops": known["flops"] + uncounted_flops}) if isinstance(known, dict) else None


def _read_known(path):
    """Returns the figures of compiled steps, seconds for one that was given up, None for one that is too large."""
    known = read_json(path, "compiled steps")
    check_types(known, dict.fromkeys(known, float | dict[str, float] | None), path)
    fields = typing.get_type_hints(Figures)
    for key, figures in known.items():
        if isinstance(figures, dict):
            check_types(figures, fields, f'{path}, "{key}"', fields)
    return known


def _received(receiver):
    result = receiver.recv()
    if isinstance(result, Exception):
        raise result
    return result


def _lower_and_compile(sender, lower, tpu):
    """Sends the program's key, and then its figures as a dictionary, None for a step that doesn't fit; or an error."""
    end_with_parent()  # nothing else would end it where this command is killed
    try:
        program = lower()
        sender.send(f"{tpu.name} {hashlib.sha256(program.encode()).hexdigest()} libtpu {compiler_version()}")
        compiled = compile_program(program, tpu.topology, tpu.num_replicas)
        sender.send({field.name: getattr(compiled, field.name) for field in dataclasses.fields(Figures)})
    except OutOfMemoryError:
        sender.send(None)
    except InputError as error:
        sender.send(error)


@dataclasses.dataclass(frozen=True)
class LargestBatch:
    batch_size: int  # a multiple of 8; 0 if not even 8 fit
    figures: Figures | None
    is_recomputing: bool  # whether the compiler fits it in only by computing something twice


def find_largest_batch(
    figures_of: collections.abc.Callable[[int], Figures | None],
    memory_bytes: int,
    largest: int = 2**16,
) -> LargestBatch:
    """Searches for the largest batch that fits, to about 3%.

    Memory grows by nearly the same for each example, so the search goes from two small batches straight to where the
    line through them meets the memory, and on in small steps: far beyond the memory the compiler may search for hours.
    """
    tried = {}

    def fits(size):
        if size not in tried:
            tried[size] = figures_of(size)
        return tried[size] is not None

    if not fits(BATCH_GRAIN):
        return LargestBatch(0, None, False)
    lower, upper = BATCH_GRAIN, largest + BATCH_GRAIN
    while upper - lower > _step(lower):
        from_upper = max(_step(lower), (upper - lower) // 4 // BATCH_GRAIN * BATCH_GRAIN)
        guess = min(_guess(tried, lower, memory_bytes), largest if upper > largest else upper - from_upper)
        guess = max(guess, lower + BATCH_GRAIN)
        if fits(guess):
            lower = guess
        else:
            upper = guess
    first, found = tried[BATCH_GRAIN], tried[lower]
    is_recomputing = found.flops / lower > _RECOMPUTATION * first.flops / BATCH_GRAIN
    return LargestBatch(lower, found, is_recomputing)


def _step(size):
    """Returns the size of a step near the limit: a multiple of 8, about 3%."""
    return max(BATCH_GRAIN, size // 32 // BATCH_GRAIN * BATCH_GRAIN)


def _guess(tried, lower, memory_bytes):
    """Returns the size to try after `lower`, the largest that fits so far."""
    known = sorted(size for size, figures in tried.items() if figures is not None)
    if len(known) == 1:
        return 2 * lower
    low, high = known[-2:]
    of_low, of_high = (tried[size].temporary_bytes + tried[size].argument_bytes for size in (low, high))
    slope = (of_high - of_low) / (high - low)
    room = (memory_bytes - of_high) / slope if slope > 0 else math.inf
    # Not so far at once that a small error in the slope leads far beyond the memory.
    guess = lower + min(room, 7 * lower)
    return max(int(guess) // BATCH_GRAIN * BATCH_GRAIN, lower + _step(lower))


def find_gradient_accumulation(
    fits: collections.abc.Callable[[int, int], bool],
    num_replicas: int,
    largest_batch_size: int,
    target_batch_size: int,
) -> int | None:
    """Returns the least number of equal parts in which a replica can compute its share of a global batch.

    The sums of gradients need room beside a part, so that it may have to be smaller than the largest batch alone:
    `fits` says whether a batch in so many parts does. None if the replicas can't divide the batch, or nothing fits.
    """
    batch_size, rest = divmod(target_batch_size, num_replicas)
    if rest or not largest_batch_size:
        return None
    possible = (parts for parts in range(1, batch_size + 1) if batch_size % parts == 0)
    enough = (parts for parts in possible if batch_size // parts <= largest_batch_size)
    return next((parts for parts in enough if parts == 1 or fits(batch_size, parts)), None)


def make_plan(
    tpu: Tpu,
    largest: LargestBatch,
    gradient_accumulation_steps: int | None,
    target_batch_size: int,
    num_train_steps: int,
) -> dict:
    """Returns the plan of a recipe on a TPU, JSON values by name."""
    plan = {"tpu": tpu.name, "replicas": tpu.num_replicas, "largest_batch_of_a_replica": largest.batch_size}
    if not largest.figures:
        return plan
    together = largest.batch_size * tpu.num_replicas
    examples_per_second = together / largest.figures.roofline_seconds(tpu)
    return {
        **plan,
        "compiler_recomputes": largest.is_recomputing,
        "largest_global_batch": together,
        "gradient_accumulation_steps": gradient_accumulation_steps,
        "roofline_examples_per_second": examples_per_second,
        "roofline_days": target_batch_size * num_train_steps / examples_per_second / 86400,
        **largest.figures.to_dict(),
    }


_COLUMNS = {
    "tpu": "{}",
    "replicas": "{}",
    "largest_batch_of_a_replica": "{:,}",
    "compiler_recomputes": "{}",
    "gradient_accumulation_steps": "{:,}",
    "roofline_examples_per_second": "{:,.0f}",
    "roofline_days": "{:,.2f}",
}


def format_table(plans: list[dict]) -> str:
    rows = [[name.replace("_", " ") for name in _COLUMNS]]
    rows += [
        ["-" if plan.get(name) is None else form.format(plan[name]) for name, form in _COLUMNS.items()]
        for plan in plans
    ]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows)
