"""Tags of words or characters: B- begins an entity, I- goes on with it, O is outside of all (IOB2)."""

import collections
import collections.abc
import typing

from albert_tf.finetuning.metrics import Counts, count_found, f1_of_counts, mean_f1, totals

OUTSIDE = "O"
_OUTSIDE = (OUTSIDE, "-", "_", "")


class Entity(typing.NamedTuple):
    """A run of units with one type."""

    begin: int
    end: int  # Behind the last one.
    type: str


def normalize_tag(tag: str) -> str:
    """Returns `TYPE-B` and `TYPE_B` (Naver), `-` and the usual as `B-TYPE`, `I-TYPE` or `O`; else raises ValueError."""
    if tag in _OUTSIDE:
        return OUTSIDE
    for separator in "-_":
        for prefix, found, kind in (tag.partition(separator), tag.rpartition(separator)[::-1]):
            if found and kind and prefix in ("B", "I"):
                return f"{prefix}-{kind}"
    raise ValueError(tag)


def entities_of(tags: list[str]) -> list[Entity]:
    """Returns the entities of a sequence; as conlleval does, an I- that goes on with nothing begins one."""
    found, begin, kind = [], 0, None
    for unit, tag in enumerate([*tags, OUTSIDE]):
        prefix, _, now = tag.partition("-")
        if kind is not None and (tag == OUTSIDE or prefix == "B" or now != kind):
            found.append(Entity(begin, unit, kind))
            kind = None
        if tag != OUTSIDE and kind is None:
            begin, kind = unit, now
    return found


def strict_entities_of(tags: list[str]) -> list[Entity]:
    """Returns the entities that begin with a B-, as seqeval does in strict mode with IOB2."""
    return [entity for entity in entities_of(tags) if tags[entity.begin].startswith("B-")]


def go_on_with(tag: str) -> str:
    """Returns the tag of a unit that one piece shares with the unit before it, whose tag is given."""
    return tag if tag == OUTSIDE else f"I-{tag.partition('-')[2]}"


def may_follow(before: str, tag: str) -> bool:
    """Returns whether a tag may come after another: I- after B- or I- of its type alone."""
    return not tag.startswith("I-") or before in (tag, f"B-{tag[2:]}")


def leave_out(tags: collections.abc.Sequence[str], units: collections.abc.Collection[int]) -> list[str]:
    """Returns the tags of all units but some, which make and break no entity."""
    # An entity that began with one of them begins with the next unit that is left of it.
    left, begun = [], None
    for unit, tag in enumerate(tags):
        if unit not in units:
            left.append(begun if begun and tag == go_on_with(begun) else tag)
            begun = None
        elif tag.startswith("B-"):
            begun = tag
    return left


def put_between(tags: collections.abc.Sequence[str | None]) -> list[str]:
    """Returns tags with one in place of each None: `I-` where the units around it are of one entity, else `O`."""
    found, missing = [], 0
    for tag in tags:
        if tag is None:
            missing += 1
            continue
        goes_on = bool(found) and tag.startswith("I-") and tag == go_on_with(found[-1])
        found += [tag if goes_on else OUTSIDE] * missing + [tag]
        missing = 0
    return found + [OUTSIDE] * missing


# Scores of entities by seqeval's and KLUE's definitions.
#
# seqeval itself is published as source alone, whose build fails on many machines; tests hold its numbers.

Sequences = list[list[str]]


def entity_counts(truth: Sequences, found: Sequences, entities=entities_of) -> Counts:
    """Returns (found and right, found, true) entities by type; `entities` makes them of the tags of a sentence."""
    sets = (map(entities, map(list, sequences)) for sequences in (truth, found))
    return dict(sorted(count_found(*sets, lambda entity: entity.type).items()))


def entity_f1(truth: Sequences, found: Sequences) -> float:
    """Returns the F1 of entities, right where type and borders are (conlleval; seqeval's default)."""
    return f1_of_counts(*totals(entity_counts(truth, found)))


def entity_precision(truth: Sequences, found: Sequences) -> float:
    """Returns the share of the entities found that are right."""
    right, count, _ = totals(entity_counts(truth, found))
    return right / count if count else 0.0


def entity_recall(truth: Sequences, found: Sequences) -> float:
    """Returns the share of the true entities that are found."""
    return entity_precision(found, truth)


def entity_macro_f1(truth: Sequences, found: Sequences) -> float:
    """Returns the mean over the types of the F1 of entities (KLUE-NER: strict IOB2)."""
    return mean_f1(entity_counts(truth, found, strict_entities_of))


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
