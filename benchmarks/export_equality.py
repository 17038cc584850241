"""Whether exports answer what `albert_tf.load(folder).predict` does, line by line, and cut texts as Python does.

python -m benchmarks.export_equality --model_dir=run/nsmc --input_file=nsmc/ratings_dev.txt --columns=document \
    --text_files='corpus/*.txt.gz'

--model_dir is a fine-tuned folder, which is exported as a SavedModel and, if it labels or scores texts, for LiteRT.
--input_file is read as `albert-tf predict` reads it; --columns are its `input_fields`.
Prints for each export the largest difference of a probability, or of a score, and of how many lines the label or the
places of answers and entities differ; and of the texts in --input_file and of each line of --text_files, of how many
the pieces, or the characters that these stand for, differ between the tokenizer's graph and Python.
"""

import glob
import gzip
import itertools
import os
import tempfile

# TensorFlow's own messages would drown the table.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf
from absl import app, flags, logging

import albert_tf
from albert_tf.asking.answers import ValueAnswer
from albert_tf.asking.input_rows import InputRows
from albert_tf.serving.exporting import export_model

FLAGS = flags.FLAGS

flags.DEFINE_string("model_dir", None, "Folder of a fine-tuned model.", required=True)
flags.DEFINE_string("input_file", None, "What it is asked.", required=True)
flags.DEFINE_list("columns", None, "The columns of each input, where the file has several.")
flags.DEFINE_list("text_files", [], "More texts to cut into pieces, one a line: patterns, .gz or not.")

_AT_ONCE = 1000


def read_inputs(task):
    """Returns what the model is asked: texts, or tuples of them."""
    rows = InputRows(task, FLAGS.input_file, FLAGS.columns)
    return [rows.parse(row).value for row in rows]


def lines_of(path):
    """Yields the lines of a file."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8", newline="\n") as file:
        yield from file


def blocks_of(values):
    """Yields lists of so many values."""
    values = iter(values)
    while block := list(itertools.islice(values, _AT_ONCE)):
        yield block


def compare(answer, other):
    """Returns how far the numbers of two answers are apart, and whether the rest of the second one is equal."""
    if isinstance(other, float) and isinstance(answer, float):
        return abs(answer - other), True
    if isinstance(other, dict | list) and len(answer) >= len(other):
        places = list(other) if isinstance(other, dict) else range(len(other))
        differences, are_same = zip(*[compare(answer[place], other[place]) for place in places] or [(0.0, True)])
        return max(differences), all(are_same)
    return 0.0, answer == other


def compare_pieces(tokenizer, texts):
    """Returns how many texts there are, and of how many the graph makes others than Python."""
    encode = tf.function(tokenizer.encode_with_offsets, input_signature=[tf.TensorSpec([None], tf.string)])
    num_texts = num_others = 0
    for block in blocks_of(texts):
        ids, begins, ends = (values.to_list() for values in encode(tf.constant(block)))
        for row, encoding in enumerate(tokenizer.encode_batch(block)):
            offsets = list(zip(begins[row], ends[row]))
            num_others += (ids[row], offsets) != (encoding.ids[1:-1], encoding.offsets[1:-1])
        num_texts += len(block)
    return num_texts, num_others


def main(_):
    logging.set_verbosity(logging.ERROR)  # of TensorFlow, of what it saves
    predictor = albert_tf.load(FLAGS.model_dir)
    inputs = read_inputs(predictor.task)
    predictions = predictor.predict(inputs)
    print("| export | inputs | largest difference | other labels or places |\n|---|---:|---:|---:|")
    is_in_litert = issubclass(predictor.task.kind.answer, ValueAnswer)
    for model_format in ("saved_model", "litert")[: 1 + is_in_litert]:
        with tempfile.TemporaryDirectory() as folder:
            export_model(FLAGS.model_dir, folder, model_format=model_format)
            found = map(compare, predictions, albert_tf.load(folder).predict(inputs))
            differences, are_same = zip(*found)
        print(f"| {model_format} | {len(inputs):,} | {max(differences):.1e} | {are_same.count(False):,} |", flush=True)
    print("\n| texts | lines | other pieces or offsets |\n|---|---:|---:|")
    texts = (text for each in inputs for text in ([each] if isinstance(each, str) else each))
    paths = [path for pattern in FLAGS.text_files for path in sorted(glob.glob(pattern))]
    sources = {FLAGS.input_file: texts, **{path: (line.rstrip("\n") for line in lines_of(path)) for path in paths}}
    for path, lines in sources.items():
        num_texts, num_others = compare_pieces(predictor.tokenizer, lines)
        print(f"| {os.path.basename(path)} | {num_texts:,} | {num_others:,} |", flush=True)


if __name__ == "__main__":
    app.run(main)
