"""Tags of words or characters: B- begins an entity, I- goes on with it, O is outside of all (IOB2)."""

import collections.abc
import typing

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
