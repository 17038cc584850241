"""The command `train_entity_vectors.py`."""

import dataclasses
import json
import time

from absl import flags

from albert_tf.cli import command
from albert_tf.cli.flag_parsing import resolved_flags
from albert_tf.entity_vectors.folder import EntityVectors, write_folder
from albert_tf.entity_vectors.ranking import by_chance, by_frequency, by_vectors, rank
from albert_tf.entity_vectors.transe import TransESettings, train
from albert_tf.entity_vectors.triples import read_triples, split
from albert_tf.entity_vectors.unfinished import UnfinishedTraining
from albert_tf.files import sha256_of
from albert_tf.folder_lock import hold
from albert_tf.progress_line import ProgressLine, format_seconds
from albert_tf.whole_folders import files_together

flags.disclaim_key_flags()

_SETTINGS = [field.name for field in dataclasses.fields(TransESettings)]


def define_flags():
    """Defines the flags of this command."""
    flags.DEFINE_string("input_file", None, "Triples: head, tab, relation, tab, tail on a line; .gz too.")
    flags.DEFINE_string("output_dir", None, "Folder to write; run_pretraining.py --entity_vectors takes it.")
    flags.DEFINE_integer("entity_size", TransESettings.entity_size, "Size of a vector.", 1)
    flags.DEFINE_float("margin", TransESettings.margin, "By how much a triple must be nearer than a corrupted one.")
    flags.DEFINE_integer(
        "distance_norm",
        TransESettings.distance_norm,
        "1: distances are sums of differences, 2: lengths of the difference.",
        1,
        2,
    )
    flags.DEFINE_float(
        "learning_rate", TransESettings.learning_rate, "Learning rate of gradient descent, on the sum over a batch."
    )
    flags.DEFINE_integer("train_batch_size", TransESettings.train_batch_size, "Triples in a batch.", 1)
    flags.DEFINE_integer("num_train_epochs", TransESettings.num_train_epochs, "Number of passes over the triples.", 1)
    flags.DEFINE_float(
        "held_out_fraction", 0.05, "Share of triples held out for evaluation at the end; 0 for none.", 0.0, 0.5
    )
    flags.DEFINE_integer("random_seed", TransESettings.random_seed, "Seed of every random draw.", 0)
    flags.DEFINE_integer("save_epochs", 5, "Number of epochs between saves, from which the same command resumes.", 1)


def main():
    given = resolved_flags()
    command.require(input_file=given.input_file, output_dir=given.output_dir)
    settings = TransESettings(**{name: getattr(given, name) for name in _SETTINGS})
    with hold(given.output_dir):
        identity = {
            "method": "transe",
            **dataclasses.asdict(settings),
            "held_out_fraction": given.held_out_fraction,
            "triples_sha256": sha256_of(given.input_file),
        }
        unfinished = UnfinishedTraining(given.output_dir, identity)
        begun = unfinished.take_up()
        triples = read_triples(given.input_file)
        learnt, held_out = split(triples.ids, given.held_out_fraction, given.random_seed)
        sizes = {
            "num_entities": len(triples.entities),
            "num_relations": len(triples.relations),
            "num_triples": len(learnt),
            "num_held_out": len(held_out),
        }
        print(_describe(sizes, triples.num_repeated))
        if begun:
            print(f"resuming after {begun.num_epochs:,} epochs", flush=True)
        entities, relations = train(
            learnt,
            len(triples.entities),
            len(triples.relations),
            settings,
            _Progress(len(learnt), settings, begun.num_epochs if begun else 0).tell,
            begun,
            lambda so_far: so_far.num_epochs % given.save_epochs or unfinished.keep(so_far),
        )
        scores = _scores(triples.ids, learnt, held_out, entities, relations, settings.distance_norm)
        with files_together(given.output_dir) as folder:
            found = EntityVectors(triples.entities, entities)
            write_folder(folder, found, triples.relations, relations, {**identity, **sizes, **scores})
        unfinished.remove()
    print(f"wrote vectors of {len(entities):,} entities to {given.output_dir}: {json.dumps(scores)}")


class _Progress:
    """Tells how far the training is, and how long it will still take."""

    def __init__(self, num_triples, settings, num_done):
        self._num_triples, self._epochs, self._num_done = num_triples, settings.num_train_epochs, num_done
        self._line, self._begun = ProgressLine(), time.monotonic()

    def tell(self, epoch, done, loss):
        """Shows a line if one is due; see `transe.train`."""
        all_done, total = epoch * self._num_triples + done, self._epochs * self._num_triples
        if all_done == total or self._line.is_due:
            rate = (all_done - self._num_done * self._num_triples) / max(time.monotonic() - self._begun, 1e-9)
            left = format_seconds((total - all_done) / rate)
            self._line.show(
                f"epoch {epoch + 1:,} of {self._epochs:,}: loss {loss:.4f}, {rate:,.0f} triples/s, {left} left"
            )
        if all_done == total:
            self._line.finish()


def _describe(sizes, num_repeated):
    repeated = f" ({num_repeated:,} duplicates were left out)" if num_repeated else ""
    return (
        f"{sizes['num_triples'] + sizes['num_held_out']:,} triples of {sizes['num_entities']:,} entities and "
        f"{sizes['num_relations']:,} relations{repeated}; {sizes['num_held_out']:,} are held out"
    )


def _scores(known, learnt, held_out, entities, relations, norm):
    """Returns the scores of the vectors on held-out triples, and those of rules that have no vectors."""
    if not len(held_out):
        return {}
    rules = {
        "": by_vectors(entities, relations, norm),
        "most_frequent_": by_frequency(learnt, len(entities)),
        "chance_": by_chance(len(entities)),
    }
    scores = {}
    for name, rule in rules.items():
        ranks = rank(held_out, known, len(entities), rule)
        scores |= {
            f"{name}mean_rank": round(ranks.mean_rank, 2),
            f"{name}hits_at_10": round(ranks.hits_at_10, 4),
        }
    return scores


def run():
    """Runs the command."""
    command.run(main, define_flags)
