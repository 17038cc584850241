"""How fast an exported model answers, side by side with Hugging Face's pipeline and KerasHub: raw text in, labels out.

python -m benchmarks.serving --model_dir=run/nsmc --text_file=nsmc_reviews.txt.gz

--model_dir is a classifier of single texts with classifier_pooling=first, which the others have, too. It is exported
and converted, so that all compute the same from the same weights; that is checked first. Each way of asking runs in
processes of its own, one after the other. Needs what requirements-references.txt names.

"Process to first answer" is the median of 5 processes, after one that is not counted: from before a process is started
until it has the first answer, its files in the page cache. TensorFlow and transformers import much of what else an
environment holds, so --pythons names others that hold less, such as --pythons=saved_model=/venv/bin/python. That of
litert needs neither TensorFlow nor albert_tf. On a machine that is busy with something else, CPU time is what to read.
"""

import gzip
import json
import os
import subprocess
import sys
import tempfile
import time

from absl import app, flags

from albert_tf.serving.loading import load_finetuned
from benchmarks.contestants.answering import BATCH_SIZE, WAYS

FLAGS = flags.FLAGS

flags.DEFINE_string("model_dir", None, "Folder of a fine-tuned classifier.", required=True)
flags.DEFINE_string("text_file", None, "Text, one a line, .gz or not.", required=True)
flags.DEFINE_integer("num_requests", 300, "Requests of one text each.", 10)
flags.DEFINE_integer("num_batches", 20, "Batches of 32 texts.", 2)
flags.DEFINE_integer("num_starts", 5, "Processes whose start is timed, of each way of asking.", 1)
flags.DEFINE_list("pythons", [], "The interpreters of ways of asking, WAY=PATH; this one for the others.")
flags.DEFINE_list("only", list(WAYS), "Which of them.")

SHORT, LONG, WARM_UP = 30, 500, 10
TITLES = {
    "saved_model": "albert_tf, SavedModel",
    "litert": "albert_tf, LiteRT",
    "hugging_face": "Hugging Face pipeline, torch",
    "hugging_face_model": "Hugging Face tokenizer and model, torch",
    "keras_hub": "KerasHub `predict`",
}
FORMATS = {"hugging_face": "huggingface", "hugging_face_model": "huggingface", "keras_hub": "keras_hub"}
MOMENTS = {
    "imported": "process to all imported",
    "loaded": "process to model loaded",
    "answered": "process to first answer",
}


def read_texts():
    """Returns lines of the file, in its order."""
    opened = gzip.open if FLAGS.text_file.endswith(".gz") else open
    with opened(FLAGS.text_file, "rt", encoding="utf-8") as file:
        lines = (line.strip() for _, line in zip(range(20_000), file))
        return [line for line in lines if line]


def work_of(texts):
    """Returns what each way is timed with, requests of some texts each, by name: for their latency, and their rate."""
    running, count = "".join(texts), FLAGS.num_requests
    singles = {
        f"a text of {length} characters": [[running[i : i + length]] for i in range(0, count * length, length)]
        for length in (SHORT, LONG)
    }
    batches = [texts[i : i + BATCH_SIZE] for i in range(0, FLAGS.num_batches * BATCH_SIZE, BATCH_SIZE)]
    total = [text for batch in batches for text in batch]
    return singles, {f"{BATCH_SIZE} at once": batches, f"{len(total)} in one call": [total]}


def run(way, folder, **work):
    """Asks a model in one way, in a process of its own; returns what it measured, moments in seconds from its start."""
    interpreters = dict(each.split("=", 1) for each in FLAGS.pythons)
    command = [interpreters.get(way, sys.executable), "-m", "benchmarks.contestants.answering", way, folder]
    started_at = time.time()
    done = subprocess.run(
        command,
        input=json.dumps(work),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
        text=True,
    )
    results = json.loads(done.stdout.splitlines()[-1])
    results["moments"] = {name: moment - started_at for name, moment in results["moments"].items()}
    return results


