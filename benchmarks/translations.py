"""Whether a model trained on pairs of translations finds a held-out sentence's translation among 1,000.

python -m benchmarks.translations --pairs=parallel/python_docs.train.tsv.gz,parallel/news.train.tsv \
    --held_out=parallel/python_docs.dev.tsv,parallel/news.dev.tsv --output_dir=benchmark/translations

Builds a vocabulary of 8,000 pieces and the pairs, and trains `configs/recipes/xlm_small.cfg`; what is there already is
kept. Sentences are compared by the cosine of the means of their states, after each block, as they are and with the
mean of their language's sentences taken off; beside it stand chance, and a rule that knows no words: the words and
numbers in Latin letters that both have, by how rare they are.
"""

import argparse
import collections
import math
import os
import re

import numpy as np
import tensorflow as tf

from albert_tf.base.startup import computes_in_bfloat16
from albert_tf.modeling import AlbertEncoder, AlbertForPreTraining
from albert_tf.reading.rows import RowFile
from albert_tf.tokenization import load_tokenizer
from benchmarks.stage import run_stage

_LATIN = re.compile(r"[a-z]+|[0-9]+")
_BATCH = 50


def read_pairs(path: str, columns: list[str], count: int, known: set[str]) -> list[tuple[str, str]]:
    """Returns the first pairs of a table of which neither text is there twice, or among those that are known."""
    pairs, seen = [], set(known)
    for row in RowFile(path):
        texts = tuple(row.values[name] for name in columns)
        if seen.isdisjoint(texts):
            pairs.append(texts)
            seen.update(texts)
    return pairs[:count]


