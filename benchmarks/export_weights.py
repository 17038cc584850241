"""The cost of each way to store the weights of an export in size, labels and time.

taskset -c 0 python -m benchmarks.export_weights --model_dir=run/nsmc --input_file=nsmc/ratings_dev.txt

--model_dir is a classifier of single texts; --input_file is a table with tabs and names in its first line, of which one
is --text_column and one --label_column. Times are the processor's, of all threads, in turns: begin the command with
`taskset`, because threads that wait for each other count as well.
"""

import collections
import os
import statistics
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from absl import app, flags, logging

import albert_tf
from albert_tf.serving import exporting
from albert_tf.serving.formats import open_export

FLAGS = flags.FLAGS

flags.DEFINE_string("model_dir", None, "Folder of a fine-tuned classifier.", required=True)
flags.DEFINE_string("input_file", None, "Labelled texts.", required=True)
flags.DEFINE_string("text_column", "document", "Column of the text.")
flags.DEFINE_string("label_column", "label", "Column of the label.")
flags.DEFINE_list("characters", ["30", "120", "500"], "Lengths of the texts that are timed.")
flags.DEFINE_list("batches", ["1", "16"], "How many of them are asked at once.")
flags.DEFINE_integer("rounds", 40, "How often each is asked, in turns.", 1)


def read_examples():
    """Returns texts and labels."""
    with open(FLAGS.input_file, encoding="utf-8", newline="\n") as file:
        header, *rows = (line.rstrip("\n").split("\t") for line in file)
    places = header.index(FLAGS.text_column), header.index(FLAGS.label_column)
    return tuple([row[place] for row in rows] for place in places)


def size_of(folder):
    """Returns the bytes of all files of a folder."""
    return sum(os.path.getsize(os.path.join(place, name)) for place, _, names in os.walk(folder) for name in names)


def print_answers(folders):
    """Prints what each export weighs, and how often it is right."""
    texts, labels = read_examples()
    answers = {}
    for name, folder in folders.items():
        answers[name] = [each["label"] for each in albert_tf.load(folder).predict(texts)]
    print(f"{'weights':10} {'MB':>6} {'accuracy':>9} {'other labels':>13}")
    for name, found in answers.items():
        right = np.mean([label == expected for label, expected in zip(found, labels)])
        others = sum(label != full for label, full in zip(found, answers["float32"]))
        print(f"{name:10} {size_of(folders[name]) / 1e6:6.1f} {right:9.2%} {others:13}")


def print_times(folders):
    """Prints how long each export takes for texts of each length, as a part of float32's time."""
    line = " ".join(read_examples()[0][:1000])
    models = {name: open_export(folder) for name, folder in folders.items()}
    for size in map(int, FLAGS.batches):
        for length in map(int, FLAGS.characters):
            asked = {"text": [line[:length]] * size}
            seconds = collections.defaultdict(list)
            for _ in range(FLAGS.rounds + 3):
                for name, model in models.items():
                    begin = time.process_time()
                    model.compute("serving_default", asked)
                    seconds[name].append(time.process_time() - begin)
            medians = {name: statistics.median(values[3:]) for name, values in seconds.items()}
            parts = ", ".join(f"{name} {median / medians['float32']:.2f}" for name, median in medians.items())
            print(f"{size} of {length} characters: float32 {1000 * medians['float32']:.2f} ms; of that {parts}")


def main(_):
    logging.set_verbosity(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        exports = {
            name: exporting.export_model(FLAGS.model_dir, os.path.join(folder, name), name)
            for name in ("float32", "bfloat16")
        }
        print_answers(exports)
        print_times(exports)


if __name__ == "__main__":
    app.run(main)
