"""Speed and memory of the tokenizer beside Hugging Face's BertWordPieceTokenizer, with the same vocabulary and text.

python -m benchmarks.tokenizer --vocab_file=vocab.txt --input_file=corpus.txt --nodo_lower_case

Lists of Python strings go in, ids (and offsets) come out, a batch of lines at a time. Every measurement runs in a
process of its own, because TensorFlow fixes its threads once. One thread is measured by the CPU time of the process,
all threads by the clock; the best of several passes counts. Prints MB/s, ratios, and by how much the process's
peak memory grew.
"""

import concurrent.futures
import json
import os
import resource
import subprocess
import sys
import time

# TensorFlow's own messages would drown the table.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from absl import app, flags

from albert_tf.base.files import match_files
from albert_tf.reading.documents import CorpusReader
from benchmarks.stage import ROOT

FLAGS = flags.FLAGS

flags.DEFINE_string("vocab_file", None, "Vocabulary of the continuation scheme.", required=True)
flags.DEFINE_list("input_file", None, "Text files, .gz too.", required=True)
flags.DEFINE_bool("do_lower_case", True, "Lower-case letters, in both libraries.")
flags.DEFINE_integer("batch_size", 1000, "Lines that are encoded at once.", lower_bound=1)
flags.DEFINE_integer("num_passes", 5, "Passes over the text; the fastest counts.", lower_bound=1)
flags.DEFINE_float("megabytes", 4.0, "How much of the text to take.", lower_bound=0.01)
flags.DEFINE_string("engine", None, "Measure this engine alone and print its numbers as JSON; used by the benchmark.")
flags.DEFINE_bool("all_threads", False, "With --engine: use every core instead of one thread.")


def albert_tf_engine(with_offsets):
    """Returns a function from a list of strings to ids."""
    import tensorflow as tf

    from albert_tf.tokenization import KoreanWordPieceTokenizer

    # With all threads, batches run side by side; within one there is little to divide.
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tokenizer = KoreanWordPieceTokenizer.from_vocab_file(FLAGS.vocab_file, lower_case=FLAGS.do_lower_case)
    return tokenizer.encode_batch if with_offsets else tokenizer.encode_ids


def hugging_face_engine(with_offsets):
    """Returns a function from a list of strings to encodings."""
    os.environ["TOKENIZERS_PARALLELISM"] = str(FLAGS.all_threads).lower()
    from tokenizers import BertWordPieceTokenizer

    tokenizer = BertWordPieceTokenizer(FLAGS.vocab_file, lowercase=FLAGS.do_lower_case, strip_accents=False)
    return tokenizer.encode_batch if with_offsets else tokenizer._tokenizer.encode_batch_fast


def hugging_face_engine_read(with_offsets):
    """Returns a function from a list of strings to what ours gives too: ids, pieces and offsets as Python's lists."""
    encode = hugging_face_engine(with_offsets)
    return lambda texts: [(encoding.ids, encoding.tokens, encoding.offsets) for encoding in encode(texts)]


# Name to a function that returns the engine, and whether offsets are asked for.
ENGINES = {
    "albert_tf": (albert_tf_engine, False),
    "albert_tf, offsets": (albert_tf_engine, True),
    "Hugging Face without offsets (encode_batch_fast)": (hugging_face_engine, False),
    "Hugging Face (encode_batch)": (hugging_face_engine, True),
    "Hugging Face, offsets read (encode_batch)": (hugging_face_engine_read, True),
}
PEER = "Hugging Face (encode_batch)"


def read_batches():
    """Returns batches of lines, of so many megabytes, and how many there are exactly."""
    batches, size = [[]], 0
    for line in CorpusReader(match_files(FLAGS.input_file, "input_file"), "skip").sentences():
        if size >= FLAGS.megabytes * 1e6:
            break
        if len(batches[-1]) == FLAGS.batch_size:
            batches.append([])
        batches[-1].append(line)
        size += len(line.encode())
    return batches, size / 1e6


def peak_memory():
    """Returns the most memory that the process ever held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(name):
    """Prints the numbers of one engine: MB/s, and by how many MB its peak memory grew, in one pass and in all."""
    make_engine, with_offsets = ENGINES[name]
    batches, megabytes = read_batches()
    before = peak_memory()
    encode = make_engine(with_offsets)
    # Hugging Face brings its own threads; ours are those that call it.
    is_called_from_threads = FLAGS.all_threads and make_engine is albert_tf_engine
    pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count()) if is_called_from_threads else None
    clock = time.perf_counter if FLAGS.all_threads else time.process_time
    seconds, memory = [], []
    for _ in range(FLAGS.num_passes + 1):  # the first warms up
        begin = clock()
        for _ in pool.map(encode, batches) if pool else map(encode, batches):
            pass
        seconds.append(clock() - begin)
        memory.append(peak_memory() - before)
    print(json.dumps({"speed": megabytes / min(seconds[1:]), "first_memory": memory[0], "last_memory": memory[-1]}))


def measure_in_process(name, all_threads):
    """Returns the numbers of one engine."""
    arguments = [f"--engine={name}", f"--all_threads={all_threads}"]
    command = [sys.executable, "-m", "benchmarks.tokenizer", *sys.argv[1:], *arguments]
    result = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return json.loads(result.stdout.splitlines()[-1])


def main(_):
    if FLAGS.engine:
        measure(FLAGS.engine)
        return
    rows = {}
    for all_threads in (False, True):
        rows[all_threads] = {name: measure_in_process(name, all_threads) for name in ENGINES}
    print(f"| | one thread, MB/s | ratio | {os.cpu_count()} threads, MB/s | ratio | memory, MB | after one pass |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name in ENGINES:
        cells = []
        for numbers in rows.values():
            cells += [f"{numbers[name]['speed']:.1f}", f"{numbers[name]['speed'] / numbers[PEER]['speed']:.1f}"]
        one_thread = rows[False][name]
        cells += [f"{one_thread['last_memory']:.0f}", f"{one_thread['first_memory']:.0f}"]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    app.run(main)
