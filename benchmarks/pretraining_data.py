"""Speed and memory of create_pretraining_data.py, from a corpus of any size to shards, the start of Python included.

python -m benchmarks.pretraining_data --input_file='corpus/*.txt.gz' --vocab_file=vocab.txt --nodo_lower_case \\
    --versions=.,../version_before --rounds=3

The corpus is repeated until it has the size that is asked for; every copy of a document gets a number as its first
sentence, so that no two are equal. Every row of the table is one version, whose runs and those of the others come in
turns; seconds are medians: until all is written, until the first shard is, and of the processors, all processes
together. All of it is with static masking, one copy (--dupe_factor=1) and length 128. Memory is that of the largest
process (RSS), and of all the command's processes with the pages that they share counted once (PSS), each at its
highest. The last column is the beginning of a hash of all shards: the same for versions that write the same bytes.
"""

import ctypes
import hashlib
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from absl import app, flags

from albert_tf.base.files import match_files
from albert_tf.reading.documents import CorpusReader
from benchmarks.stage import ROOT

FLAGS = flags.FLAGS

flags.DEFINE_list("input_file", None, "Text files, .gz too.", required=True)
flags.DEFINE_string("vocab_file", None, "Vocabulary of the continuation scheme.", required=True)
flags.DEFINE_bool("do_lower_case", True, "Lower-case letters.")
flags.DEFINE_list("versions", [str(ROOT)], "Folders of checkouts, which are measured in turns.")
flags.DEFINE_integer("rounds", 1, "Runs of each version.", lower_bound=1)
flags.DEFINE_multi_integer("megabytes", [25, 250], "Sizes of the corpus.", lower_bound=1)
flags.DEFINE_multi_integer("num_workers", [1, 2], "Numbers of workers.", lower_bound=1)
flags.DEFINE_integer("num_shards", 16, "Number of shards.", lower_bound=1)
flags.DEFINE_string("masking", "static", "Kind of masking.")
flags.DEFINE_bool("one_core", False, "With one worker: keep the command to one core, as TensorFlow may use more.")

_BECOMES_PARENT_OF_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER


def write_corpus(path, num_bytes):
    """Repeats the documents of --input_file until there are so many bytes."""
    documents = ["\n".join(lines) for lines in CorpusReader(match_files(FLAGS.input_file, "input_file")).documents()]
    number = 0
    with open(path, "w", encoding="utf-8") as file:
        while file.tell() < num_bytes:
            for document in documents:
                file.write(f"문서 번호는 {number}번이다.\n{document}\n\n")
                number += 1
                if number % 100 == 0 and file.tell() >= num_bytes:
                    break


def processes_of(process_id):
    """Yields a process and all that descend from it."""
    yield process_id
    try:
        children = pathlib.Path(f"/proc/{process_id}/task/{process_id}/children").read_text().split()
    except FileNotFoundError:
        return
    for child in children:
        yield from processes_of(int(child))


def memory(process_id):
    """Returns the resident memory of the largest of a process and its descendants, and what all of them take, in MB."""
    resident, shares = [0], [0]
    for process in processes_of(process_id):
        try:
            lines = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()[1:]
        except (FileNotFoundError, ProcessLookupError):
            continue
        sizes = {line.split(":")[0]: int(line.split()[1]) / 1000 for line in lines}
        resident.append(sizes.get("Rss", 0))
        shares.append(sizes.get("Pss", 0))
    return max(resident), sum(shares)


def measure(version, corpus, folder, num_workers):
    """Runs the command of a version; returns what a row of the table says."""
    arguments = [
        *(["taskset", "-c", "0"] if FLAGS.one_core and num_workers == 1 else []),
        sys.executable,
        "create_pretraining_data.py",
        f"--input_file={corpus}",
        f"--vocab_file={os.path.abspath(FLAGS.vocab_file)}",
        f"--output_file={folder}/train.tfrecord",
        f"--num_shards={FLAGS.num_shards}",
        f"--num_workers={num_workers}",
        f"--masking={FLAGS.masking}",
        "--dupe_factor=1",
        "--max_seq_length=128",
        f"--do_lower_case={FLAGS.do_lower_case}",
    ]
    before, started = processor_seconds(), time.monotonic()
    environment = {**os.environ, "PYTHONPATH": os.path.abspath(version)}
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, env=environment, cwd=version)
    highest, first_shard = (0, 0), None

    def watch():
        nonlocal highest, first_shard
        while process.poll() is None:
            highest = tuple(map(max, highest, memory(process.pid)))
            for _ in range(10):
                time.sleep(0.02)
                if first_shard is None and next(pathlib.Path(folder).glob("*/*.tfrecord"), None):  # until all are whole
                    first_shard = time.monotonic() - started

    watcher = threading.Thread(target=watch)
    watcher.start()
    if process.wait():
        raise RuntimeError("the command failed; see above")
    seconds = time.monotonic() - started
    watcher.join()
    return seconds, first_shard or seconds, processor_seconds() - before, *highest


def processor_seconds():
    """Returns what all processes have taken that were started here and have ended, also those that outlive a parent."""
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime


def hash_of_shards(folder):
    """Returns the beginning of a hash of all shards in a folder."""
    digest = hashlib.sha256()
    for path in sorted(pathlib.Path(folder).glob("*.tfrecord")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


def main(_):
    ctypes.CDLL(None).prctl(_BECOMES_PARENT_OF_ORPHANS, 1, 0, 0, 0)
    print(
        f"{'version':<20} {'corpus MB':>9} {'workers':>7} {'seconds':>8} {'to first shard':>14} {'of processors':>13} "
        f"{'MB/s':>6} {'memory MB: largest':>18} {'all':>6}  shards"
    )
    with tempfile.TemporaryDirectory() as folder:
        for megabytes in FLAGS.megabytes:
            corpus = os.path.join(folder, "corpus.txt")
            write_corpus(corpus, megabytes * 1e6)
            size = os.path.getsize(corpus) / 1e6
            for num_workers in FLAGS.num_workers:
                runs, hashes = {version: [] for version in FLAGS.versions}, {}
                for version in FLAGS.versions * FLAGS.rounds:
                    with tempfile.TemporaryDirectory(dir=folder) as output:
                        runs[version].append(measure(version, corpus, output, num_workers))
                        hashes[version] = hash_of_shards(output)
                for version, rows in runs.items():
                    seconds, first_shard, processors, largest, together = map(statistics.median, zip(*rows))
                    print(
                        f"{os.path.basename(os.path.abspath(version)):<20} {size:>9,.1f} {num_workers:>7} "
                        f"{seconds:>8.1f} {first_shard:>14.1f} {processors:>13.1f} {size / seconds:>6.1f} "
                        f"{largest:>18,.0f} {together:>6,.0f}  {hashes[version]}",
                        flush=True,
                    )


if __name__ == "__main__":
    app.run(main)
