"""How many of sixty faults, drawn from the library's syntax, the tests find.

python -m benchmarks.drawn_faults --output_dir=benchmark/faults

Each fault of drawn_faults.tsv is made in a copy of the tree, in the statement that the table names of a function or
class, whichever file has that now. The test files that import this file (`tests_of`) run to the first failure, the
quick tests before the slow ones; a test counts if it passes without the fault. results.tsv in the output folder gets a
row for each: found, not found, timeout (nothing failed in --minutes of the CPU's time, that of children included, as
the clock depends on what else runs; or nothing was computed for twice as long), or not applied. What has a row is not
run again.

drawn_faults_before.tsv and drawn_faults_after.tsv are results with --minutes=1 before and after the suite was halved;
before, of nine rows and of all that were not found after. Row 21 was found after by hand, by a test of another library
that `tests_of` doesn't take for one of the changed file. Rows 50 to 52 are of code that is gone.

--draw draws the table: packages in proportion to their lines, and six kinds equally often, but for docstrings, errors,
printed lines and annotations. `_EQUIVALENT` are the faults that were drawn and put aside, after reading each one beside
the code that calls it, because they change nothing but speed or wording; the next of their package and kind follows.
"""

import collections
import contextlib
import csv
import dataclasses
import functools
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from absl import app, flags

from benchmarks.fault_kinds import KINDS, faults_of, head, replaced, statements, text_of
from benchmarks.importing_tests import modules, parsed, tests_of
from benchmarks.machine import session_cpu_seconds
from benchmarks.stage import ROOT

FLAGS = flags.FLAGS

flags.DEFINE_string("output_dir", None, "Folder for the results.")
flags.DEFINE_float("minutes", 5.0, "After how much of the CPU's time a fault's tests are given up.", 0.01)
flags.DEFINE_enum("only", None, ["quick"], "Run the quick tests alone.")
flags.DEFINE_bool("draw", False, "Draw the table instead.")
flags.DEFINE_integer("seed", 62, "Seed of the draw.")

TABLE = pathlib.Path(ROOT, "benchmarks", "drawn_faults.tsv")
NUM_FAULTS = 60
FAILED = ".pytest_cache/v/cache/lastfailed"

# By definition and kind: why nothing else than this changes.
_EQUIVALENT = {
    ("spans_with_most_context", "offset"): "speed: a window that ends where another begins shares no span with it",
    ("check_plausible", "offset"): "the sentence: what has one variable a block is refused anyway",
    ("fill_slots", "swapped"): "the order of two settings that are both required",
    ("softmax", "sign"): "nothing: its caller has two axes",
    ("ConditionalQuestionAnswering._find_spans", "offset"): "nothing: no score is exactly half of what is impossible",
    ("entries", "default"): "nothing: who leaves it out has no head with outputs",
    ("describe_mixture", "negated"): "a printed line",
    ("fit_folder", "offset"): "nothing: both sides are a tenth at 1,000",
    ("OpRunner.__call__", "negated"): "speed: what is computed in a graph or without one",
    ("Progress.update", "sign"): "the time in a printed line",
}


@dataclasses.dataclass(frozen=True)
class Fault:
    """A row of the table: a statement of a definition, which occurrence of it there, and what it is with the fault."""

    number: int
    package: str
    kind: str
    definition: str
    occurrence: int
    before: str
    after: str


@functools.cache
def places():
    """Returns where the statements are: {(definition, text): {path: [statement, ...]}}."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for path in modules().values():
        for definition, statement in statements(parsed(path)):
            found[definition, text_of(head(statement))][path].append(statement)
    return found


def package_of(path):
    """Returns the folder of the library that a file lies in, or the library's name for those that lie in none."""
    parts = path.relative_to(ROOT).parts
    return parts[1] if len(parts) > 2 else parts[0]


def candidates():
    """Returns all faults that may be drawn, without numbers: {(package, kind): [fault, ...]}."""
    found = collections.defaultdict(list)
    for (definition, before), by_path in places().items():
        if len(by_path) > 1 or "\n" in before:
            continue
        for path, found_here in by_path.items():
            for occurrence, statement in enumerate(found_here, 1):
                for kind, after in faults_of(statement):
                    package = package_of(path)
                    found[package, kind].append(Fault(0, package, kind, definition, occurrence, before, after))
    return found


def shares():
    """Returns a package for every fault to draw, in proportion to the packages' lines (largest remainders)."""
    lines = collections.Counter()
    for path in modules().values():
        lines[package_of(path)] += len(path.read_text(encoding="utf-8").splitlines())
    quotas = {package: NUM_FAULTS * count / lines.total() for package, count in lines.items()}
    counts = {package: int(quota) for package, quota in quotas.items()}
    by_remainder = sorted(quotas, key=lambda package: counts[package] - quotas[package])
    for package in by_remainder[: NUM_FAULTS - sum(counts.values())]:
        counts[package] += 1
    return [package for package in sorted(counts) for _ in range(counts[package])]


