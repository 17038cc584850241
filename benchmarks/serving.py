"""How fast an exported model answers, side by side with Hugging Face's pipeline: raw text in, labels out.

python -m benchmarks.serving --model_dir=run/nsmc --text_file=nsmc_reviews.txt.gz

--model_dir is a classifier of single texts with classifier_pooling=first, which Hugging Face's models have, too. It is
exported and converted, so that both compute the same from the same weights; that is checked first. Each contestant runs
in a process of its own, one after the other. Needs torch and transformers.
"""

import gzip
import json
import os
import subprocess
import sys
import tempfile
import time

from absl import app, flags

FLAGS = flags.FLAGS

flags.DEFINE_string("model_dir", None, "Folder of a fine-tuned classifier.", required=True)
flags.DEFINE_string("text_file", None, "Text, one a line, .gz or not.", required=True)
flags.DEFINE_integer("num_requests", 300, "Requests of one text each.", 10)
flags.DEFINE_integer("num_batches", 20, "Batches of 32 texts.", 2)
flags.DEFINE_string("contestant", None, "Used by the command itself.")
flags.DEFINE_string("answering", None, "Used by the command itself.")

OURS, THEIRS = "albert_tf, exported", "Hugging Face pipeline"
SHORT, LONG, BATCH_SIZE = 30, 500, 32


def ask_export(folder):
    """Returns a function from texts to labels with probabilities, of an exported model."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  (the graph has its operations)

    answer = tf.saved_model.load(folder).signatures["serving_default"]

    def ask(texts):
        outputs = answer(text=tf.constant(texts))
        return list(zip(map(bytes.decode, outputs["label"].numpy()), outputs["probability"].numpy().tolist()))

    return ask


def ask_hugging_face(folder):
    """Returns the same of Hugging Face's pipeline."""
    from transformers import pipeline

    classify = pipeline("text-classification", model=folder, device="cpu")

    def ask(texts):
        found = classify(texts, batch_size=BATCH_SIZE, truncation=True)
        return [(each["label"], each["score"]) for each in found]

    return ask


CONTESTANTS = {OURS: ask_export, THEIRS: ask_hugging_face}


def texts_of():
    """Returns lines of the file, in its order."""
    opened = gzip.open if FLAGS.text_file.endswith(".gz") else open
    with opened(FLAGS.text_file, "rt", encoding="utf-8") as file:
        lines = (line.strip() for _, line in zip(range(20_000), file))
        return [line for line in lines if line]


def percentiles(seconds):
    """Returns the median and the 99th percentile in milliseconds."""
    ordered = sorted(seconds)
    return {"p50_ms": 1e3 * ordered[len(ordered) // 2], "p99_ms": 1e3 * ordered[int(0.99 * len(ordered))]}


def timed(function, inputs):
    """Returns how long each call took, in seconds."""
    seconds = []
    for value in inputs:
        start = time.perf_counter()
        function(value)
        seconds.append(time.perf_counter() - start)
    return seconds


def measure(started_at):
    """Prints what one contestant takes, as JSON."""
    ask = CONTESTANTS[FLAGS.contestant](FLAGS.answering)
    texts = texts_of()
    ask(texts[:1])
    results = {"start_s": time.time() - started_at, "answers": ask(texts[:BATCH_SIZE])}
    running = "".join(texts)
    for length in (SHORT, LONG):
        requests = [[running[begin : begin + length]] for begin in range(0, FLAGS.num_requests * length, length)]
        timed(ask, requests[:10])
        results[f"{length} characters"] = percentiles(timed(ask, requests))
    batches = [texts[begin : begin + BATCH_SIZE] for begin in range(0, FLAGS.num_batches * BATCH_SIZE, BATCH_SIZE)]
    timed(ask, batches[:2])
    results["texts_per_second"] = len(batches) * BATCH_SIZE / sum(timed(ask, batches))
    print(json.dumps(results))


def run(contestant, folder):
    """Runs one contestant in a process of its own, and returns what it measured."""
    command = [sys.executable, "-m", "benchmarks.serving", f"--contestant={contestant}", f"--answering={folder}"]
    names = ("model_dir", "text_file", "num_requests", "num_batches")
    command += [f"--{name}={FLAGS[name].value}" for name in names]
    environment = {**os.environ, "STARTED_AT": str(time.time())}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def convert(folder):
    """Writes the model as both contestants take it; returns the folders by contestant."""
    places = {OURS: os.path.join(folder, "export"), THEIRS: os.path.join(folder, "huggingface")}
    export = ["export_model.py", f"--model_dir={FLAGS.model_dir}", f"--output_dir={places[OURS]}"]
    to_theirs = ["--from=albert_tf", "--to=huggingface", f"--input_path={FLAGS.model_dir}"]
    for command in (export, ["convert_checkpoint.py", *to_theirs, f"--output_dir={places[THEIRS]}"]):
        subprocess.run([sys.executable, *command], stdout=subprocess.DEVNULL, check=True)
    return {**places, OURS: os.path.join(places[OURS], "1")}


def check_same(answers, others):
    """Stops where the contestants do not say the same."""
    for (label, probability), (other, theirs) in zip(answers, others):
        if label != other or abs(probability - theirs) > 1e-4:
            raise SystemExit(f"they differ: {label} with {probability:.5f}, and {other} with {theirs:.5f}")


def main(_):
    if FLAGS.contestant:
        measure(float(os.environ["STARTED_AT"]))
        return
    with tempfile.TemporaryDirectory() as temporary:
        results = {name: run(name, folder) for name, folder in convert(temporary).items()}
    check_same(*(results[name].pop("answers") for name in CONTESTANTS))
    ours, theirs = results[OURS], results[THEIRS]
    print(f"| what | {OURS} | {THEIRS} | ratio |\n|---|---|---|---|")
    for length in (SHORT, LONG):
        for name in ("p50_ms", "p99_ms"):
            pair = [each[f"{length} characters"][name] for each in (ours, theirs)]
            what = f"a text of {length} characters, {name[:3]}"
            print(f"| {what} | {pair[0]:.1f} ms | {pair[1]:.1f} ms | {pair[0] / pair[1]:.2f} |")
    rates = [each["texts_per_second"] for each in (ours, theirs)]
    print(f"| texts a second, 32 at once | {rates[0]:.0f} | {rates[1]:.0f} | {rates[0] / rates[1]:.2f} |")
    starts = [each["start_s"] for each in (ours, theirs)]
    print(f"| process to first answer | {starts[0]:.1f} s | {starts[1]:.1f} s | {starts[0] / starts[1]:.2f} |")


if __name__ == "__main__":
    app.run(main)
