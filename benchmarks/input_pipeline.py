"""How many examples a second this machine's cores read, parse and mask, beside what TPUs would take.

python -m benchmarks.input_pipeline
python -m benchmarks.input_pipeline --input_file='corpus/*.txt' --vocab_file=vocab.txt --dupe_factor=1

Makes shards of sequences of 128 and 512 pieces, to be masked by the reader (dynamic) or masked already (static), of the
built-in sample or of your own text. Each is read in a process of its own; the best of several passes counts. CPU time
is that of all threads. What is neither parsing nor masking, both measured alone, is reading: files, shuffling, batches.

What a TPU takes follows from the operations of a training step, which `Objective.flops` counts. A v5e
chip has a published peak of 197e12 bfloat16 operations a second, of which half are taken to be of use. A v5e-8 is one
host with 8 chips, and a v5e-256 is 32 such hosts, each of which feeds its own 8 chips: either way a host needs the same
number of examples, as long as it reads its own shards.
"""

import collections
import json
import os
import subprocess
import sys
import tempfile
import time

# TensorFlow's own messages would drown the table.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from absl import app, flags

from albert_tf.base.files import read_json
from albert_tf.config import AlbertConfig
from albert_tf.objectives import make_objective
from albert_tf.objectives.objective import with_batch_size
from albert_tf.pretraining_data.masking import MaskingOptions
from benchmarks.stage import ROOT, run_stage

FLAGS = flags.FLAGS

flags.DEFINE_string("input_file", os.path.join(ROOT, "samples", "corpus", "*.txt"), "Text, one sentence a line.")
flags.DEFINE_string("vocab_file", None, "Vocabulary; by default one of 4,000 pieces is built from the text.")
flags.DEFINE_integer("dupe_factor", 40, "How often each document is used; the sample is small.", lower_bound=1)
flags.DEFINE_integer("batch_size", 512, "Examples in a batch.", lower_bound=1)
flags.DEFINE_integer("num_batches", 200, "Batches in a pass.", lower_bound=1)
flags.DEFINE_integer("num_passes", 5, "Passes; the fastest counts.", lower_bound=1)
flags.DEFINE_string("shards", None, "Measure the shards in this folder alone; used by the benchmark.")

CHIP_FLOPS_PER_SECOND, UTILISATION, CHIPS_PER_HOST = 197e12, 0.5, 8


def examples_needed(max_seq_length, max_predictions_per_seq):
    """Returns how many examples a second the chips of one host take when they train ALBERT-base."""
    config = AlbertConfig.from_json_file(os.path.join(ROOT, "configs", "albert_base_v2.json"))
    objective = make_objective("albert", config, masking=MaskingOptions(max_predictions_per_seq))
    flops = objective.flops(with_batch_size(objective.batch_spec(max_seq_length), 1))
    return CHIPS_PER_HOST * CHIP_FLOPS_PER_SECOND * UTILISATION / flops


