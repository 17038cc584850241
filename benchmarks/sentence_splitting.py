"""How well --sentence_splitter=rule and kiwi find sentences again whose lines were joined by spaces.

python -m benchmarks.sentence_splitting --data_dir=shared/data

--data_dir holds corpus/*.txt.gz (one sentence a line, a blank line between documents) and KLUE's named entities,
klue/klue-ner-v1.1_dev.tsv, whose sentences are joined ten at a time; the built-in sample goes with them. Prints
precision, recall and F1 of the borders between sentences, and MB/s of one thread by its CPU time. A splitter that
cuts after every full stop, question and exclamation mark stands beside ours.

What lines say must be read with care: those of corpus/ were cut after full stops, wherever these stood, and headings
end without any; a review of KLUE is one line even if it holds several sentences.
"""

import glob
import importlib.util
import os
import random
import re
import time

# TensorFlow's own messages would drown the table.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from absl import app, flags

from albert_tf.reading.documents import CorpusReader, make_sentence_splitter
from benchmarks.stage import ROOT

FLAGS = flags.FLAGS

flags.DEFINE_string("data_dir", None, "Folder with corpus/ and klue/.", required=True)
flags.DEFINE_float("megabytes", 0.5, "How much of each text to take, whole documents at random.", lower_bound=0.01)

_SENTENCES_PER_DOCUMENT = 10
_FULL_STOP = re.compile(r"(?<=[.!?])\s+")
_KLUE_SENTENCE = re.compile(r"^## klue-ner\S+-(wikitree|nsmc)\t(.+)$", re.MULTILINE)
_KLUE_ENTITY = re.compile(r"<([^<>]*):[A-Z]{2}>")


def klue_documents(source):
    """Returns documents made of the sentences from one source."""
    with open(os.path.join(FLAGS.data_dir, "klue", "klue-ner-v1.1_dev.tsv"), encoding="utf-8") as file:
        found = _KLUE_SENTENCE.findall(file.read())
    sentences = [_KLUE_ENTITY.sub(r"\1", text).strip() for name, text in found if name == source]
    return [
        sentences[begin : begin + _SENTENCES_PER_DOCUMENT]
        for begin in range(0, len(sentences), _SENTENCES_PER_DOCUMENT)
    ]


def all_documents():
    """Returns name to documents, each a list of sentences."""
    paths = sorted(glob.glob(os.path.join(FLAGS.data_dir, "corpus", "*.txt.gz")))
    documents = {os.path.basename(path).split(".")[0]: list(CorpusReader([path]).documents()) for path in paths}
    sample = CorpusReader(sorted(glob.glob(os.path.join(ROOT, "samples", "corpus", "*.txt"))))
    documents["built-in sample"] = list(sample.documents())
    documents["KLUE, news"] = klue_documents("wikitree")
    documents["KLUE, film reviews"] = klue_documents("nsmc")
    return documents


def draw(documents):
    """Returns random documents, of so many megabytes, with single spaces."""
    documents = random.Random(0).sample(documents, len(documents))
    chosen, size = [], 0
    for document in documents:
        if size >= FLAGS.megabytes * 1e6:
            break
        chosen.append([" ".join(sentence.split()) for sentence in document])
        size += len(" ".join(chosen[-1]).encode())
    return chosen


def borders(sentences):
    """Returns where sentences end but the last, in characters that are no spaces."""
    ends, end = set(), 0
    for sentence in sentences[:-1]:
        end += len(sentence.replace(" ", ""))
        ends.add(end)
    return ends


def measure(documents, split):
    """Returns how many borders there are, are found and are found where they are, and the seconds of CPU time."""
    num_expected = num_found = num_right = seconds = 0
    for document in documents:
        text = " ".join(document)
        begin = time.process_time()
        sentences = split([text])
        seconds += time.process_time() - begin
        expected, found = borders(document), borders(sentences)
        num_expected += len(expected)
        num_found += len(found)
        num_right += len(expected & found)
    return num_expected, num_found, num_right, seconds


def main(_):
    splitters = {
        "every full stop": lambda lines: [sentence for line in lines for sentence in _FULL_STOP.split(line)],
        "rule": make_sentence_splitter("rule"),
    }
    if importlib.util.find_spec("kiwipiepy"):
        splitters["kiwi"] = make_sentence_splitter("kiwi")
        splitters["kiwi"](["모형을 읽는다."])
    seconds, megabytes = dict.fromkeys(splitters, 0), 0
    print(f"| precision / recall / F1 | borders | {' | '.join(splitters)} |")
    print("|---|---:|" + "---|" * len(splitters))
    for name, documents in all_documents().items():
        documents = draw(documents)
        megabytes += sum(len(" ".join(document).encode()) for document in documents) / 1e6
        cells = []
        for splitter, split in splitters.items():
            num_expected, num_found, num_right, time_taken = measure(documents, split)
            seconds[splitter] += time_taken
            precision, recall = num_right / num_found, num_right / num_expected
            f1 = 2 * num_right / (num_found + num_expected)
            cells.append(f"{precision:.3f} / {recall:.3f} / {f1:.3f}")
        print(f"| {name} | {num_expected:,} | {' | '.join(cells)} |", flush=True)
    speeds = [f"{megabytes / seconds[splitter]:.3g}" for splitter in splitters]
    print(f"| **MB/s** | | {' | '.join(speeds)} |")


if __name__ == "__main__":
    app.run(main)