def accuracy_of(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """Returns how often a row's best of the others' rows is its own, in both directions; float [N, H] each."""
    scores = first @ second.T
    own = np.arange(len(scores))
    return float((scores.argmax(1) == own).mean()), float((scores.argmax(0) == own).mean())


def normalized(vectors: np.ndarray) -> np.ndarray:
    """Returns rows of length 1."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def latin_vectors(pairs: list[tuple[str, str]]) -> list[np.ndarray]:
    """Returns what both languages write in the same letters: words and numbers, weighted by how few texts have them."""
    words = [[set(_LATIN.findall(text.lower())) for text in texts] for texts in zip(*pairs)]
    counts = collections.Counter(word for texts in words for text in texts for word in text)
    places = {word: place for place, word in enumerate(counts)}
    vectors = [np.zeros([len(pairs), len(places)], np.float32) for _ in range(2)]
    for side, texts in enumerate(words):
        for row, text in enumerate(texts):
            for word in text:
                vectors[side][row, places[word]] = math.log(2 * len(pairs) / counts[word])
    # A rule that knows nothing draws among those that are alike.
    noise = np.random.default_rng(0)
    return [normalized(each) + noise.normal(0, 1e-9, each.shape).astype(np.float32) for each in vectors]


def mean_states(encoder: AlbertEncoder, tokenizer, texts: list[str], language: int = 0) -> list[np.ndarray]:
    """Returns the mean of a text's states after the embeddings and after each block, float32 [N, H] each."""
    room = encoder.config.max_position_embeddings - 2
    cls, sep = map(tokenizer.vocabulary.id_of, ("[CLS]", "[SEP]"))
    means = []
    for begin in range(0, len(texts), _BATCH):
        ids = [row[:room].numpy().tolist() for row in tokenizer.encode_ids(texts[begin : begin + _BATCH])]
        rows = tf.ragged.constant([[cls, *row, sep] for row in ids]).to_tensor()
        lengths = tf.constant([len(row) for row in ids])[:, None]
        mask = tf.cast(tf.range(rows.shape[1]) < lengths + 2, tf.int32)
        is_text = mask * tf.cast((tf.range(rows.shape[1]) > 0) & (tf.range(rows.shape[1]) <= lengths), tf.int32)
        languages = tf.fill(rows.shape, language)
        inputs = {"input_ids": rows, "input_mask": mask, "language_ids": languages}
        states = encoder(inputs, output_hidden_states=True)["hidden_states"]
        weights = tf.cast(is_text, tf.float32)[:, :, None]
        means.append([tf.reduce_sum(each * weights, 1) / tf.reduce_sum(weights, 1) for each in states])
    return [tf.concat(each, 0).numpy() for each in zip(*means)]


def show(name: str, first: np.ndarray, second: np.ndarray) -> None:
    """Prints a line of the table."""
    print(f"{name:44} {'  '.join(f'{each:6.1%}' for each in accuracy_of(first, second))}", flush=True)


def compare(folder: str, pairs: list[tuple[str, str]]) -> None:
    """Prints how often a model, and rules, find a translation."""
    model, tokenizer = AlbertForPreTraining.from_pretrained(folder, verbose=False), load_tokenizer(folder)
    print(f"{'chance':44} {1 / len(pairs):6.1%}  {1 / len(pairs):6.1%}")
    show("words and numbers in Latin letters", *latin_vectors(pairs))
    sides = [mean_states(model.encoder, tokenizer, list(texts), number) for number, texts in enumerate(zip(*pairs))]
    for layer, (first, second) in enumerate(zip(*sides)):
        where = f"after block {layer}" if layer else "embeddings"
        show(f"mean states, {where}", normalized(first), normalized(second))
        centred = [normalized(each - each.mean(0)) for each in (first, second)]
        show(f"mean states, {where}, centred", *centred)


def train(options, folder: str, columns: list[str]) -> None:
    """Builds the vocabulary and the shards, and trains."""
    vocabulary, data = (os.path.join(options.output_dir, name) for name in ("vocabulary", "data"))
    if not os.path.exists(os.path.join(vocabulary, "vocab.txt")):
        for number, name in enumerate(columns):
            lines = [row.values[name] for path in options.pairs.split(",") for row in RowFile(path)]
            os.makedirs(options.output_dir, exist_ok=True)
            with open(os.path.join(options.output_dir, f"{number}.txt"), "w") as file:
                file.write("\n".join(lines) + "\n")
        texts = ",".join(os.path.join(options.output_dir, f"{number}.txt") for number in range(2))
        run_stage(
            "build_vocab.py",
            input_file=texts,
            languages=",".join(columns),
            language_exponent=1.0,  # they are translations of each other, and so as much text
            output_dir=vocabulary,
            vocab_size=8000,
            limit_alphabet=1500,
        )
    if not os.path.exists(os.path.join(data, "manifest.json")):
        run_stage(
            "create_pretraining_data.py",
            objective="translation",
            input_file=options.pairs,
            vocab_file=os.path.join(vocabulary, "vocab.txt"),
            output_file=os.path.join(data, "train.tfrecord"),
            max_seq_length=96,
            held_out_fraction=0.02,
        )
    run_stage(
        "run_pretraining.py",
        flagfile="configs/recipes/xlm_small.cfg",
        input_file=os.path.join(data, "train.tfrecord"),
        output_dir=folder,
        num_train_steps=options.num_train_steps,
        num_warmup_steps=150,
        use_bfloat16=str(computes_in_bfloat16()).lower(),
    )


def main():
    """Trains, unless a model is given, and prints a table for each file of held-out pairs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", required=True, help="tables of two columns to learn from, comma-separated")
    parser.add_argument("--held_out", required=True, help="tables to look for translations in, comma-separated")
    parser.add_argument("--output_dir", required=True)
    parser.add_argument("--model", help="the folder of a model that is there; by default one is trained")
    parser.add_argument("--num_train_steps", type=int, default=4000)
    parser.add_argument("--num_candidates", type=int, default=1000)
    options = parser.parse_args()
    columns = list(RowFile(options.pairs.split(",")[0]).columns)
    folder = options.model or os.path.join(options.output_dir, "run")
    if not options.model:
        train(options, folder, columns)
    rows = (row for path in options.pairs.split(",") for row in RowFile(path))
    known = {row.values[name] for row in rows for name in columns}
    for path in options.held_out.split(","):
        pairs = read_pairs(path, columns, options.num_candidates, known)
        print(f"\n{len(pairs):,} pairs of {os.path.basename(path)}: {columns[0]} to {columns[1]}, and back")
        compare(folder, pairs)


if __name__ == "__main__":
    main()