def convert(folder):
    """Writes the model as each way takes it; returns the folders."""
    places = {way: os.path.join(folder, way) for way in WAYS}
    for way in FLAGS.only:
        if way in ("saved_model", "litert"):
            command = ["export_model.py", f"--model_dir={FLAGS.model_dir}", f"--format={way}"]
        else:
            to = FORMATS[way]
            command = ["convert_checkpoint.py", "--from=albert_tf", f"--to={to}", f"--input_path={FLAGS.model_dir}"]
        command = [sys.executable, *command, f"--output_dir={places[way]}"]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    if "keras_hub" in FLAGS.only:
        write_head(os.path.join(places["keras_hub"], "head.json"))
    return {**places, "saved_model": os.path.join(places["saved_model"], "1")}


def write_head(path):
    """Writes what a preset of KerasHub's backbone has no place for."""
    trained = load_finetuned(FLAGS.model_dir, "--model_dir")
    kernel, bias = (weight.numpy().tolist() for weight in trained.model.head.dense.weights)
    values = {"kernel": kernel, "bias": bias, "labels": trained.task.labels, "max_seq_length": trained.max_seq_length}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(values, file)


def check_same(way, answers, other, theirs):
    """Stops where two ways do not say the same."""
    for (label, probability), (other_label, other_probability) in zip(answers, theirs):
        if label != other_label or abs(probability - other_probability) > 1e-4:
            raise SystemExit(
                f"they differ: {way} says {label} with {probability:.5f}, and {other} {other_label} with "
                f"{other_probability:.5f}"
            )


def percentile(seconds, share):
    """Returns the value that the share, 0 to 1, of the values does not exceed."""
    return sorted(seconds)[int(share * len(seconds))]


def main(_):
    texts = read_texts()
    singles, many = work_of(texts)
    sample = texts[:BATCH_SIZE]
    with tempfile.TemporaryDirectory() as temporary:
        places = convert(temporary)
        results = {}
        for way in FLAGS.only:
            # KerasHub makes a pipeline anew at each call, about a second, which is not meant for single texts.
            requests = many if way == "keras_hub" else {**singles, **many}
            results[way] = run(way, places[way], texts=sample, requests=requests, warm_up=WARM_UP)
        first = FLAGS.only[0]
        for way in FLAGS.only[1:]:
            check_same(first, results[first]["answers"], way, results[way]["answers"])
        # One after the other, so that a busy moment is every way's.
        rounds = [
            {way: run(way, places[way], texts=sample[:1]) for way in FLAGS.only} for _ in range(1 + FLAGS.num_starts)
        ]
    print(f"| what | {' | '.join(TITLES[way] for way in FLAGS.only)} |\n|---|{'---|' * len(FLAGS.only)}")
    for name in singles:
        for title, share in (("median", 0.5), ("99 of 100", 0.99)):
            found = [results[way]["seconds"].get(name) for way in FLAGS.only]
            cells = [f"{1e3 * percentile(seconds, share):.1f} ms" if seconds else "" for seconds in found]
            print(f"| {name}, {title} | {' | '.join(cells)} |")
        found = [results[way]["cpu_seconds"].get(name) for way in FLAGS.only]
        cells = [f"{1e3 * percentile(seconds, 0.5):.2f} ms" if seconds else "" for seconds in found]
        print(f"| {name}, CPU time, median | {' | '.join(cells)} |")
    for name, requests in many.items():
        rates = [sum(map(len, requests)) / sum(results[way]["seconds"][name]) for way in FLAGS.only]
        print(f"| texts a second, {name} | {' | '.join(f'{rate:.0f}' for rate in rates)} |")
    for name in ("imported", "loaded", "answered"):
        medians = [percentile([each[way]["moments"][name] for each in rounds[1:]], 0.5) for way in FLAGS.only]
        print(f"| {MOMENTS[name]} | {' | '.join(f'{seconds:.2f} s' for seconds in medians)} |")
    cpu = [[each[way]["cpu_moments"] for each in rounds[1:]] for way in FLAGS.only]
    medians = [percentile([each["answered"] - each["imported"] for each in of_way], 0.5) for of_way in cpu]
    print(f"| all imported to first answer, CPU time | {' | '.join(f'{seconds:.2f} s' for seconds in medians)} |")


if __name__ == "__main__":
    app.run(main)
