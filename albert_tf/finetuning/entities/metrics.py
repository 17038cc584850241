"""Scores of entities by seqeval's and KLUE's definitions.

seqeval itself is published as source alone, whose build fails on many machines; tests hold its numbers.
"""

import collections

from albert_tf.finetuning.entities.tags import OUTSIDE, entities_of, strict_entities_of
from albert_tf.finetuning.metrics import f1_of_counts

Sequences = list[list[str]]


def entity_counts(truth: Sequences, found: Sequences, entities=entities_of) -> dict[str, tuple[int, int, int]]:
    """Returns (found and right, found, true) entities by type; `entities` makes them of the tags of a sentence."""
    counts = collections.defaultdict(lambda: [0, 0, 0])
    for tags in zip(truth, found):
        true_entities, found_entities = (set(entities(list(each))) for each in tags)
        for column, counted in enumerate((true_entities & found_entities, found_entities, true_entities)):
            for entity in counted:
                counts[entity.type][column] += 1
    return {kind: tuple(values) for kind, values in sorted(counts.items())}


def _ratio(count, total):
    return count / total if total else 0.0


def _totals(truth, found):
    return tuple(map(sum, zip((0, 0, 0), *entity_counts(truth, found).values())))


def entity_f1(truth: Sequences, found: Sequences) -> float:
    """Returns the F1 of entities, right where type and borders are (conlleval; seqeval's default)."""
    return f1_of_counts(*_totals(truth, found))


def entity_precision(truth: Sequences, found: Sequences) -> float:
    """Returns the share of the entities found that are right."""
    right, count, _ = _totals(truth, found)
    return _ratio(right, count)


def entity_recall(truth: Sequences, found: Sequences) -> float:
    """Returns the share of the true entities that are found."""
    right, _, count = _totals(truth, found)
    return _ratio(right, count)


def entity_macro_f1(truth: Sequences, found: Sequences) -> float:
    """Returns the mean over the types of the F1 of entities (KLUE-NER: strict IOB2)."""
    counts = entity_counts(truth, found, strict_entities_of)
    return _ratio(sum(f1_of_counts(*values) for values in counts.values()), len(counts))


def character_macro_f1(truth: Sequences, found: Sequences) -> float:
    """Returns the mean over the tags, O among them, of the F1 of characters (KLUE-NER)."""
    # As in KLUE's own evaluation, [CLS] and [SEP] of each sentence count as right O. Tags that are neither true nor
    # found anywhere are left out; there they would count as 1, but its dev set has them all.
    true_tags = [tag for tags in truth for tag in (OUTSIDE, *tags, OUTSIDE)]
    found_tags = [tag for tags in found for tag in (OUTSIDE, *tags, OUTSIDE)]
    true_counts, found_counts = collections.Counter(true_tags), collections.Counter(found_tags)
    right = collections.Counter(one for one, other in zip(true_tags, found_tags) if one == other)
    tags = sorted(true_counts.keys() | found_counts.keys())  # always summed in the same order
    return sum(f1_of_counts(right[tag], found_counts[tag], true_counts[tag]) for tag in tags) / len(tags)


METRICS = {
    "entity_f1": entity_f1,
    "entity_precision": entity_precision,
    "entity_recall": entity_recall,
    "entity_macro_f1": entity_macro_f1,
    "character_macro_f1": character_macro_f1,
}
