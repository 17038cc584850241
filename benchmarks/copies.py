"""How many texts for evaluation are in a training text, whole or nearly.

python -m benchmarks.copies --evaluation_file=dev.tsv --input_file='corpus/*.txt.gz'

Of a text's letters and digits alone, so that other spacing, marks and case hide nothing, every run of --length
characters is looked up in the training text, whose lines are joined. A text is copied if the training text holds all
of its runs, and nearly copied if it holds --share of them. Texts shorter than a run, which occur anywhere, are left
out. Prints a line for each file of texts, and the nearest copies.

Texts are the fields of tab-separated lines, or every string in a JSON file. Runs are compared by 64-bit hashes.
"""

import gzip
import itertools
import json
import re
import unicodedata

import numpy as np
from absl import app, flags

from albert_tf.base.files import match_files

FLAGS = flags.FLAGS

flags.DEFINE_list("evaluation_file", None, "Files of texts that must not be learnt, .gz too.", required=True)
flags.DEFINE_list("input_file", None, "The training text, .gz too.", required=True)
flags.DEFINE_integer("length", 15, "Letters and digits of a run.", lower_bound=4)
flags.DEFINE_float("share", 0.5, "Of its runs, from which on a text is nearly copied.", lower_bound=0.01, upper_bound=1)
flags.DEFINE_integer("examples", 3, "How many of the nearest copies to print of each file.", lower_bound=0)

_NO_LETTERS = re.compile(r"[\W_]+")
_BASE = np.uint64(0x9E3779B97F4A7C15)
_LINES_AT_ONCE = 50_000


def letters_of(text):
    """Returns the letters and digits of a text, composed and in lower case."""
    return _NO_LETTERS.sub("", unicodedata.normalize("NFKC", text).lower())


def hashes_of(letters, length):
    """Returns the hash of each run of so many characters, uint64 [len(letters) - length + 1]."""
    codes = np.frombuffer(letters.encode("utf-32-le"), np.uint32).astype(np.uint64)
    count = max(0, len(codes) - length + 1)
    hashes = np.zeros(count, np.uint64)
    with np.errstate(over="ignore"):
        for offset in range(length):
            hashes = hashes * _BASE + codes[offset : offset + count]
        return (hashes ^ (hashes >> np.uint64(29))) * _BASE


def lines_of(path):
    """Yields the lines of a file."""
    with gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else open(path, encoding="utf-8") as file:
        yield from file


def texts_of(path):
    """Returns the texts of a file."""
    if not path.removesuffix(".gz").endswith((".json", ".jsonl")):
        return [field for line in lines_of(path) for field in line.rstrip("\n").split("\t")]
    content = "".join(lines_of(path))
    try:
        values = [json.loads(content)]
    except json.JSONDecodeError:
        values = [json.loads(line) for line in content.splitlines() if line.strip()]
    return [text for value in values for text in _strings(value)]


def _strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _strings(each)


def found_in(paths, wanted, length):
    """Returns which of ascending hashes uint64 [N] a training text holds, bool [N]."""
    is_found, end = np.zeros(len(wanted), bool), ""
    lines = (letters_of(line) for path in paths for line in lines_of(path))
    while some := list(itertools.islice(lines, _LINES_AT_ONCE)):
        letters = end + "".join(some)
        is_found |= np.isin(wanted, hashes_of(letters, length))
        end = letters[len(letters) - length + 1 :]
    return is_found


def main(_):
    length = FLAGS.length
    of_files = {path: sorted(set(texts_of(path))) for path in match_files(FLAGS.evaluation_file, "evaluation_file")}
    hashes = {path: [hashes_of(letters_of(text), length) for text in texts] for path, texts in of_files.items()}
    wanted = np.unique(np.concatenate([np.zeros(0, np.uint64), *(each for all_ in hashes.values() for each in all_)]))
    is_found = found_in(match_files(FLAGS.input_file, "input_file"), wanted, length)
    print("| file | texts of a run or more | copied | nearly copied |\n|---|---:|---:|---:|")
    nearest = []
    for path, texts in of_files.items():
        shares = {
            text: is_found[np.searchsorted(wanted, each)].mean() for text, each in zip(texts, hashes[path]) if len(each)
        }
        copied = sum(share == 1.0 for share in shares.values())
        nearly = sum(FLAGS.share <= share < 1.0 for share in shares.values())
        print(f"| {path} | {len(shares):,} | {copied:,} | {nearly:,} |")
        nearest += sorted(((share, text) for text, share in shares.items() if share >= FLAGS.share), reverse=True)[
            : FLAGS.examples
        ]
    for share, text in nearest:
        print(f"{share:.0%} of the runs: {text[:200]}")


if __name__ == "__main__":
    app.run(main)
