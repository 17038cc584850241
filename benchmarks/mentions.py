"""How many mentions of names are found in pieces, and how many of what is found is one.

python -m benchmarks.mentions --klue_file=klue-ner-v1.1_dev.tsv --vocab_file=models/albert_ko_small/vocab.txt

The names are the persons, places and organisations that a file of KLUE-NER marks; the text is its sentences. Of the
marked mentions that begin a word, prints the share that is found as exactly that name: of all, of those with nothing
behind them, and of those with a josa or another word behind them without a space. And how much of what is found is
marked as exactly that. Sentences with a sign of less or greater that marks nothing are left out and counted.
"""

import collections
import os
import re

# TensorFlow's own messages would drown the table.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from absl import app, flags

from albert_tf.base.sequences import build_trie, find_sequences
from albert_tf.pretraining_data.entities import NameList
from albert_tf.tokenization import load_tokenizer

FLAGS = flags.FLAGS

flags.DEFINE_string("klue_file", None, "A file of KLUE-NER, which has each sentence with its marks.", required=True)
flags.DEFINE_string("vocab_file", None, "The vocabulary; a tokenizer.json beside it says how to use it.", required=True)

_SENTENCE = re.compile(r"## klue-ner\S*\t(.*)")
_MARK = re.compile(r"<([^<>]+):([A-Z]+)>")
_NAMED = ("PS", "LC", "OG")
_AT_ONCE = 256


def read_sentences(path):
    """Yields each sentence without marks, and where its names begin and end; None for one that is left out."""
    with open(path, encoding="utf-8") as file:
        for found in filter(None, map(_SENTENCE.match, file)):
            text, names, end = "", set(), 0
            for mark in _MARK.finditer(found[1]):
                text += found[1][end : mark.start()]
                if mark[2] in _NAMED:
                    names.add((len(text), len(text + mark[1])))
                text, end = text + mark[1], mark.end()
            text += found[1][end:]
            yield None if {"<", ">"} & {*text} else (text, names)


def find_mentions(texts, tokenizer, trie, sizes):
    """Returns for each text the places of what is found in it."""
    ids, begins, ends = tokenizer.encode_with_offsets(tf.constant(texts))
    _, lengths = (values.numpy() for values in find_sequences(trie, sizes, ids.to_tensor()))
    found = []
    for row, begins_of_row, ends_of_row in zip(lengths, begins.to_list(), ends.to_list()):
        found.append({(begins_of_row[i], ends_of_row[i + row[i] - 1]) for i in np.flatnonzero(row).tolist()})
    return found


def main(_):
    """Prints the shares."""
    tokenizer = load_tokenizer(os.path.dirname(FLAGS.vocab_file))
    read = list(read_sentences(FLAGS.klue_file))
    sentences = list(filter(None, read))
    print(f"{len(sentences):,} sentences; left out: {len(read) - len(sentences)} with signs that are no marks")
    forms = dict.fromkeys(text[begin:end] for text, spans in sentences for begin, end in sorted(spans))
    names = NameList.from_rows([(form, "") for form in forms], tokenizer)
    print(f"{len(names):,} names; left out: {names.tell_left_out() or 'none'}")
    trie, sizes = build_trie(names.pieces, tokenizer.starts_word)
    marked, found_of = collections.Counter(), collections.Counter()
    num_found = num_right = 0
    for first in range(0, len(sentences), _AT_ONCE):
        texts, of_texts = zip(*sentences[first : first + _AT_ONCE])
        for text, spans, found in zip(texts, of_texts, find_mentions(list(texts), tokenizer, trie, sizes)):
            num_found, num_right = num_found + len(found), num_right + len(found & spans)
            for begin, end in spans:
                if begin and text[begin - 1].isalnum():
                    continue  # inside of a word, where nothing is looked for
                kind = "with more of the word behind" if text[end : end + 1].isalnum() else "with nothing behind"
                marked[kind] += 1
                found_of[kind] += (begin, end) in found
    for kind in marked:
        print(f"found {kind}: {found_of[kind]:,} of {marked[kind]:,}, {found_of[kind] / marked[kind]:.1%}")
    print(f"found in all: {found_of.total() / marked.total():.1%} of {marked.total():,}")
    print(f"of {num_found:,} found, {num_right / num_found:.1%} are marked as exactly that")


if __name__ == "__main__":
    app.run(main)
