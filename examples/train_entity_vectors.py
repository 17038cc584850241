"""Learns vectors of entities from triples by TransE (Bordes et al. 2013): head plus relation is near the tail.

python examples/train_entity_vectors.py triples.tsv run/entity_vectors

`triples.tsv` is UTF-8 with a head, a relation and a tail on each line, separated by tabs. The new folder has
`entities.txt` and `entity_vectors.npy`, for `run_pretraining.py --objective=entities --entity_vectors=...`. The same
triples and seed give the same vectors. Nothing is held out: how useful the vectors are, only a task can tell.
"""

import argparse
import pathlib
import unicodedata

import numpy as np


def read_triples(path):
    """Returns the names of entities, those of relations, and the triples once each: int [N, 3], numbers of names."""
    entities, relations, triples = {}, {}, {}
    with open(path, encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            names = [unicodedata.normalize("NFC", name).strip() for name in line.split("\t")]
            if len(names) != 3 or not all(names):
                raise SystemExit(f"{path}, line {number}: write a head, a relation and a tail, separated by tabs")
            head, tail = (entities.setdefault(name, len(entities)) for name in names[::2])
            triples[head, relations.setdefault(names[1], len(relations)), tail] = None
    if len(entities) < 2:
        raise SystemExit(f"{path}: there must be at least two entities. Received: {len(entities)}")
    return list(entities), list(relations), np.array(list(triples))


def train(triples, num_entities, num_relations, options):
    """Returns float32 [entities, size] of length 1 and float32 [relations, size], and prints the mean loss."""
    generator = np.random.default_rng(options.seed)
    shapes = [num_entities, options.entity_size], [num_relations, options.entity_size]
    entities, relations = (normalized(generator.uniform(-1, 1, shape).astype(np.float32)) for shape in shapes)
    for epoch in range(1, options.num_epochs + 1):
        shuffled, loss = generator.permutation(triples), 0.0
        for begin in range(0, len(triples), options.batch_size):
            batch = shuffled[begin : begin + options.batch_size]
            corrupted = corrupt(batch, num_entities, generator)
            loss += descend(entities, relations, batch, corrupted, options)
        if epoch == 1 or epoch % 10 == 0 or epoch == options.num_epochs:
            print(f"epoch {epoch} of {options.num_epochs}: loss {loss / len(triples):.4f}", flush=True)
    return entities, relations


def corrupt(triples, num_entities, generator):
    """Returns triples of which each has another entity for its head or for its tail."""
    corrupted, rows = triples.copy(), np.arange(len(triples))
    columns = 2 * generator.integers(2, size=len(triples))
    others = generator.integers(1, num_entities, size=len(triples))
    corrupted[rows, columns] = (triples[rows, columns] + others) % num_entities
    return corrupted


def descend(entities, relations, batch, corrupted, options):
    """Takes a step down the sum of max(0, margin + distance(triple) - distance(corrupted)), and returns the sum."""
    heads, links, tails = np.concatenate([batch, corrupted]).T
    differences = entities[heads] + relations[links] - entities[tails]
    distances = np.linalg.norm(differences, axis=1)
    losses = np.maximum(0, options.margin + distances[: len(batch)] - distances[len(batch) :])
    signs = np.concatenate([losses > 0, -1.0 * (losses > 0)])  # triples come nearer, corrupted ones go away
    moves = (options.learning_rate * signs / np.maximum(distances, 1e-12))[:, None] * differences
    np.subtract.at(entities, heads, moves)
    np.subtract.at(relations, links, moves)
    np.add.at(entities, tails, moves)
    changed = np.union1d(heads, tails)
    entities[changed] = normalized(entities[changed])
    return losses.sum()


def normalized(vectors):
    """Returns vectors of length 1."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input_file")
    parser.add_argument("output_dir", type=pathlib.Path)
    flags = {"entity_size": 100, "margin": 1.0, "learning_rate": 0.01, "batch_size": 512, "num_epochs": 200, "seed": 0}
    for name, default in flags.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    options = parser.parse_args()
    if options.output_dir.exists():
        raise SystemExit(f"{options.output_dir} is there already; choose another folder")
    names, relations, triples = read_triples(options.input_file)
    vectors, _ = train(triples, len(names), len(relations), options)
    unfinished = options.output_dir.with_name(f"{options.output_dir.name}.unfinished")
    unfinished.mkdir(parents=True, exist_ok=True)
    (unfinished / "entities.txt").write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    np.save(unfinished / "entity_vectors.npy", vectors)
    unfinished.rename(options.output_dir)


if __name__ == "__main__":
    main()
