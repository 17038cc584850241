"""Speed and memory of create_pretraining_data.py, from a corpus of any size to shards, the start of Python included.

python -m benchmarks.pretraining_data --input_file='corpus/*.txt.gz' --vocab_file=vocab.txt --nodo_lower_case

The corpus is repeated until it has the size that is asked for; every copy of a document gets a number as its first
sentence, so that no two are equal. Every row of the table is one run of the command: static masking, one copy
(--dupe_factor=1), length 128. Memory is that of the largest process (RSS), and of all the command's processes with the
pages that they share counted once (PSS), each at its highest. The last column compares with the original's script,
which on this kind of machine read 0.37 MB/s.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

from absl import app, flags

from albert_tf.corpus.reader import CorpusReader
from albert_tf.files import match_files
from benchmarks.stage import ROOT

FLAGS = flags.FLAGS

flags.DEFINE_list("input_file", None, "Text files, .gz too.", required=True)
flags.DEFINE_string("vocab_file", None, "Vocabulary of the continuation scheme.", required=True)
flags.DEFINE_bool("do_lower_case", True, "Lower-case letters.")
flags.DEFINE_multi_integer("megabytes", [25, 250], "Sizes of the corpus.", lower_bound=1)
flags.DEFINE_multi_integer("num_workers", [1, 2], "Numbers of workers.", lower_bound=1)
flags.DEFINE_integer("num_shards", 16, "Number of shards.", lower_bound=1)
flags.DEFINE_string("masking", "static", "Kind of masking.")
flags.DEFINE_bool("one_core", False, "With one worker: keep the command to one core, as TensorFlow may use more.")

ORIGINAL_MEGABYTES_PER_SECOND = 0.37


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


def measure(corpus, folder, num_workers):
    """Runs the command and returns its seconds, CPU seconds, and the two highest sizes of its memory."""
    arguments = [
        *(["taskset", "-c", "0"] if FLAGS.one_core and num_workers == 1 else []),
        sys.executable,
        os.path.join(ROOT, "create_pretraining_data.py"),
        f"--input_file={corpus}",
        f"--vocab_file={FLAGS.vocab_file}",
        f"--output_file={folder}/train.tfrecord",
        f"--num_shards={FLAGS.num_shards}",
        f"--num_workers={num_workers}",
        f"--masking={FLAGS.masking}",
        "--dupe_factor=1",
        "--max_seq_length=128",
        f"--do_lower_case={FLAGS.do_lower_case}",
    ]
    cpu_before, started = os.times(), time.monotonic()
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
    highest = 0, 0

    def watch():
        nonlocal highest
        while process.poll() is None:
            highest = tuple(map(max, highest, memory(process.pid)))
            time.sleep(0.2)

    watcher = threading.Thread(target=watch)
    watcher.start()
    if process.wait():
        raise RuntimeError("the command failed; see above")
    seconds, cpu_after = time.monotonic() - started, os.times()
    watcher.join()
    cpu = cpu_after.children_user + cpu_after.children_system - cpu_before.children_user - cpu_before.children_system
    return seconds, cpu, *highest


def main(_):
    print(
        f"{'corpus MB':>10} {'workers':>8} {'seconds':>8} {'CPU s':>7} {'MB/s':>6} {'memory MB':>10} {'x original':>11}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for megabytes in FLAGS.megabytes:
            corpus = os.path.join(folder, "corpus.txt")
            write_corpus(corpus, megabytes * 1e6)
            size = os.path.getsize(corpus) / 1e6
            for num_workers in FLAGS.num_workers:
                with tempfile.TemporaryDirectory(dir=folder) as output:
                    seconds, cpu, largest, together = measure(corpus, output, num_workers)
                speed = size / seconds
                print(
                    f"{size:>10,.1f} {num_workers:>8} {seconds:>8.1f} {cpu:>7.1f} {speed:>6.1f} {largest:>8,.0f} "
                    f"{together:>6,.0f} {speed / ORIGINAL_MEGABYTES_PER_SECOND:>11.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    app.run(main)