def drawn():
    """Yields the faults of the table."""
    found = candidates()
    kinds = list(KINDS) * (NUM_FAULTS // len(KINDS))
    random.Random(FLAGS.seed).shuffle(kinds)
    taken = set()
    for number, (package, kind) in enumerate(zip(shares(), kinds), 1):
        draws = random.Random(f"{FLAGS.seed} {number}")
        order = draws.sample(found[package, kind], len(found[package, kind]))
        order = [fault for fault in order if (fault.definition, kind) not in _EQUIVALENT]
        fault = next(fault for fault in order if (fault.definition, fault.after) not in taken)
        taken.add((fault.definition, fault.after))
        yield dataclasses.replace(fault, number=number)


def read_rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def write_row(path, values):
    with open(path, "a", encoding="utf-8") as file:
        file.write("\t".join(map(str, values)) + "\n")


def place_of(fault):
    """Returns the file and the statement of a fault.

    Raises:
        LookupError: No file has it, or several have.
    """
    by_path = places().get((fault.definition, fault.before), {})
    if len(by_path) != 1:
        raise LookupError(f"{len(by_path) or 'no'} files have this statement in {fault.definition}")
    [(path, found)] = by_path.items()
    if len(found) < fault.occurrence:
        raise LookupError(f"{fault.definition} has this statement {len(found)} times only")
    return path, found[fault.occurrence - 1]


def run_tests(tree, tests):
    """Runs tests to the first failure; returns whether it was a timeout, the seconds, and the test that failed."""
    shutil.rmtree(tree / ".pytest_cache", ignore_errors=True)
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "benchmarks.importing_tests"]
    command += ["-m", "not slow"] if FLAGS.only else []
    command += [f"--basetemp={tree.parent / 'temporary'}", *tests]
    with open(pathlib.Path(FLAGS.output_dir, "pytest.txt"), "a", encoding="utf-8") as output:
        process = subprocess.Popen(command, cwd=tree, stdout=output, stderr=output, start_new_session=True)
    limit, seconds, computed_at = 60 * FLAGS.minutes, 0.0, time.monotonic()
    while process.poll() is None and seconds < limit and time.monotonic() - computed_at < 2 * limit:
        time.sleep(1.0)
        used = session_cpu_seconds(process.pid)
        if abs(used - seconds) > 0.1:
            seconds, computed_at = used, time.monotonic()
    code = process.poll()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # what it started too
    process.wait()
    failed = list(json.loads((tree / FAILED).read_text("utf-8"))) if (tree / FAILED).exists() else []
    # Where nothing ran, or the process died, no test says so.
    test = failed[0] if failed else "" if code in (0, 5, None) else f"pytest ended with {code}"
    return code is None, seconds, test


def passes(tree, test, tests):
    """Returns whether a test, or the opening of all, succeeds where there is no fault."""
    return not run_tests(tree, [test] if "::" in test else ["--collect-only", *tests])[2]


def measure(fault, tree, failing):
    """Returns the cells of a fault's row after the number; adds to `failing` what fails without a fault too.

    Raises:
        LookupError: The fault can't be made.
    """
    path, statement = place_of(fault)
    changed = tree / path.relative_to(ROOT)
    tests = [str(test.relative_to(ROOT)) for test in tests_of(path)]
    result, seconds, test = "not found", 0.0, "no test imports it"
    while tests:
        changed.write_text(replaced(path.read_text(encoding="utf-8"), statement, fault.after), encoding="utf-8")
        is_late, seconds, test = run_tests(tree, [*tests, *(f"--deselect={name}" for name in failing)])
        shutil.copy2(path, changed)  # with its time, by which Python knows what it has compiled
        if not test:
            result = "timeout" if is_late else "not found"
            break
        if passes(tree, test, tests):
            result = "found"
            break
        if "::" not in test:
            raise RuntimeError(f"the tests don't run without a fault either ({test}); see pytest.txt")
        failing.append(test)
    return path.relative_to(ROOT), result, round(seconds), test


def main(_):
    if FLAGS.draw:
        TABLE.unlink(missing_ok=True)
        write_row(TABLE, [field.name for field in dataclasses.fields(Fault)])
        for fault in drawn():
            write_row(TABLE, dataclasses.astuple(fault))
        return
    FLAGS.output_dir = os.path.abspath(FLAGS.output_dir)
    os.makedirs(FLAGS.output_dir, exist_ok=True)
    results = os.path.join(FLAGS.output_dir, "results.tsv")
    if not os.path.exists(results):
        write_row(results, ("number", "file", "result", "seconds", "test"))
    done = {row["number"] for row in read_rows(results)}
    failing = []
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder, "tree")
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", ".venv", "__pycache__"))
        for row in read_rows(TABLE):
            if row["number"] not in done:
                fault = Fault(**{**row, "occurrence": int(row["occurrence"])})
                try:
                    cells = measure(fault, tree, failing)
                except LookupError as error:
                    cells = "", "not applied", 0, error
                write_row(results, (fault.number, *cells))
                print(fault.number, *cells, flush=True)
    counts = collections.Counter(row["result"] for row in read_rows(results))
    print(", ".join(f"{result}: {count}" for result, count in counts.most_common()))
    print("fail without a fault too:", ", ".join(failing) or "none")


if __name__ == "__main__":
    app.run(main)