def best_seconds(stages):
    """Returns, for each of several functions, the least wall and CPU time an example, if one call is a whole pass."""
    times = {name: [] for name in stages}
    # One after the other in each pass, so that whatever else the machine does slows down all of them.
    for number_of_pass in range(FLAGS.num_passes + 1):
        for name, run in stages.items():
            wall, cpu = time.perf_counter(), time.process_time()
            run()
            if number_of_pass:  # the first warms up
                times[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    num_examples = FLAGS.num_batches * FLAGS.batch_size
    return {name: [min(column) / num_examples for column in zip(*rows)] for name, rows in times.items()}


def measure(folder):
    """Prints as JSON what the shards in a folder are, and how long an example takes in seconds."""
    import tensorflow as tf

    from albert_tf.pretraining_data.input_pipeline import parse, train_dataset
    from albert_tf.pretraining_data.masking import mask_batch
    from albert_tf.pretraining_data.shards import find_shards
    from albert_tf.runs.phases import objective_of

    config = AlbertConfig(vocab_size=read_json(os.path.join(folder, "manifest.json"), "the manifest")["vocab_size"])
    shards = find_shards([os.path.join(folder, "train-*.tfrecord")], config)
    options = shards.train_options
    # A data set with an end: it would read on while the other stages are measured.
    prepare = objective_of(config, shards).prepare
    batches = train_dataset(shards.train_paths, options, prepare, FLAGS.batch_size, seed=1).take(FLAGS.num_batches)
    serialized = next(iter(tf.data.TFRecordDataset(shards.train_paths).batch(FLAGS.batch_size)))
    features = parse(serialized, options)
    parse_batch = tf.function(lambda: parse(serialized, options), autograph=False)
    mask = tf.function(lambda seed: mask_batch(features, shards.masking, seed), autograph=False)
    numbers = range(FLAGS.num_batches)
    stages = {"all": lambda: collections.deque(batches, 0), "parsing": lambda: [parse_batch() for _ in numbers]}
    if not options.is_static:
        stages["masking"] = lambda: [mask(tf.constant([1, number])) for number in numbers]
    seconds = best_seconds(stages)
    result = {
        "max_seq_length": options.max_seq_length,
        "max_predictions_per_seq": options.max_predictions_per_seq,
        "masking": "static" if options.is_static else "dynamic",
        "bytes_per_example": sum(map(os.path.getsize, shards.train_paths)) / sum(shards.examples_per_shard),
        "wall": seconds["all"][0],
        "cpu": {name: cpu for name, (_, cpu) in seconds.items()},
    }
    print(json.dumps(result))


def measure_in_process(folder):
    """Returns what `measure` prints."""
    command = [sys.executable, "-m", "benchmarks.input_pipeline", *sys.argv[1:], f"--shards={folder}"]
    result = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return json.loads(result.stdout.splitlines()[-1])


def build_shards(folder, vocab_file, max_seq_length, masking):
    """Makes eight shards, of which a reader takes all at a time."""
    run_stage(
        "create_pretraining_data.py",
        input_file=FLAGS.input_file,
        vocab_file=vocab_file,
        output_file=os.path.join(folder, "train.tfrecord"),
        num_shards=8,
        max_seq_length=max_seq_length,
        masking=masking,
        dupe_factor=FLAGS.dupe_factor,
        held_out_fraction=0,
    )


def print_table(rows):
    print(
        f"\n| length | masking | bytes | CPU, µs an example | reading | parsing | masking "
        f"| examples/s, {os.cpu_count()} cores | needed by a v5e-8, or a host of a v5e-256 | ratio | cores to feed it |"
    )
    print("|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for row in rows:
        cpu = row["cpu"]
        parsing, masking = cpu["parsing"], cpu.get("masking", 0.0)
        shares = (part / cpu["all"] for part in (max(cpu["all"] - parsing - masking, 0.0), parsing, masking))
        needed = examples_needed(row["max_seq_length"], row["max_predictions_per_seq"])
        print(
            f"| {row['max_seq_length']} | {row['masking']} | {row['bytes_per_example']:,.0f} | {cpu['all'] * 1e6:.1f} "
            f"| {' | '.join(f'{share:.0%}' for share in shares)} | {1 / row['wall']:,.0f} | {needed:,.0f} "
            f"| {1 / row['wall'] / needed:.1f} | {needed * cpu['all']:.2f} |"
        )


def main(_):
    if FLAGS.shards:
        measure(FLAGS.shards)
        return
    with tempfile.TemporaryDirectory() as folder:
        vocab_file = FLAGS.vocab_file or os.path.join(folder, "vocabulary", "vocab.txt")
        if not FLAGS.vocab_file:
            run_stage(
                "build_vocab.py",
                input_file=FLAGS.input_file,
                output_dir=os.path.dirname(vocab_file),
                vocab_size=4000,
            )
        rows = []
        for max_seq_length in (128, 512):
            for masking in ("dynamic", "static"):
                shards = os.path.join(folder, f"{max_seq_length}-{masking}")
                build_shards(shards, vocab_file, max_seq_length, masking)
                rows.append(measure_in_process(shards))
        print_table(rows)


if __name__ == "__main__":
    app.run(main)
