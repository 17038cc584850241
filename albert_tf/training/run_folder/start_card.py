"""The licences in the card of the model that a run began with, which go on to the run's own card."""

import re

import tensorflow as tf

from albert_tf.checkpoint_files import find_beside_checkpoint

CARD_FILE = "README.md"
_FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?\r?\n)---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_LICENSE, _BASE_MODEL = "license", "base_model"
# The first says what `license: other` is, and the second where it stands.
_OF_LICENSE = (_LICENSE, "license_name", "license_link")
# Licences under which what is made of a work has to be shared, too.
_SHARE_ALIKE = ("cc-by-sa", "cc-by-nc-sa")
# Those that give a work away and ask nothing: whoever makes something of it says alone under which licence that is.
_DEDICATIONS = ("cc0-1.0", "pddl", "unlicense")

# Settings of a run that name a model.
_LEARNT_FROM = ("init_checkpoint", "teacher")

Facts = dict[str, str | list[str]]


def facts_of(card: str) -> Facts:
    """Returns licence and `base_model` of a card's front matter: words, or lists of words; others are left out."""
    found = _FRONT_MATTER.match(card)
    values = {key: _values(found[1], key) for key in (*_OF_LICENSE, _BASE_MODEL)} if found else {}
    return {key: words[0] if len(words) == 1 else words for key, words in values.items() if words}


def with_base_model(card: str, base_model: str) -> str:
    """Returns a card that names the model it is made of, unless it names one already."""
    found = _FRONT_MATTER.match(card)
    line = f"{_BASE_MODEL}: {base_model}\n"
    if found is None:
        return f"---\n{line}---\n{card}"
    return card if _values(found[1], _BASE_MODEL) else card[: found.end(1)] + line + card[found.end(1) :]


def carried_facts(settings: dict, present_card: str = "", license_name: str | None = None) -> Facts:
    """Returns the facts for a run's card: as asked, else as in its present card, else as in that of its start."""
    of_start, present = _facts_of_start(settings), facts_of(present_card)
    named = {_LICENSE: license_name} if license_name is not None else present if _LICENSE in present else of_start
    of_license = {key: named[key] for key in _OF_LICENSE if key in named}
    return of_license | {key: facts[key] for facts in (of_start, present) for key in (_BASE_MODEL,) if key in facts}


def license_beside(checkpoint: str) -> Facts:
    """Returns the licence in the card of a checkpoint's folder; nothing where there is none."""
    facts = _facts_of_card_beside(checkpoint)
    return {key: facts[key] for key in _OF_LICENSE if key in facts}


def share_alike_warning(settings: dict, license_name: str | None) -> str | None:
    """Returns a warning if a model learnt from is share-alike, and the chosen licence, or the start's, is another."""
    of_start, of_teacher = (_licenses(settings, name) for name in _LEARNT_FROM)
    chosen = of_start if license_name is None else [license_name]
    for what, licenses in (("model that this one started from", of_start), ("teacher of this model", of_teacher)):
        share_alike = [name for name in licenses if name.lower().startswith(_SHARE_ALIKE)]
        if chosen and share_alike and not {*map(str.lower, chosen)} & {*map(str.lower, licenses)}:
            return (
                f"warning: the {what} is under {share_alike[0]}, which requires what is made of it to be shared under "
                f"the same licence, not under {chosen[0]}"
            )
    return None


def _licenses(settings, name):
    found = _facts_beside((settings.get(name) or {}).get("path")).get(_LICENSE, [])
    return [found] if isinstance(found, str) else found


def _facts_of_start(settings):
    """Returns the facts of the model that a run began with; if that has no licence, with its teacher's licence."""
    start, teacher = (_facts_beside((settings.get(name) or {}).get("path")) for name in _LEARNT_FROM)
    return start if _LICENSE in start else start | {key: teacher[key] for key in _OF_LICENSE if key in teacher}


def _facts_of_card_beside(checkpoint):
    path = find_beside_checkpoint(checkpoint, CARD_FILE)
    if path is None:
        return {}
    with tf.io.gfile.GFile(path, "rb") as file:
        return facts_of(file.read().decode("utf-8", errors="replace"))


def _facts_beside(checkpoint):
    """Returns the facts of a checkpoint's card that go on to what is made of it."""
    facts = _facts_of_card_beside(checkpoint)
    is_given_away = str(facts.get(_LICENSE)).lower() in _DEDICATIONS
    return {key: value for key, value in facts.items() if key not in _OF_LICENSE or not is_given_away}


def _values(front, key):
    """Returns the words that YAML gives a key, on its line or as a list on those below."""
    found = re.search(rf"^{key}:[ \t]*(.*?)\r?\n((?:[ \t]*-[ \t].*\n)*)", front, re.MULTILINE)
    if found is None:
        return []
    on_line = re.sub(r"(?:^|\s)#.*", "", found[1]).strip()
    words = on_line[1:-1].split(",") if on_line.startswith("[") else [on_line]
    words += [re.sub(r"\s#.*", "", line).strip()[1:] for line in found[2].splitlines()]
    return [word for word in (word.strip().strip("\"'").strip() for word in words) if word]
