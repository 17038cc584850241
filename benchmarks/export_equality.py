"""Whether exports answer what `albert_tf.load(folder).predict` does, line by line, and cut texts as Python does.

python -m benchmarks.export_equality --model_dir=run/nsmc --input_file=nsmc/ratings_dev.txt --columns=document \
    --text_files='corpus/*.txt.gz'

--model_dir is a fine-tuned folder, which is exported as a SavedModel and, if it labels or scores texts, for LiteRT.
Lines of --input_file are as `albert-tf predict` reads them, or with --columns a table with tabs and names in its first
line.
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
from albert_tf.batch_prediction import LineParser, read_lines
from albert_tf.exports import DEFAULT, rows_of
from albert_tf.finetuning import Classification, Regression
from albert_tf.litert import LiteRTExport, find_litert
from albert_tf.serving.exported import ExportedModel
from albert_tf.serving.exporting import export_model

FLAGS = flags.FLAGS

flags.DEFINE_string("model_dir", None, "Folder of a fine-tuned model.", required=True)
flags.DEFINE_string("input_file", None, "What it is asked.", required=True)
flags.DEFINE_list("columns", None, "The columns of each input, where the file is a table.")
flags.DEFINE_list("text_files", [], "More texts to cut into pieces, one a line: patterns, .gz or not.")

_AT_ONCE = 1000


def read_inputs(task):
    """Returns what the model is asked: texts, or tuples of them."""
    if FLAGS.columns is None:
        parser = LineParser(task, FLAGS.input_file)
        return [parser.parse(line).value for line in read_lines(FLAGS.input_file)]
    rows = (line.rstrip("\n").split("\t") for line in lines_of(FLAGS.input_file))
    header = next(rows)
    places = [header.index(name) for name in FLAGS.columns]
    found = [tuple(row[place] for place in places) for row in rows]
    return found if len(places) > 1 else [text for (text,) in found]


def lines_of(path):
    """Yields the lines of a file."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8", newline="\n") as file:
        yield from file


def blocks_of(values):
    """Yields lists of so many values."""
    values = iter(values)
    while block := list(itertools.islice(values, _AT_ONCE)):
        yield block


def compare(prediction, row):
    """Returns how far the numbers of a prediction and of an export's row are apart, and whether the rest is equal."""
    if "probabilities" in row:
        found = dict(zip(row["labels"], row["probabilities"]))
        difference = max(abs(value - found[label]) for label, value in prediction["probabilities"].items())
        return difference, row["label"] == prediction["label"]
    if "types" in row:
        found = list(zip(row["types"], row["begins"], row["ends"], row["texts"]))
        expected = [tuple(each[name] for name in ("type", "begin", "end", "text")) for each in prediction["entities"]]
        return 0.0, found == expected
    if "answer" in row:
        places = [-1 if prediction[name] is None else prediction[name] for name in ("begin", "end")]
        best = prediction["nbest"][0]["score"] if prediction["nbest"] else row["score"]
        is_same = [row["begin"], row["end"], row["answer"]] == [*places, prediction["text"]]
        return abs(row["score"] - best), is_same
    return abs(row["score"] - prediction["score"]), True


def compare_export(export, inputs, predictions):
    """Returns the largest difference of a number, and of how many inputs the rest differs."""
    names, largest, num_others = export.signatures[DEFAULT]["inputs"], 0.0, 0
    for block, expected in zip(blocks_of(inputs), blocks_of(predictions)):
        columns = [block] if len(names) == 1 else list(zip(*block))
        rows = rows_of(export.answer(DEFAULT, dict(zip(names, columns))))
        for prediction, row in zip(expected, rows, strict=True):
            difference, is_same = compare(prediction, row)
            largest, num_others = max(largest, difference), num_others + (not is_same)
    return largest, num_others


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
    is_in_litert = isinstance(predictor.task, Classification | Regression)
    for model_format in ("saved_model", "litert")[: 1 + is_in_litert]:
        with tempfile.TemporaryDirectory() as folder:
            export_model(FLAGS.model_dir, folder, model_format=model_format)
            litert = find_litert(folder)
            export = ExportedModel(folder) if litert is None else LiteRTExport(litert)
            largest, num_others = compare_export(export, inputs, predictions)
        print(f"| {model_format} | {len(inputs):,} | {largest:.1e} | {num_others:,} |", flush=True)
    print("\n| texts | lines | other pieces or offsets |\n|---|---:|---:|")
    texts = (text for each in inputs for text in ([each] if isinstance(each, str) else each))
    paths = [path for pattern in FLAGS.text_files for path in sorted(glob.glob(pattern))]
    sources = {FLAGS.input_file: texts, **{path: (line.rstrip("\n") for line in lines_of(path)) for path in paths}}
    for path, lines in sources.items():
        num_texts, num_others = compare_pieces(predictor.tokenizer, lines)
        print(f"| {os.path.basename(path)} | {num_texts:,} | {num_others:,} |", flush=True)


if __name__ == "__main__":
    app.run(main)
